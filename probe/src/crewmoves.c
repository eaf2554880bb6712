//go:build ignore

// crewmoves.c: threads of the pool walk ranges of eden. They write tokens, and note what the VM thread does with its
// own walk in passing: where objects arrived, and how many of which type.
#include "crewmoves.h"

#include "census.h"
#include "crewmates.h"
#include "marks.h"
#include "options.h"
#include "pool.h"

static bool count(struct mate *m, uint32_t type, bool old, uint64_t bytes) {
    enum { TRIES = 16 };
    for (uint32_t i = type, tries = 0; tries < TRIES; i++, tries++) {
        struct count *c = &m->counts[i & (COUNTS - 1)];
        if (!LIKELY(c->type == type)) {
            if (c->type) continue;
            *c = (struct count){.type = type};
            m->touched[m->ntouched++] = i & (COUNTS - 1);
        }
        c->n[old]++;
        c->bytes[old] += bytes;
        return true;
    }
    return false;
}

static void count_anew(struct mate *m) {
    for (uint32_t i = 0; i < m->ntouched; i++) m->counts[m->touched[i]].type = 0;
    m->ntouched = 0;
}

// Runs and counts lie at the end of the buffer, downwards; the tokens at its beginning.
struct notes {
    struct run *last, *first;
};

HOT void note(struct notes *to, struct run r) {
    if (r.n) *--to->first = r;
}

static bool hand_over(struct mate *m, struct unit *u, struct notes *runs, const uint8_t *from, uint8_t *p) {
    struct count *c = (struct count *)(void *)runs->first;
    if ((uint8_t *)(c - m->ntouched) < p) return false;
    for (uint32_t i = 0; i < m->ntouched; i++) *--c = m->counts[m->touched[i]];
    u->tokens = from, u->n = (uint64_t)(p - from);
    u->runs = runs->first, u->nruns = (uint64_t)(runs->last - runs->first);
    u->counts = c, u->ncounts = m->ntouched;
    if (!crew_finished(u)) return false;
    m->used = (uint64_t)(p - m->buffer);
    m->most = (uint64_t)((uint8_t *)c - m->buffer) & ~(uint64_t)15;
    return true;
}

// Like moves of walk.c with SRC_EDEN. What that one does not understand is left to it.
HOT bool walk(int lay, struct mate *m, struct unit *u, const struct heapmap *after, uint32_t job) {
    enum { LOOKS = 512 }; // objects between two looks at the job
    const uint64_t base = (uint64_t)vm.heap_base, heap = vm.heap_bytes, round = ~(vm.align - 1), hi = u->hi;
    const struct old_space old_space = old_space_of(after);
    uint8_t *const begin = m->buffer + m->used, *p = begin;
    struct run *const last = (struct run *)(void *)(m->buffer + m->most), left = {0, 0};
    struct notes runs = {last, last};
    struct run gone = left;
    struct lanes lanes = {.k = 0};
    struct hot spare;
    uint64_t a = u->lo, skip = 0, prev_dst = 0;
    uint32_t h = 0, look = LOOKS;
    uint64_t hole = next_hole(&h, a);
    while (a < hi) {
        if (!LIKELY(a != hole)) {
            skip += (holes[h].hi - a) >> 3;
            a = holes[h++].hi;
            hole = next_hole(&h, a);
            continue;
        }
        if (!LIKELY((uint8_t *)runs.first - p > 2 * TOKEN + 8 * (int64_t)sizeof gone)) return false;
        if (!LIKELY(--look)) {
            if (!pool_works(job)) return false;
            look = LOOKS;
        }
        __builtin_prefetch((void *)(a + AHEAD));
        const uint64_t mark = rd64((void *)a);
        uint32_t len;
        uint64_t bytes;
        const struct hot *o = object_in(m->hots, lay, a, mark, round, &spare, &len, &bytes);
        if (!LIKELY(o && bytes <= hi - a)) return false;
        if ((mark & 3) == 3) {
            const uint64_t d = mark & ~7ull;
            if (!LIKELY(d != a && !(mark & 4) && d - base < heap && bytes <= heap - (d - base) && !(d & ~round)))
                return false;
            if (skip) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
            p = put_survivor(&lanes, p, o, len, (d - base) >> 3, bytes >> 3, &prev_dst, &gone);
            note(&runs, gone);
            if (!LIKELY(count(m, o->type, lands_in_old(&old_space, d), bytes))) return false;
        } else {
            if (!LIKELY(!skip)) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
            p = put4(p, o->tok | HC_TOK_DEAD, o->ntok);
            p = put_len(p, o, len);
        }
        a += bytes;
    }
    if (a != hi) return false;
    for (int i = 0; i < 4; i++) note(&runs, lane_ends(&lanes, i));
    *p++ = HC_TOK_END;
    return hand_over(m, u, &runs, begin, p);
}

bool crewmoves_walk(struct mate *m, struct unit *u, const struct heapmap *after, uint32_t job) {
    count_anew(m);
#define CALL(lay) walk(lay, m, u, after, job)
    return FOR_LAYOUT(CALL);
#undef CALL
}

// ---- the VM thread's side ------------------------------------------------------------------------
void crewmoves_put(struct enc *e, const struct unit *u) {
    struct run r = {0, 0};
    put_s(e, (int64_t)WORD(u->lo));
    put_u(e, (u->hi - u->lo) >> 3);
    if (room(e, u->n)) { // else the epoch is lost, and the next one tells what is counted here
        __builtin_memcpy(e->p, u->tokens, u->n);
        e->p += u->n;
    }
    for (uint64_t i = 0; i < u->nruns; i++) r = u->runs[i], walk_arrived(r.dw, r.n);
    for (uint64_t i = 0; i < u->ncounts; i++) {
        const struct count *c = &u->counts[i];
        for (int old = 0; old < 2; old++)
            if (c->n[old]) census_add(c->type, old ? 5 : 0, old ? BORN_OLD : BORN_YOUNG, c->n[old], c->bytes[old]);
    }
}

bool crewmoves_same(const struct enc *e, const uint8_t *from, const struct unit *u) {
    if (e->over) return true;
    const uint8_t *p = from;
    for (int i = 0; i < 2; i++) // where it begins, its words
        while (*p++ & 0x80) {}
    return (uint64_t)(e->p - p) == u->n && !__builtin_memcmp(p, u->tokens, u->n);
}
