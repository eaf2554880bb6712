//go:build ignore

// ramp_g1.c: ramp_parts.h for G1: regions are listed as a whole, old and humongous ones first, by address, at least one
// a slice. None is divided: JDK 20 and later put fillers over what is dead while the program runs, and the next slice
// would begin inside of one. A humongous object is an object, however large.
//
// A region that is emptied is another one from then on. HotSpot numbers none, so they are numbered here, by what a
// region was before the pause and is behind it.
#include <string.h>

#include "budget.h"
#include "crew.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "heapwalk.h"
#include "marks.h"
#include "os.h"
#include "ramp_parts.h"
#include "recording.h"

// What a reader who began with the ramp does not know, by the index of a region: [bottom, to), if to is not 0, and the
// hole that lost epochs have left, which is counted already. What the region gains later comes with births and moves.
struct pending {
    uint64_t *to;
    struct range *hole;
};
static PER_RECORDING struct pending now, next;
static PER_RECORDING uint32_t nregions;

static PER_RECORDING uint32_t *number;  // of a region: it changes when that is emptied
static PER_RECORDING struct committed { // at the newest finish that was committed
    uint64_t top;                       // 0: no object of the state is in it
    uint64_t hole;                      // where its hole ends; 0: it had none
    uint32_t number;
} * at_commit;

static bool init(uint32_t *most) {
    nregions = heapmap()->areas();
    *most = 2 * nregions;
    struct pending *p[] = {&now, &next};
    for (int i = 0; i < 2; i++) {
        p[i]->to = memory(nregions * sizeof *p[i]->to);
        p[i]->hole = memory(nregions * sizeof *p[i]->hole);
        if (!p[i]->to || !p[i]->hole) return false;
    }
    number = memory(nregions * sizeof *number);
    at_commit = memory(nregions * sizeof *at_commit);
    return number && at_commit;
}

static uint64_t bottom_of(uint32_t i) { return (uint64_t)vm.heap_base + i * vm.region_bytes; }

static void clear(struct pending *p) {
    memset(p->to, 0, nregions * sizeof *p->to);
    memset(p->hole, 0, nregions * sizeof *p->hole);
}

static void forget(void) { clear(&now); }

static void go_on(void) {
    memcpy(next.to, now.to, nregions * sizeof *now.to);
    memcpy(next.hole, now.hole, nregions * sizeof *now.hole);
}

static void none(void) { clear(&next); }

static void keep(void) {
    struct pending t = now;
    now = next;
    next = t;
}

static bool in_state(uint32_t kind) { return kind != HC_SPACE_FREE && kind != HC_SPACE_EDEN; }

static void emptied(const struct heapmaps *m, bool evac) {
    for (uint32_t i = 0; i < regions_in_both(m); i++) {
        uint32_t was = m->start.area[i].kind;
        if (!in_state(was) || (was == m->finish.area[i].kind && !(evac && was == HC_SPACE_SURVIVOR))) continue;
        number[i]++;
        now.to[i] = 0;
        now.hole[i] = (struct range){0, 0};
    }
}

static const uint64_t *uncounted(void) { return now.to; }

// Where the objects of the state end that begin in a region; its bottom if there is none.
static uint64_t end_of(const struct heapmap *m, uint32_t i) {
    const struct area *a = &m->area[i];
    if (i >= m->n || !in_state(a->kind) || a->kind == HC_SPACE_HUMONGOUS_CONT) return bottom_of(i);
    return a->kind == HC_SPACE_HUMONGOUS ? humongous_end(a->bottom) : a->top;
}

static void put_lost(struct enc *e, const struct heapmaps *m, uint64_t since) {
    const struct heapmap *last = &m->last;
    struct ranges r = {.e = e};
    put8(e, HC_EV_LOST);
    put_u(e, since);
    uint8_t *at = blob_begin(e, HC_EV_CLEARED);
    for (uint32_t i = 0; i < nregions; i++)
        if (at_commit[i].top && at_commit[i].number != number[i]) ranges_add(&r, bottom_of(i), at_commit[i].top);
    ranges_end(&r);
    blob_end(e, at);
    at = blob_begin(e, HC_EV_UNKNOWN);
    r.prev = 0;
    for (uint32_t i = 0; i < last->n; i++) {
        uint64_t from = bottom_of(i), to = end_of(last, i);
        bool same = at_commit[i].top && at_commit[i].number == number[i];
        if (same && last->area[i].kind == HC_SPACE_HUMONGOUS) continue;
        if (same) from = at_commit[i].top;
        if (to <= from) continue;
        struct range *h = &now.hole[i];
        if (same && at_commit[i].hole) from = at_commit[i].hole; // one a region: what lies between is listed again
        ranges_add(&r, from, to);
        if (h->lo == h->hi) h->lo = from;
        h->hi = to;
    }
    ranges_end(&r);
    blob_end(e, at);
}

// What this pause has granted itself has no header yet: it is born in the next one.
static void begin(struct heapmaps *m) {
    struct heapmap *f = &m->finish;
    if (!graves_known) graves_begin(f->n);
    clear(&next);
    for (uint32_t i = 0; i < f->n; i++) {
        if (humongous_new(m, i)) f->area[i].kind = HC_SPACE_FREE;
        uint64_t end = end_of(f, i);
        if (end > bottom_of(i)) next.to[i] = end;
    }
}

