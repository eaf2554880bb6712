//go:build ignore

// walk.c: walks of evacuated memory, and of what is new elsewhere.
#include "walk.h"

#include "census.h"
#include "evacuated.h"
#include "guard.h"
#include "marks.h"
#include "object.h"
#include "os.h"
#include "recording.h"
#include "shadow.h"

// One bit a word of heap: belongs to an object that the walk of evacuated memory has seen arrive there. A walk of the
// place where it arrived steps over a run of such bits without touching the memory, which another core has just
// written.
static PER_RECORDING uint64_t *dest;
static PER_RECORDING size_t dest_bytes;
static PER_RECORDING uint64_t ndest; // bits set

bool dest_init(void) {
    dest_bytes = (vm.heap_bytes >> 6) + 16;
    dest = memory_sparse(dest_bytes);
    return dest != NULL;
}

// After a fault nobody knows which bits are set: give the pages back.
void dest_reset(void) {
    if (ndest) os_give_back(dest, dest_bytes);
    ndest = 0;
}

HOT void dest_set(uint64_t *bits, uint64_t dw, uint64_t n) {
    uint64_t i = dw >> 6, sh = dw & 63;
    bits[i] |= (n >= 64 ? ~0ull : (1ull << n) - 1) << sh;
    if (LIKELY(sh + n <= 64)) return;
    for (n -= 64 - sh; n >= 64; n -= 64) bits[++i] = ~0ull;
    if (n) bits[++i] |= (1ull << n) - 1;
}

HOT void dest_set_lanes(uint64_t *bits, struct lanes *l) { // what they have seen last
    for (int i = 0; i < 4; i++) {
        const struct run left = lane_ends(l, i);
        if (left.n) dest_set(bits, left.dw, left.n);
    }
}

HOT bool dest_has(const uint64_t *bits, uint64_t dw) { return bits[dw >> 6] >> (dw & 63) & 1; }

// The length of the run of bits that begins at dw, which is cleared: at most most. Where a region is full to its end,
// the run continues in the next one.
HOT uint64_t dest_take(uint64_t *bits, uint64_t dw, uint64_t most) {
    uint64_t i = dw >> 6, sh = dw & 63, n = 0;
    for (;; i++, sh = 0) {
        uint64_t x = ~(bits[i] >> sh), k = x ? (uint64_t)__builtin_ctzll(x) : 64;
        if (k > 64 - sh) k = 64 - sh;
        if (k > most - n) k = most - n;
        bits[i] &= ~((k >= 64 ? ~0ull : (1ull << k) - 1) << sh);
        n += k;
        if (sh + k < 64 || n == most) break;
    }
    return n;
}

// Where the tokens of an epoch go that has no room: it is walked to its end for what it counts.
static PER_RECORDING uint8_t nowhere[4096];

