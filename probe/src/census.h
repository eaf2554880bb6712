// census.h: counters of births, promotions and deaths by type and age, of one epoch. VM thread in pauses.
#ifndef HEAPCAM_CENSUS_H
#define HEAPCAM_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "classtable.h"
#include "encode.h"

enum { BUCKETS = 6 }; // HC_BUCKET_*
bool census_init(void);

// Cells of a row, the bits of its mask; the last two are of what a ramp has not counted.
enum { BORN_YOUNG, BORN_OLD, PROMOTED, DIED_YOUNG, DIED_OLD, CELLS, DIED_UNCOUNTED = CELLS, GAINED };
// One cache line holds what a birth or a promotion counts.
struct crow {
    uint32_t stamp, type, bucket, pad;
    struct {
        uint64_t n, b;
    } cell[GAINED + 1];
};
extern HIDDEN struct crow *crows;
extern HIDDEN uint32_t cstamp, *ctouched, nctouched;
static inline void census_add(uint32_t type, uint32_t bucket, int cell, uint64_t n, uint64_t bytes) {
    uint32_t i = TSLOT(type) * BUCKETS + bucket;
    struct crow *r = &crows[i];
    if (r->stamp != cstamp) {
        *r = (struct crow){.stamp = cstamp, .type = type, .bucket = bucket};
        ctouched[nctouched++] = i;
    }
    r->cell[cell].n += n;
    r->cell[cell].b += bytes;
}
static inline void census(uint32_t type, uint32_t bucket, int cell, uint64_t bytes) {
    census_add(type, bucket, cell, 1, bytes);
}
bool census_put(struct enc *e); // returns whether some of it is of what a ramp has not counted
void census_reset(void);

void census_forget(uint32_t died); // so many classes died: rows that nobody needs are given back

#endif
