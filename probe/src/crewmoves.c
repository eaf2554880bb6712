//go:build ignore

// crewmoves.c: threads of the pool walk what was evacuated, and where it arrived. They write tokens, and note what the
// VM thread does with its own walk in passing: where objects arrived, and how many of which type and age.
#include "crewmoves.h"

#include "crew.h"
#include "crewmates.h"
#include "guard.h"
#include "marks.h"
#include "shadow.h"

enum { LOOKS = 512 }; // objects between two looks at the job

// ---- the crew's side -----------------------------------------------------------------------------
HOT bool count(struct mate *m, uint32_t type, uint32_t bucket, int cell, uint64_t bytes) {
    enum { TRIES = 16 };
    for (uint32_t i = type * BUCKETS + bucket, tries = 0; tries < TRIES; i++, tries++) {
        struct crow *r = &m->rows[i & (ROWS - 1)];
        if (!LIKELY(r->type == type && r->bucket == bucket)) {
            if (r->type) continue;
            *r = (struct crow){.type = type, .bucket = bucket};
            m->touched[m->ntouched++] = i & (ROWS - 1);
        }
        r->cell[cell].n++;
        r->cell[cell].b += bytes;
        return true;
    }
    return false;
}

static void count_anew(struct mate *m) {
    for (uint32_t i = 0; i < m->ntouched; i++) m->rows[m->touched[i]].type = 0;
    m->ntouched = 0;
}

// Runs and rows lie at the end of the buffer, downwards; tokens at its beginning.
struct notes {
    struct run *last, *first;
};

static struct notes notes_of(const struct mate *m) {
    struct run *r = (struct run *)(void *)(m->buffer + m->most);
    return (struct notes){r, r};
}

HOT void note(struct notes *to, struct run r) {
    if (r.n) *--to->first = r;
}

// Whether there is room for one more object, and, at times, whether the VM thread still wants the range.
HOT bool goes_on(const struct notes *n, const uint8_t *p, uint32_t *look, const struct unit *u, uint32_t job) {
    if (!LIKELY((uint8_t *)n->first - p > 2 * TOKEN + 8 * (int64_t)sizeof(struct run))) return false;
    if (LIKELY(--*look)) return true;
    *look = LOOKS;
    return is_wanted(u, job);
}

static bool hand_over(struct mate *m, struct unit *u, struct notes *runs, const uint8_t *from, uint8_t *p) {
    struct crow *r = (struct crow *)(void *)runs->first;
    if ((uint8_t *)runs->first - p < (int64_t)((m->ntouched + 1) * sizeof *r)) return false;
    for (uint32_t i = 0; i < m->ntouched; i++) *--r = m->rows[m->touched[i]];
    u->tokens = from, u->n = (uint64_t)(p - from);
    u->runs = runs->first, u->nruns = (uint64_t)(runs->last - runs->first);
    u->rows = r, u->nrows = m->ntouched;
    if (!crew_finished(u)) return false;
    m->used = (uint64_t)(p - m->buffer);
    m->most = (uint64_t)((uint8_t *)r - m->buffer);
    return true;
}

