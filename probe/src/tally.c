//go:build ignore

// tally.c: tally.h.
#include "tally.h"

#include "census.h"
#include "classes.h"
#include "guard.h"
#include "heapwalk.h"
#include "log.h"
#include "marks.h"
#include "object.h"
#include "tlabs.h"

typedef unsigned long long ull;

static void log_unknown(uint64_t a, uint32_t i, const struct area *f, uint64_t top) {
    const char *p = (const char *)a;
    log_line("oracle: unknown at %#llx in %u of kind %u (%#llx to %#llx): %#llx %#llx %#llx %#llx", (ull)a, i,
             (unsigned)f->kind, (ull)f->bottom, (ull)top, (ull)rd64(p), (ull)rd64(p + 8), (ull)rd64(p + 16),
             (ull)rd64(p + 24));
    for (uint32_t x = 0; x < nholes; x++) log_line("oracle: hole %#llx to %#llx", (ull)holes[x].lo, (ull)holes[x].hi);
}

static void tally_area(struct tally *t, uint32_t i, const struct area *f) {
    uint64_t top = f->kind == HC_SPACE_HUMONGOUS ? humongous_end(f->bottom) : f->top;
    uint32_t h = 0;
    uint64_t seen = 0; // below it, what G1 has not marked is dead, and JVMTI does not count it
    bool marked = marks_there() && (f->kind == HC_SPACE_OLD || f->kind == HC_SPACE_ARCHIVE);
    const uint64_t *bits = marked ? marks_of(f->bottom, top, &seen) : NULL;
    for (uint64_t a = f->bottom; a < top;) {
        uint64_t living = a < seen ? marked_from(bits, a, seen) : a;
        if (living != a) {
            a = living;
            continue;
        }
        while (h < nholes && holes[h].lo < a) h++;
        if (f->kind == HC_SPACE_EDEN && h < nholes && holes[h].lo == a) {
            a = holes[h].hi;
            continue;
        }
        struct obj o;
        if (!obj_at(a, rd64((void *)a), &o)) {
            log_unknown(a, i, f, top);
            t->unknown++;
            return;
        }
        census(o.type, 0, 0, o.bytes);
        t->objects++, t->bytes += o.bytes;
        a += o.bytes;
    }
}

static void tally_all(void *arg) {
    struct tally *t = arg;
    struct heapmap *m = &t->maps->finish;
    classes_scan_new();
    census_reset();
    heapmap()->read(m);
    tlab_holes();
    for (uint32_t i = 0; i < m->n; i++) {
        const struct area *f = &m->area[i];
        if (f->kind == HC_SPACE_FREE || f->kind == HC_SPACE_HUMONGOUS_CONT) continue;
        if (!vm_has_regions() && i == TO) continue;
        tally_area(t, i, f);
    }
}

void heap_tally(struct tally *t) {
    t->objects = t->bytes = t->unknown = 0;
    if (!guarded(tally_all, t)) t->unknown = UINT64_MAX;
}
