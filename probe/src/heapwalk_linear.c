//go:build ignore

// heapwalk_linear.c: heapwalk.h for Serial and Parallel.
#include "heapwalk.h"

#include "crew.h"
#include "crewmoves.h"
#include "guard.h"
#include "recording.h"

PER_RECORDING struct cuts heap_cuts[SPACES];

// The part of [*lo, hi) up to the next cut. False: *lo is hi.
static bool next_part(int space, uint64_t *lo, uint64_t hi, struct piece *p) {
    if (*lo >= hi) return false;
    const struct cuts *c = &heap_cuts[space];
    p->lo = *lo, p->hi = hi;
    for (uint32_t i = 0; i < c->n && p->hi == hi; i++)
        if (c->at[i] > *lo && c->at[i] < hi) p->hi = c->at[i];
    *lo = p->hi;
    return true;
}

// Eden that survived the pause: nothing was evacuated from it (promotion failure).
static bool emptied(const struct heapmaps *m) {
    const struct area *s = &m->start.area[EDEN], *f = &m->finish.area[EDEN];
    return !(s->top > s->bottom && f->top == s->top && f->bottom == s->bottom);
}

// Parallel gives memory back when it makes the young generation smaller, at its upper end, where survivors may have
// been: what they have left there cannot be read any more.
static bool given_back(const struct heapmaps *m, const struct area *s) {
    uint64_t end = m->finish.area[EDEN].end;
    for (int i = FROM; i <= TO; i++)
        if (m->finish.area[i].end > end) end = m->finish.area[i].end;
    return used(s) && s->top > end;
}

static bool parts(int space, uint64_t lo, uint64_t hi, int source, walk_piece *each, void *arg) {
    struct piece p = {.source = source, .area = (uint32_t)space};
    bool ok = true;
    while (next_part(space, &lo, hi, &p)) ok &= each(arg, &p);
    return ok;
}

static bool moves(const struct heapmaps *m, bool evac, walk_piece *each, void *arg) {
    const struct area *s = m->start.area;
    if (!evac) return true;
    if (given_back(m, &s[FROM]) || given_back(m, &s[TO])) return false;
    bool ok = parts(FROM, s[FROM].bottom, survivors_top(m, &s[FROM]), SRC_FROM, each, arg);
    return parts(TO, s[TO].bottom, s[TO].top, SRC_FROM, each, arg) && ok;
}

static bool eden(const struct heapmaps *m, walk_piece *each, void *arg) {
    const struct area *s = &m->start.area[EDEN], *from = &m->start.area[FROM];
    if (given_back(m, s)) return false;
    bool ok = parts(EDEN, s->bottom, s->top, SRC_EDEN, each, arg);
    return parts(FROM, survivors_top(m, from), from->top, SRC_EDEN, each, arg) && ok;
}

// Returns where it had to stop.
static uint64_t born(struct walker *w, int space, uint64_t lo, uint64_t hi, bool young) {
    struct piece p;
    uint64_t stop = lo;
    while (next_part(space, &lo, hi, &p)) {
        stop = crewmoves_births(w, p.lo, p.hi, young);
        if (stop == p.hi) continue;
        if (p.hi != hi) unknown_class("a class word between two objects is unknown", stop);
        return stop;
    }
    return stop;
}

static void add_births(int space, uint64_t lo, uint64_t hi, bool young) {
    struct piece p;
    while (next_part(space, &lo, hi, &p)) crew_add_births(p.lo, p.hi, young);
}

static void births(struct walker *w, struct heapmaps *m, bool evac) {
    const struct area *last = &m->last.area[OLD], *s = &m->start.area[OLD], *from = &m->finish.area[FROM];
    struct area *f = &m->finish.area[OLD];
    if (s->bottom != last->bottom || s->top < last->top || f->top < s->top) violation("old space shrank", s->top);
    if (walk_births(w, last->top, s->top, false, true) != s->top)
        unknown_class("a class word in old space is unknown", last->top);
    if (crew_call(CREW_BIRTHS, (evac ? used(from) : 0) + f->top - s->top, &m->finish)) {
        if (evac) add_births(FROM, from->bottom, from->top, true);
        add_births(OLD, s->top, f->top, false);
        crew_start();
    }
    if (evac) {
        uint64_t stop = born(w, FROM, from->bottom, from->top, true);
        if (stop != from->top) unknown_class("a class word in survivor space is unknown", stop);
    }
    f->top = born(w, OLD, s->top, f->top, false);
    crew_stop();
}

static void add_list(int space, uint64_t lo, uint64_t hi) {
    struct piece p;
    while (next_part(space, &lo, hi, &p)) crew_add(p.lo, p.hi);
}

static void call_crew(const struct heapmap *m) {
    const struct area *from = &m->area[FROM], *old = &m->area[OLD];
    if (!crew_call(CREW_LIST, used(from) + used(old), m)) return;
    add_list(FROM, from->bottom, from->top);
    add_list(OLD, old->bottom, old->top);
    crew_start();
}

// Returns where it had to stop.
static uint64_t list_space(struct walker *w, int space, const struct area *a, struct listed *sum) {
    struct piece p;
    uint64_t lo = a->bottom, stop = lo;
    while (!w->e->over && next_part(space, &lo, a->top, &p)) {
        if (crew_took(w, p.lo, p.hi, &sum->objects, &sum->bytes)) {
            stop = p.hi;
            continue;
        }
        stop = walk_list(w, p.lo, p.hi, &sum->objects, &sum->bytes);
        if (stop == p.hi) continue;
        if (p.hi != a->top && !w->e->over) unknown_class("a class word between two objects is unknown", stop);
        return stop;
    }
    return stop;
}

static void list(struct walker *w, struct heapmaps *m, bool with_eden, struct listed *sum) {
    struct enc *e = w->e;
    struct area *f = m->finish.area;
    uint64_t known = m->finish.eden_known; // what came later is in no state before the next collection
    call_crew(&m->finish);
    m->finish.eden_known = f[EDEN].bottom;
    if (with_eden && known >= f[EDEN].bottom && known <= f[EDEN].top) {
        uint64_t stop = walk_list(w, f[EDEN].bottom, known, &sum->objects, &sum->bytes);
        if (!e->over) m->finish.eden_known = stop;
    }
    uint64_t stop = list_space(w, FROM, &f[FROM], sum);
    if (stop != f[FROM].top && !e->over) {
        if (!with_eden || !vm_has_unformatted_survivors())
            unknown_class("a class word in survivor space is unknown", stop);
        f[FROM].top = stop;
    }
    stop = list_space(w, OLD, &f[OLD], sum);
    if (!e->over) f[OLD].top = stop;
    crew_stop();
}

const struct heapwalk heapwalk_linear = {emptied, moves, eden, NULL, births, NULL, list};