// Like moves of walk.c. What that one does not understand is left to it.
HOT bool walk(int lay, int source, struct mate *m, struct unit *u, const struct heapmap *after, uint32_t job) {
    const uint64_t base = (uint64_t)vm.heap_base, heap = vm.heap_bytes, round = ~(vm.align - 1), hi = u->hi;
    const uint64_t uncounted = u->uncounted;
    const struct old_space old_space = old_space_of(after);
    const struct shadow_entries sites = source == SRC_EDEN ? shadow_entries() : (struct shadow_entries){NULL, 0};
    const bool dug = source == SRC_OLD && graves_at(u->lo);
    uint8_t *const begin = m->buffer + m->used, *p = begin;
    struct notes runs = notes_of(m);
    struct run left;
    struct lanes lanes = {.k = 0};
    struct hot spare;
    uint64_t a = u->lo, skip = 0, prev_dst = 0;
    uint32_t h = 0, look = LOOKS;
    uint64_t hole = source == SRC_EDEN ? next_hole(&h, a) : UINT64_MAX;
    while (a < hi) {
        if (source == SRC_EDEN && !LIKELY(a != hole)) {
            skip += (holes[h].hi - a) >> 3;
            a = holes[h++].hi;
            hole = next_hole(&h, a);
            continue;
        }
        if (source == SRC_OLD && !LIKELY(!dug || !is_grave(a))) {
            const uint64_t n = grave_words(a, hi);
            skip += n;
            a += n << 3;
            continue;
        }
        if (!LIKELY(goes_on(&runs, p, &look, u, job))) return false;
        __builtin_prefetch((void *)(a + AHEAD));
        const uint64_t mark = rd64((void *)a);
        uint32_t len;
        uint64_t bytes;
        bool ok = true;
        const struct hot *o = object_in(m->hots, lay, a, mark, round, &spare, &len, &bytes);
        if (!LIKELY(o && bytes <= hi - a)) return false;
        if ((mark & 3) == 3) {
            const uint64_t d = mark & ~7ull;
            if (!LIKELY(d != a && !(mark & 4) && d - base < heap && bytes <= heap - (d - base) && !(d & ~round)))
                return false;
            if (skip) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
            p = put_survivor(&lanes, p, o, len, (d - base) >> 3, bytes >> 3, &prev_dst, &left);
            note(&runs, left);
            if (source == SRC_EDEN && sites.table)
                note(&runs, (struct run){(d - base) >> 3, shadow_found(sites, a + bytes - base, o->type)});
            const bool old = source != SRC_OLD && lands_in_old(&old_space, d);
            if (source == SRC_EDEN)
                ok = count(m, o->type, old ? 5 : 0, old ? BORN_OLD : BORN_YOUNG, bytes);
            else if (source == SRC_FROM && old)
                ok = count(m, o->type, 1, PROMOTED, bytes);
            if (source != SRC_EDEN && a < uncounted)
                ok = ok && count(m, o->type, source == SRC_OLD ? 5 : 1, GAINED, bytes);
        } else if (source == SRC_EDEN) {
            if (!LIKELY(!skip)) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
            p = put4(p, o->tok | HC_TOK_DEAD, o->ntok);
            p = put_len(p, o, len);
        } else {
            skip += bytes >> 3;
            ok = count(m, o->type, source == SRC_OLD ? 5 : age_bucket(mark),
                       a < uncounted ? DIED_UNCOUNTED : source == SRC_OLD ? DIED_OLD : DIED_YOUNG, bytes);
        }
        if (!LIKELY(ok)) return false;
        a += bytes;
    }
    if (a != hi) return false;
    for (int i = 0; i < 4; i++) note(&runs, lane_ends(&lanes, i));
    *p++ = HC_TOK_END;
    return hand_over(m, u, &runs, begin, p);
}

bool crewmoves_walk(struct mate *m, struct unit *u, const struct heapmap *after, uint32_t job) {
    count_anew(m);
#define CALL(lay)                                                                                                      \
    (u->source == SRC_EDEN   ? walk(lay, SRC_EDEN, m, u, after, job)                                                   \
     : u->source == SRC_FROM ? walk(lay, SRC_FROM, m, u, after, job)                                                   \
                             : walk(lay, SRC_OLD, m, u, after, job))
    return FOR_LAYOUT(CALL);
#undef CALL
}

// How many words that have arrived follow one another from dw on: at most most.
HOT uint64_t arrived(const uint64_t *bits, uint64_t dw, uint64_t most) {
    uint64_t i = dw >> 6, sh = dw & 63, n = 0;
    for (;; i++, sh = 0) {
        uint64_t x = ~(bits[i] >> sh), k = x ? (uint64_t)__builtin_ctzll(x) : 64;
        if (k > 64 - sh) k = 64 - sh;
        n += k;
        if (sh + k < 64 || n >= most) return n < most ? n : most;
    }
}

