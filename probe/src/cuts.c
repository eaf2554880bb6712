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

static void cut(int space, const struct area *at, bool settled) {
    struct cuts *c = &heap_cuts[space];
    const uint64_t lo = at->bottom, hi = at->top;
    c->n = 0;
    if (!can_cut() || hi <= lo || (hi - lo < WORTH && opt.crew < TEST_COMPARE)) return;
    c->n = samples_starts(lo, hi, settled, c->at);
    if (opt.crew == TEST_WRONG && c->n) c->at[0] += 8;
}

void cuts_amid(bool yes) {
    distrusted |= amid && yes; // stops of the agent have no cuts_at_start
    amid = yes;
}

void cuts_at_start(const struct heapmap *start, int depth) {
    nholes = 0;
    distrusted |= amid;
    amid = false;
    for (int i = 0; i < SPACES; i++) heap_cuts[i].n = 0;
    if (depth == HC_DEPTH_FULL) tlab_holes();
    if (depth == HC_DEPTH_SAMPLES || !can_cut()) return;
    cut(FROM, &start->area[FROM], true);
    if (depth == HC_DEPTH_FULL) cut(EDEN, &start->area[EDEN], false);
}

void cuts_for_births(const struct heapmaps *m, bool evac) {
    heap_cuts[FROM].n = heap_cuts[OLD].n = 0;
    if (!can_cut()) return;
    const struct area *f = m->finish.area;
    cut(OLD, &(struct area){.bottom = m->start.area[OLD].top, .top = f[OLD].top}, false);
    if (evac) cut(FROM, &f[FROM], false);
}

void cuts_for_listing(const struct heapmap *finish, bool with_eden) {
    heap_cuts[FROM].n = heap_cuts[OLD].n = 0;
    if (!can_cut()) return;
    if (!with_eden || !vm_has_unformatted_survivors()) cut(FROM, &finish->area[FROM], true);
    cut(OLD, &finish->area[OLD], true);
}

void cuts_for_slice(uint64_t lo, uint64_t hi) {
    struct cuts *c = &heap_cuts[OLD];
    cut(OLD, &(struct area){.bottom = lo, .top = hi}, true);
    if (opt.crew == TEST_WRONG_SLICE && c->n) c->at[c->n / 4] += 8;
}
