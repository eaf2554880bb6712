//go:build ignore

// walk_list.c: listings, and other walks of memory that nothing was evacuated from.
#include "walk.h"

#include "census.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "marks.h"
#include "object.h"
#include "os.h"
#include "sidetable.h"
#include "tokens.h"

PER_RECORDING uint64_t list_until;

// How a listing knows what is dead: it does not, by what an earlier one has found, by the marks of the collector.
enum { ALL, GRAVES, MARKS };

// stopped: NULL, or what is set instead of over where time or room ends.
HOT uint64_t list(int lay, int how, struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes,
                  bool *stopped) {
    struct enc *e = w->e;
    const uint64_t round = ~(vm.align - 1);
    struct hot spare;
    uint64_t a = lo, n = 0, dead = 0, seen = lo;
    const uint64_t *bits = NULL;
    if (lo == hi) return hi;
    if (how == MARKS) bits = marks_of(lo, hi, &seen);
    put_s(e, (int64_t)(WORD(lo) - w->prev_end));
    if (e->over || e->end - e->p < TOKEN || (list_until && now_ns() > list_until)) {
        e->over = true;
        return a;
    }
    // The clock is looked at for each range, and within it each time that so many bytes have been written, some 100,000
    // objects; a slice, which takes no longer than that, looks more often.
    const int64_t pace = stopped ? 4 << 10 : 128 << 10;
    uint8_t *p = e->p, *const end = e->end - TOKEN, *limit = end - p > pace ? p + pace : end;
    while (a < hi) {
        uint32_t len;
        uint64_t size;
        __builtin_prefetch((void *)(a + AHEAD));
        if ((how == GRAVES && is_grave(a)) || (how == MARKS && a < seen && !LIKELY(is_marked(bits, a)))) {
            uint64_t next = how == GRAVES ? a + 8 * grave_words(a, hi) : marked_from(bits, a, seen);
            if (how == MARKS) grave_dig(a, next);
            *p++ = HC_LIST_SKIP;
            p = leb_long(p, (next - a) >> 3);
            dead += next - a;
            a = next;
            if (a == hi) break;
        }
        const struct hot *o = object(lay, a, rd64((void *)a), round, &spare, &len, &size);
        if (!LIKELY(o && size <= hi - a)) break;
        if (!LIKELY(p <= limit)) {
            if (p > end || (list_until && now_ns() > list_until)) {
                *(stopped ? stopped : &e->over) = true;
                break;
            }
            limit = end - p > pace ? p + pace : end;
        }
        p = put4(p, o->list, o->nlist);
        p = put_len(p, o, len);
        a += size;
        n++;
    }
    e->p = p;
    put_u(e, HC_LIST_END);
    w->prev_end = WORD(a);
    if (how == MARKS && marks_clean && seen == hi && a == hi && marks_in(bits, lo, hi) != n) {
        marks_distrust();
        violation("a mark lies inside of an object", lo);
    }
    *objects += n;
    *bytes += a - lo - dead;
    return a;
}

uint64_t walk_list(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes) {
#define CALL(lay) list(lay, ALL, w, lo, hi, objects, bytes, NULL)
    return FOR_LAYOUT(CALL);
#undef CALL
}

uint64_t walk_list_part(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes, bool *stopped) {
    if (w->e->end - w->e->p < 2 * TOKEN || (list_until && now_ns() > list_until)) {
        *stopped = true;
        return lo;
    }
#define CALL(lay) list(lay, ALL, w, lo, hi, objects, bytes, stopped)
    return FOR_LAYOUT(CALL);
#undef CALL
}

uint64_t walk_list_living(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes,
                          bool *stopped) {
#define ANY(lay) list(lay, ALL, w, lo, hi, objects, bytes, stopped)
#define KNOWN(lay) list(lay, GRAVES, w, lo, hi, objects, bytes, stopped)
#define ASKED(lay) list(lay, MARKS, w, lo, hi, objects, bytes, stopped)
    if (!graves_ask(lo)) return graves_at(lo) ? FOR_LAYOUT(KNOWN) : FOR_LAYOUT(ANY);
    uint64_t a = FOR_LAYOUT(ASKED);
    if (a == hi) graves_asked(lo);
    return a;
#undef ANY
#undef KNOWN
#undef ASKED
}

void walk_dead(uint64_t lo, uint64_t hi, uint64_t uncounted) {
    bool dug = graves_at(lo);
    for (uint64_t a = lo; a < hi;) {
        if (dug && is_grave(a)) {
            a += 8 * grave_words(a, hi);
            continue;
        }
        struct obj o;
        if (!obj_at(a, rd64((void *)a), &o) || o.bytes > hi - a) return;
        census(o.type, 5, a < uncounted ? DIED_UNCOUNTED : DIED_OLD, o.bytes);
        a += o.bytes;
    }
}

bool walk_stale(uint64_t lo, uint64_t hi) {
    bool dug = graves_at(lo);
    for (uint64_t a = lo; a < hi;) {
        if (dug && is_grave(a)) {
            a += 8 * grave_words(a, hi);
            continue;
        }
        struct obj o;
        uint64_t mark = rd64((void *)a);
        if (!obj_at(a, mark, &o) || o.bytes > hi - a) return false;
        if (o.reused) {
            struct centry *c = class_lookup(word_of_object(a, mark));
            if (c && (c->type & TF_DEAD || o.type != (c->type & TYPE_MASK))) side_add(a, o.type);
            side_met(a);
        }
        a += o.bytes;
    }
    return true;
}
