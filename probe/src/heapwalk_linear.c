//go:build ignore

// heapwalk_linear.c: heapwalk.h for Serial and Parallel.
#include "heapwalk.h"

#include "guard.h"
#include "recording.h"

PER_RECORDING uint64_t eden_starts[STARTS];
PER_RECORDING uint32_t neden_starts;

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

static bool moves(struct walker *w, const struct heapmaps *m, bool evac) {
    const struct area *s = m->start.area;
    bool ok = true;
    if (evac && (given_back(m, &s[FROM]) || given_back(m, &s[TO]))) return false;
    if (evac && used(&s[FROM])) ok &= walk_moves(w, s[FROM].bottom, s[FROM].top, SRC_FROM, uncounted_in(w, FROM));
    if (evac && used(&s[TO])) ok &= walk_moves(w, s[TO].bottom, s[TO].top, SRC_FROM, uncounted_in(w, TO));
    return ok;
}

static bool eden(const struct heapmaps *m, bool (*each)(void *arg, uint64_t lo, uint64_t hi), void *arg) {
    const struct area *s = &m->start.area[EDEN];
    if (!used(s)) return true;
    if (given_back(m, s)) return false;
    uint64_t lo = s->bottom;
    bool ok = true;
    for (uint32_t i = 0; i < neden_starts; i++) {
        if (eden_starts[i] <= lo || eden_starts[i] >= s->top) continue;
        ok &= each(arg, lo, eden_starts[i]);
        lo = eden_starts[i];
    }
    return each(arg, lo, s->top) && ok;
}

static void births(struct walker *w, struct heapmaps *m, bool evac) {
    const struct area *last = &m->last.area[OLD], *s = &m->start.area[OLD], *from = &m->finish.area[FROM];
    struct area *f = &m->finish.area[OLD];
    if (s->bottom != last->bottom || s->top < last->top || f->top < s->top) violation("old space shrank", s->top);
    if (walk_births(w, last->top, s->top, false, true) != s->top)
        unknown_class("a class word in old space is unknown", last->top);
    if (evac) {
        uint64_t stop = walk_births(w, from->bottom, from->top, true, false);
        if (stop != from->top) unknown_class("a class word in survivor space is unknown", stop);
    }
    f->top = walk_births(w, s->top, f->top, false, false);
}

static void list(struct walker *w, struct heapmaps *m, bool with_eden, struct listed *sum) {
    struct enc *e = w->e;
    struct area *f = m->finish.area;
    uint64_t known = m->finish.eden_known; // what came later is in no state before the next collection
    m->finish.eden_known = f[EDEN].bottom;
    if (with_eden && known >= f[EDEN].bottom && known <= f[EDEN].top) {
        uint64_t stop = walk_list(w, f[EDEN].bottom, known, &sum->objects, &sum->bytes);
        if (!e->over) m->finish.eden_known = stop;
    }
    uint64_t stop = walk_list(w, f[FROM].bottom, f[FROM].top, &sum->objects, &sum->bytes);
    if (stop != f[FROM].top && !e->over) {
        if (!with_eden || !vm_has_unformatted_survivors())
            unknown_class("a class word in survivor space is unknown", stop);
        f[FROM].top = stop;
    }
    stop = walk_list(w, f[OLD].bottom, f[OLD].top, &sum->objects, &sum->bytes);
    if (!e->over) f[OLD].top = stop;
}

const struct heapwalk heapwalk_linear = {emptied, moves, eden, NULL, births, NULL, list};