HOT bool moves(int lay, int source, struct walker *w, uint64_t lo, uint64_t hi, uint64_t uncounted) {
    struct enc *e = w->e;
    put_s(e, (int64_t)(WORD(lo) - w->prev_end));
    put_u(e, (hi - lo) >> 3);
    w->prev_end = WORD(hi);
    const uint64_t base = (uint64_t)vm.heap_base, heap = vm.heap_bytes, round = ~(vm.align - 1);
    const struct old_space old_space = old_space_of(w->map);
    struct hot spare;
    struct run left;
    uint64_t *const bits = dest, a = lo, skip = 0, prev_dst = w->prev_dst, words = 0;
    const struct shadow_entries sites = source == SRC_EDEN ? shadow_entries() : (struct shadow_entries){NULL, 0};
    uint32_t h = 0;
    bool ok = true, dug = source == SRC_OLD && graves_at(lo);
    uint64_t hole = source == SRC_EDEN ? next_hole(&h, lo) : UINT64_MAX;
    ndest++; // until the walk has come to its end: a fault may leave bits
    if (e->end - e->p < TOKEN) e->over = true;
    uint8_t *p = e->over ? nowhere : e->p, *limit = e->over ? nowhere + sizeof nowhere - TOKEN : e->end - TOKEN;
    while (a < hi) {
        if (source == SRC_EDEN && !LIKELY(a != hole)) {
            skip += (holes[h].hi - a) >> 3;
            a = holes[h++].hi;
            hole = next_hole(&h, a);
            continue;
        }
        if (source == SRC_OLD && !LIKELY(!dug || !is_grave(a))) {
            uint64_t n = grave_words(a, hi);
            skip += n;
            a += n << 3;
            continue;
        }
        if (!LIKELY(p <= limit)) { // the epoch is lost, and the next one tells what it has counted
            e->over = true;
            p = nowhere, limit = nowhere + sizeof nowhere - TOKEN;
        }
        __builtin_prefetch((void *)(a + AHEAD));
        uint64_t mark = rd64((void *)a);
        uint32_t len;
        uint64_t bytes;
        const struct hot *o = object(lay, a, mark, round, &spare, &len, &bytes);
        if (!LIKELY(o)) unknown_class("a class word in evacuated memory is unknown", a);
        if ((mark & 3) == 3) {
            uint64_t d = mark & ~7ull;
            if (!LIKELY(d != a && !(mark & 4))) {
                ok = false;
            } else {
                if (!LIKELY(d - base < heap && bytes <= heap - (d - base) && !(d & ~round)))
                    violation("a destination is not aligned or outside the heap", a);
                if (skip) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
                uint64_t dw = (d - base) >> 3;
                p = put_survivor(&w->lanes, p, o, len, dw, bytes >> 3, &prev_dst, &left);
                if (left.n) dest_set(bits, left.dw, left.n);
                if (source == SRC_EDEN && sites.table) shadow_find(dw, shadow_found(sites, a + bytes - base, o->type));
                words += bytes >> 3;
                bool old = source != SRC_OLD && lands_in_old(&old_space, d);
                if (source == SRC_EDEN)
                    census(o->type, old ? 5 : 0, old ? 1 : 0, bytes);
                else if (source == SRC_FROM && old)
                    census(o->type, 1, PROMOTED, bytes);
                if (source != SRC_EDEN && a < uncounted) census(o->type, source == SRC_OLD ? 5 : 1, GAINED, bytes);
            }
        } else if (source == SRC_EDEN) {
            if (!LIKELY(!skip)) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
            p = put4(p, o->tok | HC_TOK_DEAD, o->ntok);
            p = put_len(p, o, len);
        } else {
            skip += bytes >> 3;
            census(o->type, source == SRC_OLD ? 5 : age_bucket(mark),
                   a < uncounted ? DIED_UNCOUNTED : source == SRC_OLD ? DIED_OLD : DIED_YOUNG, bytes);
        }
        a += bytes;
    }
    dest_set_lanes(bits, &w->lanes);
    if (!e->over) e->p = p;
    w->prev_dst = prev_dst;
    ndest += words - 1;
    if (a != hi) violation("a walk of evacuated memory did not end at the top", a);
    put_u(e, HC_TOK_END);
    return ok;
}

bool walk_moves(struct walker *w, uint64_t lo, uint64_t hi, int source, uint64_t uncounted) {
    need_memory(lo, hi);
#define CALL(lay)                                                                                                      \
    (source == SRC_EDEN   ? moves(lay, SRC_EDEN, w, lo, hi, 0)                                                         \
     : source == SRC_FROM ? moves(lay, SRC_FROM, w, lo, hi, uncounted)                                                 \
                          : moves(lay, SRC_OLD, w, lo, hi, uncounted))
    return FOR_LAYOUT(CALL);
#undef CALL
}

