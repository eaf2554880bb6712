//go:build ignore

// cuts.c: cuts.h. A sampled object's weak reference says where it is. Walks between two of them end where the next one
// begins, so an address that is not that of an object is noticed.
#include "cuts.h"

#include "crew.h"
#include "heapwalk.h"
#include "options.h"
#include "recording.h"
#include "samples.h"
#include "tlabs.h"

static PER_RECORDING bool amid, distrusted;
enum { WORTH = 3 << 20 }; // bytes

static bool can_cut(void) { return !vm_has_regions() && !distrusted && crew_is_there(); }

static void cut(int space, uint64_t lo, uint64_t hi) {
    struct cuts *c = &heap_cuts[space];
    c->n = 0;
    if (!can_cut() || hi <= lo || (hi - lo < WORTH && opt.crew < TEST_COMPARE)) return;
    c->n = samples_starts(lo, hi, c->at);
    if (opt.crew == TEST_WRONG && space == EDEN && c->n) c->at[0] += 8;
}

void cuts_amid(bool yes) { amid = yes; }

void cuts_at_start(const struct heapmap *start, int depth) {
    nholes = 0;
    distrusted |= amid;
    amid = false;
    for (int i = 0; i < SPACES; i++) heap_cuts[i].n = 0;
    if (depth != HC_DEPTH_FULL) return;
    tlab_holes();
    if (can_cut()) cut(EDEN, start->area[EDEN].bottom, start->area[EDEN].top);
}

void cuts_for_births(const struct heapmaps *m, bool evac) {
    if (!can_cut()) return;
    const struct area *f = m->finish.area;
    cut(OLD, m->start.area[OLD].top, f[OLD].top);
    if (evac) cut(FROM, f[FROM].bottom, f[FROM].top);
}
