//go:build ignore

// ramp_linear.c: ramp_parts.h for Serial and Parallel: old space is listed from its bottom on, and may be divided at
// any object.
#include "budget.h"
#include "crew.h"
#include "cuts.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "heapwalk.h"
#include "marks.h"
#include "os.h"
#include "ramp_parts.h"
#include "recording.h"

enum { HOLES = 64 };

// What a reader who began with the ramp does not know: [at, top) of old space, what survivor space holds, and the holes
// that lost epochs have left. Holes are counted already. Old space above top comes with births.
struct pending {
    uint64_t at, top;
    struct range hole[HOLES];
    uint32_t holes;
    bool young, young_counted; // what survivor space holds is unknown; though it was counted
};
static PER_RECORDING struct pending now, next;

// How things stood at the newest finish that was committed. A number of a survivor space changes when it is emptied.
static PER_RECORDING struct range committed_young;
static PER_RECORDING uint64_t committed_top, committed_no, young_no;

static bool init(uint32_t *most) {
    *most = HOLES + 2;
    return true;
}

static void forget(void) {
    now = (struct pending){.at = 0};
    young_no++;
}

static void emptied(const struct heapmaps *m, bool evac) {
    (void)m;
    if (!evac) return;
    now.young = now.young_counted = false;
    young_no++;
}

static const uint64_t *uncounted(void) {
    static PER_RECORDING uint64_t to[SPACES];
    to[FROM] = to[TO] = now.young && !now.young_counted ? UINT64_MAX : 0;
    return to;
}

static void add_hole(uint64_t lo, uint64_t hi) {
    if (lo == hi) return;
    struct range *r = now.holes ? &now.hole[now.holes - 1] : NULL;
    if (r && r->hi >= lo) {
        if (hi > r->hi) r->hi = hi;
    } else if (now.holes < HOLES) {
        now.hole[now.holes++] = (struct range){lo, hi};
    } else {
        r->hi = hi; // what lies between is listed again
    }
}

static void put_lost(struct enc *e, const struct heapmaps *m, uint64_t since) {
    const struct area *old = &m->last.area[OLD], *young = &m->last.area[FROM];
    bool moved = young_no != committed_no;
    struct ranges r = {.e = e};
    put8(e, HC_EV_LOST);
    put_u(e, since);
    uint8_t *at = blob_begin(e, HC_EV_CLEARED);
    if (moved) ranges_add(&r, committed_young.lo, committed_young.hi);
    ranges_end(&r);
    blob_end(e, at);
    at = blob_begin(e, HC_EV_UNKNOWN);
    r.prev = 0;
    if (moved && used(young)) {
        ranges_add(&r, young->bottom, young->top);
        now.young = now.young_counted = true;
    }
    if (old->top > committed_top) ranges_add(&r, committed_top, old->top);
    ranges_end(&r);
    blob_end(e, at);
    if (now.holes == HOLES && now.hole[HOLES - 1].hi < committed_top) violation("too many epochs were lost", since);
    add_hole(committed_top, old->top > committed_top ? old->top : committed_top);
}

static void begin(struct heapmaps *maps) {
    const struct heapmap *m = &maps->finish;
    const struct area *old = &m->area[OLD];
    next = (struct pending){.at = old->bottom, .top = old->top, .young = used(&m->area[FROM]) > 0};
}

static void go_on(void) { next = now; }
static void none(void) { next = (struct pending){.at = 0}; }
static void keep(void) { now = next; }

static void put_pending(struct ranges *r, const struct heapmap *m) {
    if (next.at < next.top) ranges_add(r, next.at, next.top);
    if (next.young) ranges_add(r, m->area[FROM].bottom, m->area[FROM].top);
}

// Twice what the VM thread is expected to list in this slice.
static uint64_t expected_end(uint64_t until) {
    const uint64_t most = 1ull << 40, t = now_ns(), left = until > t ? until - t : 0;
    const uint64_t bytes = 2 * (((left < most ? left : most) << 20) / (budget_guess(1 << 20) + 1));
    return bytes < next.top - next.at ? next.at + bytes : next.top;
}

