// evacuated.h: what walks of evacuated memory share: walk.c on the VM thread, crewmoves.c on threads of the pool.
#ifndef HEAPCAM_EVACUATED_H
#define HEAPCAM_EVACUATED_H

#include "heapcam_abi.h"
#include "heapmap.h"
#include "tlabs.h"
#include "tokens.h"

// Words of the heap that objects have arrived at, next to one another.
struct run {
    uint64_t dw, n;
};

// The lanes predict the destination of the next object: directly behind the last ones. Returns the end of the token.
// *left: what a lane has seen that now begins elsewhere; n is 0 if none does.
HOT uint8_t *put_survivor(struct lanes *l, uint8_t *p, const struct hot *o, uint32_t len, uint64_t dw, uint64_t n,
                          uint64_t *prev_dst, struct run *left) {
    uint32_t m = (uint32_t)(l->next[0] == dw) | (uint32_t)(l->next[1] == dw) << 1 | (uint32_t)(l->next[2] == dw) << 2 |
                 (uint32_t)(l->next[3] == dw) << 3;
    left->n = 0;
    if (LIKELY(m)) {
        int f = __builtin_ctz(m);
        p = put4(p, o->tok | (uint32_t)(HC_TOK_LANE0 + f), o->ntok);
        p = put_len(p, o, len);
        l->next[f] = dw + n;
        return p;
    }
    p = put4(p, o->tok | HC_TOK_MOVE, o->ntok);
    p = put_len(p, o, len);
    p = zig_long(p, (int64_t)(dw - *prev_dst));
    *prev_dst = dw;
    *left = (struct run){l->from[l->k], l->next[l->k] - l->from[l->k]};
    l->from[l->k] = dw;
    l->next[l->k] = dw + n;
    l->k = (l->k + 1) & 3;
    return p;
}

// What lane i has seen since it was asked last.
HOT struct run lane_ends(struct lanes *l, int i) {
    struct run r = {l->from[i], l->next[i] - l->from[i]};
    l->from[i] = l->next[i];
    return r;
}

static inline uint32_t age_bucket(uint64_t mark) {
    if ((mark & 3) != 1) return 1;
    uint32_t age = mark >> 3 & 15;
    return age < 2 ? age : age < 4 ? 2 : age < 8 ? 3 : 4;
}

// Where old space is after the pause: in registers, while a range is walked.
struct old_space {
    const struct area *region; // NULL: one range, from lo on
    uint64_t lo, size, shift;
};

static inline struct old_space old_space_of(const struct heapmap *m) {
    if (vm_has_regions()) return (struct old_space){m->area, (uint64_t)vm.heap_base, m->n, region_shift()};
    return (struct old_space){NULL, m->area[OLD].bottom, m->area[OLD].end - m->area[OLD].bottom, 0};
}

HOT bool lands_in_old(const struct old_space *o, uint64_t d) {
    uint64_t i = (d - o->lo) >> o->shift;
    return i < o->size && (!o->region || o->region[i].kind != HC_SPACE_SURVIVOR);
}

// Where the first hole from a on begins; h counts them.
HOT uint64_t next_hole(uint32_t *h, uint64_t a) {
    while (*h < nholes && holes[*h].lo < a) ++*h;
    return *h < nholes ? holes[*h].lo : UINT64_MAX;
}

#endif