// Like births of walk.c, whose bits stay: the VM thread clears them.
HOT bool look(int lay, struct mate *m, struct unit *u, uint32_t job) {
    const uint64_t base = (uint64_t)vm.heap_base, round = ~(vm.align - 1), hi = u->hi, *const bits = walk_dest();
    uint8_t *const begin = m->buffer + m->used, *p = begin;
    struct notes none = notes_of(m);
    struct hot spare;
    uint64_t a = u->lo, skip = 0, met = 0, end = 0;
    uint32_t look = LOOKS;
    while (a < hi) {
        const uint64_t dw = (a - base) >> 3;
        if (bits[dw >> 6] >> (dw & 63) & 1) {
            const uint64_t n = arrived(bits, dw, (hi - a) >> 3);
            skip += n;
            met += n;
            a += n << 3;
            continue;
        }
        if (!LIKELY(goes_on(&none, p, &look, u, job))) return false;
        __builtin_prefetch((void *)(a + AHEAD));
        const uint64_t mark = rd64((void *)a);
        uint32_t len;
        uint64_t bytes;
        const struct hot *o = object_in(m->hots, lay, a, mark, round, &spare, &len, &bytes);
        if (!LIKELY(o && bytes <= hi - a)) return false;
        if (!LIKELY(p != begin)) {
            u->begin = dw;
        } else if (skip) {
            *p++ = HC_LIST_SKIP;
            p = leb_long(p, skip);
        }
        skip = 0;
        p = put4(p, o->list, o->nlist);
        p = put_len(p, o, len);
        end = dw + (bytes >> 3);
        if (!LIKELY(count(m, o->type, u->young ? age_bucket(mark) : 5, u->young ? BORN_YOUNG : BORN_OLD, bytes)))
            return false;
        a += bytes;
    }
    u->end = end, u->met = met;
    return hand_over(m, u, &none, begin, p);
}

bool crewmoves_look(struct mate *m, struct unit *u, uint32_t job) {
    count_anew(m);
#define CALL(lay) look(lay, m, u, job)
    return FOR_LAYOUT(CALL);
#undef CALL
}

// ---- the VM thread's side ------------------------------------------------------------------------
// Without room the epoch is lost, and the next one tells what this one has counted.
static void put_tokens(struct enc *e, const struct unit *u) {
    if (!room(e, u->n)) return;
    __builtin_memcpy(e->p, u->tokens, u->n);
    e->p += u->n;
}

static void add_rows(const struct unit *u) {
    for (uint64_t i = 0; i < u->nrows; i++) {
        const struct crow *r = &u->rows[i];
        for (int c = 0; c <= GAINED; c++)
            if (r->cell[c].n) census_add(r->type, r->bucket, c, r->cell[c].n, r->cell[c].b);
    }
}

void crewmoves_put(struct enc *e, const struct unit *u) {
    put_s(e, (int64_t)WORD(u->lo));
    put_u(e, (u->hi - u->lo) >> 3);
    put_tokens(e, u);
    for (uint64_t i = 0; i < u->nruns; i++)
        if (u->runs[i].n & SHADOW_FOUND)
            shadow_find(u->runs[i].dw, u->runs[i].n);
        else
            walk_arrived(u->runs[i].dw, u->runs[i].n);
    add_rows(u);
}

// Whether the VM thread has written what u has, behind so many numbers.
static bool same(const uint8_t *from, const uint8_t *to, const struct unit *u, int numbers) {
    for (int i = 0; i < numbers; i++)
        while (*from++ & 0x80) {}
    return (uint64_t)(to - from) == u->n && !__builtin_memcmp(from, u->tokens, u->n);
}

bool crewmoves_same(const struct enc *e, const uint8_t *from, const struct unit *u) {
    return e->over || same(from, e->p, u, 2);
}

uint64_t crewmoves_births(struct walker *w, uint64_t lo, uint64_t hi, bool young) {
    struct enc *e = w->e;
    bool again = false;
    const struct unit *u = crew_walked(lo, hi, &again);
    if (!u || again) {
        const uint8_t *from = e->p;
        const uint64_t stop = walk_births(w, lo, hi, young, false);
        if (u && !e->over) crew_differs(e->p == from ? u->n > 0 : !same(from, e->p - 1, u, 1)); // 1: HC_LIST_END
        return stop;
    }
    if (walk_met(lo, hi) != u->met) violation("a destination is not the start of an object", lo);
    add_rows(u);
    if (!u->n) return hi;
    put_s(e, (int64_t)(u->begin - w->prev_end));
    put_tokens(e, u);
    put_u(e, HC_LIST_END);
    w->prev_end = u->end;
    return hi;
}