static void put_pending(struct ranges *r, const struct heapmap *m) {
    for (uint32_t i = 0; i < m->n; i++)
        if (next.to[i]) ranges_add(r, bottom_of(i), next.to[i]);
}

// One region, or its hole: all of it or nothing, and stopped. The first one of a slice has no end of time.
static void list_region(struct walker *w, struct range *r, bool hole, struct part *p) {
    struct enc *e = w->e, before = *e;
    const struct walker was = *w;
    const uint64_t objects = p->objects, bytes = p->bytes;
    bool stopped = false;
    if (!p->walked) list_until = 0;
    uint64_t stop = hole ? walk_list_part(w, r->lo, r->hi, &p->objects, &p->bytes, &stopped)
                         : walk_list_living(w, r->lo, r->hi, &p->objects, &p->bytes, &stopped);
    if (stop == r->hi) {
        part_done(p, r->lo, r->hi);
        p->walked += r->hi - r->lo;
        return;
    }
    if (!stopped && !e->over) unknown_class("a class word in a region is unknown", stop);
    *e = before, *w = was;
    p->objects = objects, p->bytes = bytes, p->stopped = true;
}

// Whether there is time for one more.
static bool there_is_time(const struct slice *s, const struct part *p, uint64_t bytes) {
    list_until = s->until;
    return !p->walked || now_ns() + budget_guess(bytes) < s->until;
}

// Regions that are listed as a whole before survivor regions are: their order is that of crew_add.
static bool for_crew(const struct heapmap *m, uint32_t i) {
    uint32_t kind = m->area[i].kind;
    return next.to[i] > bottom_of(i) && kind != HC_SPACE_SURVIVOR && kind != HC_SPACE_HUMONGOUS;
}

// The crew begins where this slice is expected to end.
static void call_crew(const struct heapmap *m, uint64_t until) {
    uint64_t t = now_ns(), may = until > t ? until - t : 0, bytes = 0;
    uint32_t end = 0;
    for (; end < m->n && budget_guess(bytes) < may; end++)
        if (for_crew(m, end)) bytes += next.to[end] - bottom_of(end);
    if (!crew_call(CREW_LIST, bytes, m)) return;
    for (uint32_t i = 0; i < end; i++)
        if (for_crew(m, i)) crew_add(bottom_of(i), next.to[i]);
    crew_start();
}

// Whether the crew has listed region i. Where time has ended that is all that can still be had.
static bool crew_listed(struct walker *w, const struct heapmap *m, uint32_t i, struct part *p) {
    uint64_t lo = bottom_of(i), hi = next.to[i];
    if (!crew_is_called() || !for_crew(m, i)) return false;
    if (p->stopped) list_until = 0;
    if (!crew_took(w, lo, hi, &p->objects, &p->bytes)) return false;
    part_done(p, lo, hi);
    p->walked += hi - lo;
    next.to[i] = 0;
    return true;
}

static void list_regions(struct walker *w, const struct slice *s, struct part *p, bool holes, bool young) {
    const struct heapmap *m = &s->maps->finish;
    for (uint32_t i = 0; i < m->n && (!p->stopped || crew_is_called()); i++) {
        uint32_t kind = m->area[i].kind;
        struct range r = holes ? next.hole[i] : (struct range){bottom_of(i), next.to[i]};
        if (r.hi <= r.lo || (kind == HC_SPACE_SURVIVOR) != young || crew_listed(w, m, i, p) || p->stopped) continue;
        if (kind == HC_SPACE_HUMONGOUS) {
            uint64_t walked = p->walked;
            list_region(w, &r, true, p);
            p->walked = walked;
        } else if (there_is_time(s, p, r.hi - r.lo)) {
            list_region(w, &r, holes, p);
        } else {
            p->stopped = true;
        }
        if (p->stopped) continue;
        if (holes)
            next.hole[i] = (struct range){0, 0};
        else
            next.to[i] = 0;
    }
}

// Survivor regions come last: the next collection tells where all of them go.
static void list(struct enc *e, const struct slice *s, struct part *p) {
    for (int holes = 0; holes < 2 && !p->stopped; holes++) {
        uint8_t *at = blob_begin(e, holes ? HC_EV_AGAIN : HC_EV_LIST);
        struct walker w = walker_on(e, NULL);
        if (!holes) call_crew(&s->maps->finish, s->until);
        list_regions(&w, s, p, holes, false);
        crew_stop();
        list_regions(&w, s, p, holes, true);
        blob_end(e, at);
    }
    list_until = 0;
    if (p->stopped && !p->n) e->over = true; // not even one has room
}

static uint64_t left(const struct heapmap *m, bool without_lost) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (next.to[i]) n += next.to[i] - bottom_of(i);
        if (!without_lost) n += next.hole[i].hi - next.hole[i].lo;
    }
    return n;
}

static void committed(const struct heapmap *m) {
    for (uint32_t i = 0; i < nregions; i++) {
        const struct area *a = &m->area[i];
        at_commit[i] = (struct committed){i < m->n && in_state(a->kind) ? a->top : 0, now.hole[i].hi, number[i]};
    }
}

const struct ramp_parts ramp_g1 = {init,        forget, emptied, uncounted, put_lost, begin,
                                   go_on,       none,   put_pending, list,   left,  keep, committed};