HOT uint64_t births(int lay, struct walker *w, uint64_t lo, uint64_t hi, bool young, bool all) {
    struct enc *e = w->e;
    const uint64_t base = (uint64_t)vm.heap_base, round = ~(vm.align - 1);
    uint64_t *const bits = dest, a = lo, skip = 0, prev_end = w->prev_end, words = 0;
    struct hot spare;
    bool open = false;
    if (e->end - e->p < TOKEN) e->over = true;
    uint8_t *p = e->over ? nowhere : e->p, *limit = e->over ? nowhere + sizeof nowhere - TOKEN : e->end - TOKEN;
    while (a < hi) {
        uint64_t dw = (a - base) >> 3;
        if (!all && dest_has(bits, dw)) {
            uint64_t n = dest_take(bits, dw, (hi - a) >> 3);
            skip += n;
            words += n;
            a += n << 3;
            continue;
        }
        if (!LIKELY(p <= limit)) {
            e->over = true;
            p = nowhere, limit = nowhere + sizeof nowhere - TOKEN;
        }
        __builtin_prefetch((void *)(a + AHEAD));
        uint64_t mark = rd64((void *)a);
        uint32_t len;
        uint64_t bytes;
        const struct hot *o = object(lay, a, mark, round, &spare, &len, &bytes);
        if (!LIKELY(o && bytes <= hi - a)) break;
        if (!LIKELY(!all) && shadow_is_on()) shadow_find(dw, SHADOW_FOUND | (uint64_t)(o->type & TYPE_MASK) << 32);
        if (!LIKELY(open)) {
            p = zig_long(p, (int64_t)(dw - prev_end));
            open = true;
        } else if (skip) {
            *p++ = HC_LIST_SKIP;
            p = leb_long(p, skip);
        }
        skip = 0;
        p = put4(p, o->list, o->nlist);
        p = put_len(p, o, len);
        prev_end = dw + (bytes >> 3);
        census(o->type, young ? age_bucket(mark) : 5, young ? 0 : 1, bytes);
        a += bytes;
    }
    if (!e->over) e->p = p;
    w->prev_end = prev_end;
    ndest -= words;
    if (open) put_u(e, HC_LIST_END);
    return a;
}

uint64_t walk_births(struct walker *w, uint64_t lo, uint64_t hi, bool young, bool all) {
#define CALL(lay) births(lay, w, lo, hi, young, all)
    return FOR_LAYOUT(CALL);
#undef CALL
}

enum { T_INT = 10, LEAST_OBJECT = 16 };
// Until JDK 20 fillers are int[] or java.lang.Object.
static bool may_be_filler(const struct tinfo *ti) {
    if (ti->flags & HC_TF_FILLER) return true;
    const uint32_t lh = (uint32_t)ti->lh;
    return vm.major < 20 && (ti->lh < 0 ? lh >> 30 == 3 && (lh >> 8 & 0xff) == T_INT : lh == LEAST_OBJECT);
}

bool walk_stranger(uint64_t lo, uint64_t hi) {
    const uint64_t base = (uint64_t)vm.heap_base;
    for (uint64_t a = lo; a < hi;) {
        uint64_t dw = (a - base) >> 3, x = ~(dest[dw >> 6] >> (dw & 63));
        uint64_t n = x ? (uint64_t)__builtin_ctzll(x) : 64;
        if (n) {
            a += (n > 64 - (dw & 63) ? 64 - (dw & 63) : n) << 3;
            continue;
        }
        struct obj o;
        if (!obj_at(a, rd64((void *)a), &o) || o.bytes > hi - a) return false; // walk_births says so
        if (!may_be_filler(&tinfo[o.type])) return true;
        a += o.bytes;
    }
    return false;
}

void walk_arrived(uint64_t dw, uint64_t n) {
    dest_set(dest, dw, n);
    ndest += n;
}

const uint64_t *walk_dest(void) { return dest; }

uint64_t walk_met(uint64_t lo, uint64_t hi) {
    const uint64_t before = ndest;
    for (uint64_t dw = WORD(lo), end = WORD(hi); dw < end;) {
        const uint64_t sh = dw & 63, n = end - dw < 64 - sh ? end - dw : 64 - sh;
        uint64_t *w = &dest[dw >> 6];
        if (*w) {
            const uint64_t bits = (n == 64 ? ~0ull : ((1ull << n) - 1) << sh) & *w;
            ndest -= (uint64_t)__builtin_popcountll(bits);
            *w &= ~bits;
        }
        dw += n;
    }
    return before - ndest;
}

uint64_t walk_ndest(void) { return ndest; }
