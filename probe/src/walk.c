//go:build ignore

// walk.c: linear walks over memory that stands still, and the tokens of docs/format/stream.md.
#define _GNU_SOURCE
#include "probe.h"

#include <string.h>
#include <sys/mman.h>

struct hole *holes;
uint32_t nholes;
enum { MAX_HOLES = 1 << 16 };

static uint64_t *dest; // one bit a word of heap: is the start of a moved object
static size_t dest_bytes;
static uint64_t ndest;

#define WORD(a) (((a) - (uint64_t)vm.heap_base) >> 3)

bool dest_init(void) {
    dest_bytes = (vm.heap_bytes >> 6) + 8;
    dest = mmap(NULL, dest_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    holes = mmap(NULL, MAX_HOLES * sizeof *holes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return dest != MAP_FAILED && holes != MAP_FAILED;
}

// After a fault nobody knows which bits are set: give the pages back.
void dest_reset(void) {
    if (ndest) madvise(dest, dest_bytes, MADV_DONTNEED);
    ndest = 0;
}

#define HOT static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)

HOT uint64_t align_up(uint64_t n) { return (n + vm.align - 1) & ~(vm.align - 1); }

HOT bool measure(uint64_t a, uint32_t type, int32_t lh, struct obj *o) {
    o->type = type;
    if (lh > 0) {
        // The slow-path bit is rare (mirrors, finalizable classes): only then look the type up.
        if (!LIKELY(!(lh & 1)) && tinfo[type].flags & HC_TF_VARIABLE) {
            o->len = rd32((char *)a + rd32(vm.mirror_size_offset));
            o->has_len = true;
            o->bytes = o->len * 8;
            return o->bytes >= 16;
        }
        o->has_len = false;
        o->bytes = align_up((uint32_t)lh & ~1u);
        return true;
    }
    uint64_t at = vm.compact_headers ? 8 : vm.compressed_class ? 12 : 16;
    o->len = rd32((char *)a + at);
    o->has_len = true;
    o->bytes = align_up(((uint32_t)lh >> 16 & 0xff) + (o->len << ((uint32_t)lh & 63)));
    return o->len <= 0x7fffffff;
}

HOT uint64_t word_at(uint64_t a, uint64_t mark) {
    if (vm.compact_headers) {
        if ((mark & 3) == 3) { // forwarded: the class stands in the copy
            uint64_t d = mark & ~7ull;
            if (d - (uint64_t)vm.heap_base >= vm.heap_bytes) violation("a forwarding pointer leads out of the heap", a);
            mark = rd64((void *)d);
        }
        return mark >> vm.klass_shift;
    }
    return LIKELY(vm.compressed_class) ? rd32((char *)a + 8) : rd64((char *)a + 8);
}

static __attribute__((noinline)) struct centry *unknown_class(uint64_t word) { return word ? classes_learn(word) : NULL; }

static __attribute__((noinline)) bool measure_reused(uint64_t a, struct centry *c, struct obj *o) {
    uint32_t type = c->type & TYPE_MASK, t = side_get(a);
    int32_t lh = c->lh;
    if (t) type = t, lh = tinfo[t].lh;
    o->reused = true;
    return measure(a, type, lh, o);
}

HOT bool object(uint64_t a, uint64_t mark, struct obj *o) {
    uint64_t word = word_at(a, mark);
    struct centry *c = class_lookup(word);
    if (!LIKELY(c && word)) {
        c = unknown_class(word);
        if (!c) return false;
    }
    if (!LIKELY(!(c->type & (TF_DEAD | TF_REUSED)))) return measure_reused(a, c, o);
    o->reused = false;
    return measure(a, c->type, c->lh, o);
}

bool obj_at(uint64_t a, uint64_t mark, struct obj *o) { return object(a, mark, o); }

void tlab_holes(void) {
    nholes = 0;
    char *list = rdp(vm.thread_list);
    uint32_t n = rd32(list + vm.tl_length);
    char *threads = rdp(list + vm.tl_threads);
    if (n > MAX_HOLES) violation("more threads than the probe can hold", n);
    for (uint32_t i = 0; i < n; i++) {
        char *tlab = rdp(threads + 8 * i) + vm.thread_tlab;
        uint64_t top = rd64(tlab + vm.tlab_top), end = rd64(tlab + vm.tlab_end);
        if (!end || end < top) continue;
        end += vm.tlab_reserve;
        uint32_t j = nholes++; // insertion into a short, mostly sorted list
        for (; j > 0 && holes[j - 1].lo > top; j--) holes[j] = holes[j - 1];
        holes[j] = (struct hole){top, end};
    }
}

static inline uint32_t age_bucket(uint64_t mark) {
    if ((mark & 3) != 1) return 1;
    uint32_t age = mark >> 3 & 15;
    return age < 2 ? age : age < 4 ? 2 : age < 8 ? 3 : 4;
}

bool walk_moves(struct walker *w, uint64_t lo, uint64_t hi, int source) {
    struct enc *e = w->e;
    put_s(e, (int64_t)(WORD(lo) - w->prev_end));
    put_u(e, (hi - lo) >> 3);
    w->prev_end = WORD(hi);
    uint64_t a = lo, skip = 0;
    uint32_t h = 0;
    bool ok = true;
    if (source == SRC_EDEN)
        while (h < nholes && holes[h].lo < lo) h++;
    while (a < hi) {
        if (source == SRC_EDEN && h < nholes && a == holes[h].lo) {
            skip += (holes[h].hi - a) >> 3;
            a = holes[h++].hi;
            while (h < nholes && holes[h].lo < a) h++;
            continue;
        }
        uint64_t mark = rd64((void *)a);
        struct obj o;
        if (!object(a, mark, &o)) violation("a class word in evacuated memory is unknown", a);
        if ((mark & 3) == 3) {
            uint64_t d = mark & ~7ull;
            if (d == a || mark & 4) {
                ok = false;
            } else {
                if (d - (uint64_t)vm.heap_base >= vm.heap_bytes || d & (vm.align - 1)) violation("a destination is not aligned or outside the heap", a);
                if (skip) put_u(e, skip << 3 | HC_TOK_SKIP), skip = 0;
                uint64_t dw = WORD(d), n = o.bytes >> 3;
                int f = HC_TOK_MOVE;
                for (int i = 0; i < HC_LANES; i++)
                    if (w->lane[i] == dw) {
                        f = HC_TOK_LANE0 + i;
                        break;
                    }
                put_u(e, (uint64_t)o.type << 3 | (uint64_t)f);
                if (o.has_len) put_u(e, o.len);
                if (f == HC_TOK_MOVE) {
                    put_s(e, (int64_t)(dw - w->prev_dst));
                    w->prev_dst = dw;
                    w->lane[w->k] = dw + n;
                    w->k = (w->k + 1) & 3;
                } else {
                    w->lane[f - HC_TOK_LANE0] = dw + n;
                }
                dest[dw >> 6] |= 1ull << (dw & 63);
                ndest++;
                bool old = source != SRC_OLD && is_old(d);
                if (source == SRC_EDEN)
                    census(o.type, old ? 5 : 0, old ? 1 : 0, o.bytes);
                else if (source == SRC_FROM && old)
                    census(o.type, 1, 2, o.bytes);
            }
        } else if (source == SRC_EDEN) {
            if (skip) put_u(e, skip << 3 | HC_TOK_SKIP), skip = 0;
            put_u(e, (uint64_t)o.type << 3 | HC_TOK_DEAD);
            if (o.has_len) put_u(e, o.len);
        } else {
            skip += o.bytes >> 3;
            census(o.type, source == SRC_OLD ? 5 : age_bucket(mark), source == SRC_OLD ? 4 : 3, o.bytes);
        }
        a += o.bytes;
        if (e->over) return ok; // the epoch is lost anyway: leave the pause
    }
    if (a != hi) violation("a walk of evacuated memory did not end at the top", a);
    put_u(e, HC_TOK_END);
    return ok;
}

uint64_t walk_births(struct walker *w, uint64_t lo, uint64_t hi, bool young, bool all) {
    struct enc *e = w->e;
    uint64_t a = lo, skip = 0;
    const uint64_t base = (uint64_t)vm.heap_base;
    bool open = false;
    while (a < hi) {
        uint64_t mark = rd64((void *)a);
        struct obj o;
        if (!object(a, mark, &o) || o.bytes > hi - a) break;
        uint64_t dw = (a - base) >> 3;
        uint64_t bit = 1ull << (dw & 63);
        if (!all && dest[dw >> 6] & bit) {
            dest[dw >> 6] &= ~bit;
            ndest--;
            skip += o.bytes >> 3;
        } else {
            if (!open) {
                put_s(e, (int64_t)(dw - w->prev_end));
                open = true;
            } else if (skip) {
                put_u(e, HC_LIST_SKIP);
                put_u(e, skip);
            }
            skip = 0;
            put_u(e, (uint64_t)o.type - 1 + HC_LIST_TYPE);
            if (o.has_len) put_u(e, o.len);
            w->prev_end = dw + (o.bytes >> 3);
            census(o.type, young ? age_bucket(mark) : 5, young ? 0 : 1, o.bytes);
        }
        a += o.bytes;
    }
    if (open) put_u(e, HC_LIST_END);
    return a;
}

uint64_t walk_list(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes) {
    struct enc *e = w->e;
    uint64_t a = lo, n = 0;
    if (lo == hi) return hi;
    put_s(e, (int64_t)(WORD(lo) - w->prev_end));
    while (a < hi) {
        struct obj o;
        if (!object(a, rd64((void *)a), &o) || o.bytes > hi - a) break;
        put_u(e, (uint64_t)o.type - 1 + HC_LIST_TYPE);
        if (o.has_len) put_u(e, o.len);
        a += o.bytes;
        n++;
        if (e->over) break;
    }
    put_u(e, HC_LIST_END);
    w->prev_end = WORD(a);
    *objects += n;
    *bytes += a - lo;
    return a;
}

void walk_dead(uint64_t lo, uint64_t hi) {
    for (uint64_t a = lo; a < hi;) {
        struct obj o;
        if (!object(a, rd64((void *)a), &o) || o.bytes > hi - a) return;
        census(o.type, 5, 4, o.bytes);
        a += o.bytes;
    }
}

void walk_stale(uint64_t lo, uint64_t hi) {
    for (uint64_t a = lo; a < hi;) {
        struct obj o;
        uint64_t mark = rd64((void *)a);
        if (!object(a, mark, &o) || o.bytes > hi - a) return;
        if (o.reused) {
            struct centry *c = class_lookup(word_at(a, mark));
            if (c && c->type & TF_DEAD) side_add(a, o.type);
        }
        a += o.bytes;
    }
}

uint64_t walk_ndest(void) { return ndest; }