// With the crew, between objects that were sampled. Returns where that ends.
static uint64_t list_parts(struct walker *w, const struct slice *s, struct part *p) {
    const struct cuts *c = &heap_cuts[OLD];
    uint64_t lo = next.at, stop = lo;
    cuts_amid(true);
    cuts_for_slice(lo, expected_end(s->until));
    if (c->n && crew_call(CREW_LIST, c->at[c->n - 1] - lo, &s->maps->finish)) {
        for (uint32_t i = 0; i < c->n; lo = c->at[i++]) crew_add(lo, c->at[i]);
        stop = crew_slice(w, next.at, &p->objects, &p->bytes, &p->stopped);
    }
    cuts_amid(false);
    return stop;
}

static void list_old(struct enc *e, struct walker *w, const struct slice *s, struct part *p) {
    struct heapmap *m = &s->maps->finish;
    uint64_t lo = next.at, stop = list_parts(w, s, p);
    if (!p->stopped && !e->over) stop = walk_list_part(w, stop, next.top, &p->objects, &p->bytes, &p->stopped);
    crew_has_listed(stop - lo);
    crew_stop();
    if (stop != next.top && !p->stopped && !e->over) {
        if (next.top != m->area[OLD].top) unknown_class("a class word in old space is unknown", stop);
        m->area[OLD].top = stop; // granted in this pause: born in the next
        stop = next.top;
    }
    next.at = stop;
    part_done(p, lo, stop);
}

static void list_holes(struct enc *e, struct walker *w, struct part *p) {
    uint32_t i = 0, left = 0;
    for (; i < next.holes && !p->stopped && !e->over; i++) {
        struct range *r = &next.hole[i];
        uint64_t lo = r->lo;
        r->lo = walk_list_part(w, lo, r->hi, &p->objects, &p->bytes, &p->stopped);
        if (r->lo != r->hi && !p->stopped && !e->over) unknown_class("a class word in old space is unknown", r->lo);
        part_done(p, lo, r->lo);
    }
    for (i = 0; i < next.holes; i++)
        if (next.hole[i].lo < next.hole[i].hi) next.hole[left++] = next.hole[i];
    next.holes = left;
}

// Survivor space is listed as a whole, or left to the next collection, which tells where all of it goes.
static void list_young(struct enc *e, struct walker *w, const struct area *f, struct part *p) {
    struct enc before = *e;
    struct walker was = *w;
    uint64_t objects = p->objects, bytes = p->bytes;
    bool stopped = false;
    uint64_t stop = walk_list_part(w, f->bottom, f->top, &p->objects, &p->bytes, &stopped);
    if (stop == f->top) {
        next.young = next.young_counted = false;
        part_done(p, f->bottom, f->top);
        return;
    }
    bool over = e->over;
    *e = before, e->over = over;
    *w = was;
    p->objects = objects, p->bytes = bytes;
}

static void list(struct enc *e, const struct slice *s, struct part *p) {
    struct heapmap *m = &s->maps->finish;
    const struct area *from = &m->area[FROM];
    bool young = next.young && !s->with_eden;
    list_until = s->until;
    uint8_t *at = blob_begin(e, HC_EV_LIST);
    struct walker w = walker_on(e, NULL);
    if (next.at < next.top) list_old(e, &w, s, p);
    bool all = next.at == next.top && !p->stopped;
    if (young && !next.young_counted && all && !next.holes) list_young(e, &w, from, p);
    blob_end(e, at);
    if (all && (next.holes || (young && next.young && next.young_counted))) {
        at = blob_begin(e, HC_EV_AGAIN);
        w = walker_on(e, NULL);
        list_holes(e, &w, p);
        if (young && next.young_counted && !next.holes && !p->stopped) list_young(e, &w, from, p);
        blob_end(e, at);
    }
    list_until = 0;
    p->walked = p->bytes;
}

static uint64_t left(const struct heapmap *m, bool without_lost) {
    uint64_t n = next.top - next.at;
    for (uint32_t i = 0; !without_lost && i < next.holes; i++) n += next.hole[i].hi - next.hole[i].lo;
    if (next.young && !(without_lost && next.young_counted)) n += used(&m->area[FROM]);
    return n;
}

static void committed(const struct heapmap *m) {
    committed_no = young_no;
    committed_top = m->area[OLD].top;
    committed_young = (struct range){m->area[FROM].bottom, m->area[FROM].top};
}

const struct ramp_parts ramp_linear = {init,        forget, emptied, uncounted, put_lost, begin,
                                       go_on,       none,   put_pending, list,   left,  keep, committed};
