//go:build ignore

// tops.c: tops.h. An object that stood below its region's top when its class died is of that class, and one above it is
// of the class that has its word since: it came later. Unloadings between which no word was used again share a place.
#include "tops.h"

#include "recording.h"

enum { PLACES = 16 };
static PER_RECORDING uint64_t *tops; // of each place, of each region; 0: nothing that was there is left
static PER_RECORDING uint32_t regions;

bool tops_init(uint32_t n) {
    regions = n;
    tops = memory((uint64_t)PLACES * n * sizeof *tops);
    return tops;
}

static uint64_t *place(uint32_t number) { return tops + (uint64_t)(number % PLACES) * regions; }

bool tops_note(const struct heapmap *m) {
    bool told = !class_reused_often;
    class_reused_often = false;
    if (class_reused || unloading_no < unloading_first) { // what was noted last is asked for, or there is nothing
        unloading_no++;
        if (unloading_no >= unloading_first + PLACES) told = false, unloading_first = unloading_no - PLACES + 1;
    }
    class_reused = false;
    uint64_t *t = place(unloading_no);
    for (uint32_t i = 0; i < regions; i++) {
        const struct area *f = &m->area[i];
        bool old = f->kind == HC_SPACE_OLD || f->kind == HC_SPACE_SURVIVOR || f->kind == HC_SPACE_HUMONGOUS;
        t[i] = i < m->n && old ? f->top : 0;
    }
    return told;
}

void tops_drop(uint32_t region) {
    for (uint32_t n = unloading_first; region < regions && n <= unloading_no; n++) place(n)[region] = 0;
}

void tops_clear(void) { unloading_first = unloading_no + 1; }

uint32_t tops_type(const struct centry *c, uint64_t addr) {
    const struct class_past *p = class_pasts(c);
    uint32_t i = region_of(addr), type = 0;
    for (int n = 0; i < regions && n < CLASS_PASTS && p[n].number >= unloading_first; n++)
        if (p[n].number <= unloading_no && addr < place(p[n].number)[i]) type = p[n].type;
    return type;
}
