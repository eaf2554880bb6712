//go:build ignore

// census.c: census.h.
#include "census.h"

#include "heapcam_abi.h"
#include "os.h"
#include "recording.h"

PER_RECORDING struct crow *crows;
PER_RECORDING uint32_t cstamp = 1, *ctouched, nctouched;
static PER_RECORDING uint32_t died_since; // types that died since rows were given back
enum { ROWS_GIVEN_BACK = 4096 };          // types: about 3 MiB

bool census_init(void) {
    crows = memory_sparse((size_t)MAX_TYPES * BUCKETS * sizeof *crows);
    ctouched = memory_sparse((size_t)MAX_TYPES * BUCKETS * sizeof *ctouched);
    return crows && ctouched;
}

// Each type that was ever counted has rows of its own; those in use come back as they are touched.
void census_forget(uint32_t died) {
    died_since += died;
    if (died_since < ROWS_GIVEN_BACK) return;
    size_t n = ntypes < MAX_TYPES ? ntypes + 1 : MAX_TYPES;
    os_give_back(crows, n * BUCKETS * sizeof *crows);
    died_since = 0;
}

void census_reset(void) {
    cstamp++;
    nctouched = 0;
}

static void put_uncounted(struct enc *e) {
    uint8_t *at = blob_begin(e, HC_EV_UNCOUNTED);
    for (uint32_t i = 0; i < nctouched; i++) {
        struct crow *r = &crows[ctouched[i]];
        if (!r->cell[DIED_UNCOUNTED].n && !r->cell[GAINED].n) continue;
        put_u(e, r->type);
        put_u(e, r->bucket);
        for (int c = CELLS; c <= GAINED; c++) put_u(e, r->cell[c].n), put_u(e, r->cell[c].b);
    }
    blob_end(e, at);
}

bool census_put(struct enc *e) {
    bool uncounted = false;
    if (!nctouched) return false;
    uint8_t *at = blob_begin(e, HC_EV_CENSUS);
    for (uint32_t i = 0; i < nctouched; i++) {
        struct crow *r = &crows[ctouched[i]];
        uint32_t mask = 0;
        uncounted |= r->cell[DIED_UNCOUNTED].n || r->cell[GAINED].n;
        for (int c = 0; c < CELLS; c++) mask |= r->cell[c].n ? 1u << c : 0;
        if (!mask) continue;
        put_u(e, r->type);
        put_u(e, r->bucket);
        put_u(e, mask);
        for (int c = 0; c < CELLS; c++)
            if (r->cell[c].n) put_u(e, r->cell[c].n), put_u(e, r->cell[c].b);
    }
    blob_end(e, at);
    if (uncounted) put_uncounted(e);
    return uncounted;
}
