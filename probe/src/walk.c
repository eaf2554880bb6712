//go:build ignore

// walk.c: linear walks over memory that stands still, and the tokens of docs/format/stream.md.
#define _GNU_SOURCE
#include "probe.h"

#include <string.h>

PER_RECORDING struct hole *holes;
PER_RECORDING uint32_t nholes;
enum { MAX_HOLES = 1 << 16 };

// One bit a word of heap: belongs to an object that the walk of evacuated memory has seen arrive there. A walk of the
// place where it arrived steps over a run of such bits without touching the memory, which another core has just
// written.
static PER_RECORDING uint64_t *dest;
static PER_RECORDING size_t dest_bytes;
static PER_RECORDING uint64_t ndest; // bits set
PER_RECORDING uint64_t old_lo, old_hi;

#define WORD(a) (((a) - (uint64_t)vm.heap_base) >> 3)

bool dest_init(void) {
    dest_bytes = (vm.heap_bytes >> 6) + 16;
    dest = memory_sparse(dest_bytes);
    holes = memory(MAX_HOLES * sizeof *holes);
    return dest && holes;
}

// After a fault nobody knows which bits are set: give the pages back.
void dest_reset(void) {
    if (ndest) os_give_back(dest, dest_bytes);
    ndest = 0;
}

#define HOT static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define AHEAD 2048 // bytes: the walk is bound by cache misses, and the hardware's prefetcher stops at each page

HOT void dest_set(uint64_t dw, uint64_t n) {
    uint64_t i = dw >> 6, sh = dw & 63;
    ndest += n;
    dest[i] |= (n >= 64 ? ~0ull : (1ull << n) - 1) << sh;
    if (LIKELY(sh + n <= 64)) return;
    for (n -= 64 - sh; n >= 64; n -= 64) dest[++i] = ~0ull;
    if (n) dest[++i] |= (1ull << n) - 1;
}

HOT bool dest_has(uint64_t dw) { return dest[dw >> 6] >> (dw & 63) & 1; }

// The length of the run of bits that begins at dw, which is cleared: at most most. Where one region is full to its end
// the run goes on in the next one.
HOT uint64_t dest_take(uint64_t dw, uint64_t most) {
    uint64_t i = dw >> 6, sh = dw & 63, n = 0;
    for (;; i++, sh = 0) {
        uint64_t x = ~(dest[i] >> sh), k = x ? (uint64_t)__builtin_ctzll(x) : 64;
        if (k > 64 - sh) k = 64 - sh;
        if (k > most - n) k = most - n;
        dest[i] &= ~((k >= 64 ? ~0ull : (1ull << k) - 1) << sh);
        n += k;
        if (sh + k < 64 || n == most) break;
    }
    ndest -= n;
    return n;
}

HOT uint64_t align_up(uint64_t n) { return (n + vm.align - 1) & ~(vm.align - 1); }

// Where the class stands: one set of walks is made for each.
enum { NARROW, WIDE, COMPACT };
static inline int layout(void) { return vm.compact_headers ? COMPACT : vm.compressed_class ? NARROW : WIDE; }

HOT uint64_t word_at(int lay, uint64_t a, uint64_t mark) {
    if (lay == COMPACT) {
        if ((mark & 3) == 3) { // forwarded: the class stands in the copy
            uint64_t d = mark & ~7ull;
            if (d - (uint64_t)vm.heap_base >= vm.heap_bytes) violation("a forwarding pointer leads out of the heap", a);
            mark = rd64((void *)d);
        }
        return mark >> vm.klass_shift;
    }
    return lay == NARROW ? rd32((char *)a + 8) : rd64((char *)a + 8);
}

// What few objects need: mirrors, stacks of virtual threads, classes whose word has been used twice, classes that
// nobody has loaded yet.
static __attribute__((noinline)) bool object_slowly(int lay, uint64_t a, uint64_t word, struct obj *o) {
    struct centry *c = class_lookup(word);
    if (!word || (!c && !(c = classes_learn(word)))) return false;
    uint32_t type = c->type & TYPE_MASK;
    int32_t lh = c->lh;
    o->reused = c->type & ((uint32_t)TF_DEAD | TF_REUSED);
    uint32_t t = o->reused ? side_get(a) : 0;
    if (t) type = t, lh = tinfo[TSLOT(t)].lh;
    if (opt.oracle && o->reused && tinfo[TSLOT(type)].id != type)
        violation("an object of a class that was told to have gone", a);
    o->type = type;
    if (lh > 0 && tinfo[TSLOT(type)].flags & TI_CHUNK) {
        // Behind the fields stands the stack, and behind that a bit for each place in it that may hold a reference.
        uint64_t n = rd32((char *)a + vm.chunk_size_offset);
        o->bytes = align_up(((uint32_t)lh & ~1u) + 8 * (n + ((n << vm.compressed_oops) + 63) / 64));
        o->len = (uint32_t)(o->bytes / 8);
        o->has_len = true;
        return n <= 0x7fffffff && o->bytes >= 16;
    }
    if (lh > 0 && tinfo[TSLOT(type)].flags & HC_TF_VARIABLE) {
        o->len = rd32((char *)a + rd32(vm.mirror_size_offset));
        o->has_len = true;
        o->bytes = (uint64_t)o->len * 8;
        return o->bytes >= 16;
    }
    o->has_len = lh < 0;
    o->len = lh < 0 ? rd32((char *)a + (lay == COMPACT ? 8 : lay == NARROW ? 12 : 16)) : 0;
    o->bytes = lh < 0 ? align_up(((uint32_t)lh >> 16 & 0xff) + ((uint64_t)o->len << ((uint32_t)lh & 63)))
                      : align_up((uint32_t)lh & ~1u);
    return o->len <= 0x7fffffff && o->bytes >= 8;
}

bool obj_at(uint64_t a, uint64_t mark, struct obj *o) {
    return object_slowly(layout(), a, word_at(layout(), a, mark), o);
}

// What the walks need of the classes they meet most: a direct-mapped table that stays in the first-level cache. The
// address of the next object hangs on class word -> entry -> size, so that chain is kept short and free of branches;
// kinds of objects alternate too fast to be predicted. Objects whose size needs more than this never enter it.
struct hot {
    uint32_t word, type, lenmask; // lenmask: all ones for arrays
    uint16_t base;                // size, or header of an array, and what rounding up adds
    uint8_t shift, ntok, nlist;
    uint32_t tok, list; // LEB128 of the walk token (its low three bits are free) and of the list token
};
enum { HOTS = 1024 };
static PER_RECORDING struct hot hots[HOTS] __attribute__((aligned(64)));

void walk_forget_classes(void) { memset(hots, 0, sizeof hots); }

static inline uint32_t leb_size(uint32_t v) { return 1 + (v > 0x7f) + (v > 0x3fff) + (v > 0x1fffff); }
static inline uint32_t leb_bytes(uint32_t v, uint32_t n) { // v < 2^28
    uint32_t x = (v & 0x7f) | (v & 0x3f80) << 1 | (v & 0x1fc000) << 2 | (v & 0xfe00000) << 3;
    return x | (0x00808080u & ((1u << 8 * (n - 1)) - 1));
}

static void hot_fill(struct hot *h, uint32_t type, bool len) {
    *h = (struct hot){.type = type,
                      .lenmask = len ? ~0u : 0,
                      .ntok = (uint8_t)leb_size(type << 3),
                      .nlist = (uint8_t)leb_size(type - 1 + HC_LIST_TYPE)};
    h->tok = leb_bytes(type << 3, h->ntok);
    h->list = leb_bytes(type - 1 + HC_LIST_TYPE, h->nlist);
}

// h: used when the object's class is not in the table. NULL: not an object that the probe knows.
static __attribute__((noinline)) const struct hot *learn(int lay, uint64_t a, uint64_t word, struct hot *h,
                                                         uint32_t *len, uint64_t *bytes) {
    struct obj o;
    if (!object_slowly(lay, a, word, &o)) return NULL;
    *len = o.len;
    *bytes = o.bytes;
    hot_fill(h, o.type, o.has_len);
    const struct centry *c = class_lookup(word);
    uint32_t base = (uint32_t)vm.align - 1 + (c->lh < 0 ? (uint32_t)c->lh >> 16 & 0xff : (uint32_t)c->lh & ~1u);
    if (lay != WIDE && !(c->type & TF_SLOW) && base >= vm.align - 1 + 8 && base <= UINT16_MAX) {
        struct hot *to = &hots[(word >> 3) & (HOTS - 1)];
        *to = *h;
        to->base = (uint16_t)base;
        to->shift = c->lh < 0 ? (uint8_t)c->lh & 63 : 0;
        to->word = (uint32_t)word;
    }
    return h;
}

HOT const struct hot *object(int lay, uint64_t a, uint64_t mark, uint64_t round, struct hot *spare, uint32_t *len,
                             uint64_t *bytes) {
    uint64_t word = word_at(lay, a, mark);
    const struct hot *h = &hots[(word >> 3) & (HOTS - 1)];
    if (lay == WIDE || !LIKELY(h->word == (uint32_t)word && word)) return learn(lay, a, word, spare, len, bytes);
    // A length is read of instances too where that is inside the smallest object.
    uint32_t n = (lay == NARROW ? rd32((char *)a + 12) : rd32((char *)a + (h->lenmask & 8))) & h->lenmask;
    *len = n;
    *bytes = (h->base + ((uint64_t)n << h->shift)) & round;
    return LIKELY(!(n >> 31)) ? h : NULL;
}

HOT uint8_t *put4(uint8_t *p, uint32_t x, uint32_t n) {
    __builtin_memcpy(p, &x, 4);
    return p + n;
}

static uint8_t *leb_long(uint8_t *p, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}
static inline uint8_t *zig_long(uint8_t *p, int64_t v) { return leb_long(p, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }

HOT uint8_t *put_len(uint8_t *p, const struct hot *h, uint32_t len) {
    if (!LIKELY(!(len >> 28))) return leb_long(p, len);
    uint32_t n = leb_size(len);
    return put4(p, leb_bytes(len, n), n & h->lenmask);
}

enum { TOKEN = 64 }; // no object needs more bytes than that

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

HOT bool lands_in_old(uint64_t d) { return vm.collector == HC_COLLECTOR_G1 ? is_old(d) : d - old_lo < old_hi - old_lo; }

HOT bool moves(int lay, int source, struct walker *w, uint64_t lo, uint64_t hi) {
    struct enc *e = w->e;
    put_s(e, (int64_t)(WORD(lo) - w->prev_end));
    put_u(e, (hi - lo) >> 3);
    w->prev_end = WORD(hi);
    const uint64_t base = (uint64_t)vm.heap_base, heap = vm.heap_bytes, round = ~(vm.align - 1);
    struct hot spare;
    uint64_t a = lo, skip = 0, hole = UINT64_MAX, prev_dst = w->prev_dst;
    uint32_t h = 0;
    bool ok = true, dug = source == SRC_OLD && graves_at(lo);
    if (source == SRC_EDEN) {
        while (h < nholes && holes[h].lo < lo) h++;
        if (h < nholes) hole = holes[h].lo;
    }
    if (e->over || e->end - e->p < TOKEN) {
        e->over = true;
        return ok;
    }
    uint8_t *p = e->p, *const limit = e->end - TOKEN;
    while (a < hi) {
        if (source == SRC_EDEN && !LIKELY(a != hole)) {
            skip += (holes[h].hi - a) >> 3;
            a = holes[h++].hi;
            while (h < nholes && holes[h].lo < a) h++;
            hole = h < nholes ? holes[h].lo : UINT64_MAX;
            continue;
        }
        if (source == SRC_OLD && !LIKELY(!dug || !is_grave(a))) {
            uint64_t n = grave_words(a, hi);
            skip += n;
            a += n << 3;
            continue;
        }
        if (!LIKELY(p <= limit)) { // the epoch is lost anyway: leave the pause
            e->over = true;
            return ok;
        }
        __builtin_prefetch((void *)(a + AHEAD));
        uint64_t mark = rd64((void *)a);
        uint32_t len;
        uint64_t bytes;
        const struct hot *o = object(lay, a, mark, round, &spare, &len, &bytes);
        if (!LIKELY(o)) violation("a class word in evacuated memory is unknown", a);
        if ((mark & 3) == 3) {
            uint64_t d = mark & ~7ull;
            if (!LIKELY(d != a && !(mark & 4))) {
                ok = false;
            } else {
                if (!LIKELY(d - base < heap && bytes <= heap - (d - base) && !(d & ~round)))
                    violation("a destination is not aligned or outside the heap", a);
                if (skip) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
                uint64_t dw = (d - base) >> 3, n = bytes >> 3;
                uint32_t m = (uint32_t)(w->lane[0] == dw) | (uint32_t)(w->lane[1] == dw) << 1 |
                             (uint32_t)(w->lane[2] == dw) << 2 | (uint32_t)(w->lane[3] == dw) << 3;
                if (LIKELY(m)) {
                    int f = __builtin_ctz(m);
                    p = put4(p, o->tok | (uint32_t)(HC_TOK_LANE0 + f), o->ntok);
                    p = put_len(p, o, len);
                    w->lane[f] = dw + n;
                } else {
                    p = put4(p, o->tok | HC_TOK_MOVE, o->ntok);
                    p = put_len(p, o, len);
                    p = zig_long(p, (int64_t)(dw - prev_dst));
                    prev_dst = dw;
                    w->lane[w->k] = dw + n;
                    w->k = (w->k + 1) & 3;
                }
                dest_set(dw, n);
                bool old = source != SRC_OLD && lands_in_old(d);
                if (source == SRC_EDEN)
                    census(o->type, old ? 5 : 0, old ? 1 : 0, bytes);
                else if (source == SRC_FROM && old)
                    census(o->type, 1, 2, bytes);
            }
        } else if (source == SRC_EDEN) {
            if (!LIKELY(!skip)) p = leb_long(p, skip << 3 | HC_TOK_SKIP), skip = 0;
            p = put4(p, o->tok | HC_TOK_DEAD, o->ntok);
            p = put_len(p, o, len);
        } else {
            skip += bytes >> 3;
            census(o->type, source == SRC_OLD ? 5 : age_bucket(mark), source == SRC_OLD ? 4 : 3, bytes);
        }
        a += bytes;
    }
    e->p = p;
    w->prev_dst = prev_dst;
    if (a != hi) violation("a walk of evacuated memory did not end at the top", a);
    put_u(e, HC_TOK_END);
    return ok;
}

#define FOR_LAYOUT(call) (layout() == NARROW ? call(NARROW) : layout() == COMPACT ? call(COMPACT) : call(WIDE))

bool walk_moves(struct walker *w, uint64_t lo, uint64_t hi, int source) {
    need_memory(lo, hi);
#define CALL(lay)                                                                                                      \
    (source == SRC_EDEN   ? moves(lay, SRC_EDEN, w, lo, hi)                                                            \
     : source == SRC_FROM ? moves(lay, SRC_FROM, w, lo, hi)                                                            \
                          : moves(lay, SRC_OLD, w, lo, hi))
    return FOR_LAYOUT(CALL);
#undef CALL
}

HOT uint64_t births(int lay, struct walker *w, uint64_t lo, uint64_t hi, bool young, bool all) {
    struct enc *e = w->e;
    uint64_t a = lo, skip = 0;
    const uint64_t base = (uint64_t)vm.heap_base, round = ~(vm.align - 1);
    struct hot spare;
    bool open = false;
    while (a < hi) {
        uint64_t dw = (a - base) >> 3;
        if (!all && dest_has(dw)) {
            uint64_t n = dest_take(dw, (hi - a) >> 3);
            skip += n;
            a += n << 3;
            continue;
        }
        if (!LIKELY(!e->over && e->end - e->p >= TOKEN)) {
            e->over = true;
            return hi;
        }
        __builtin_prefetch((void *)(a + AHEAD));
        uint64_t mark = rd64((void *)a);
        uint32_t len;
        uint64_t bytes;
        const struct hot *o = object(lay, a, mark, round, &spare, &len, &bytes);
        if (!LIKELY(o && bytes <= hi - a)) break;
        uint8_t *p = e->p;
        if (!LIKELY(open)) {
            p = zig_long(p, (int64_t)(dw - w->prev_end));
            open = true;
        } else if (skip) {
            *p++ = HC_LIST_SKIP;
            p = leb_long(p, skip);
        }
        skip = 0;
        p = put4(p, o->list, o->nlist);
        e->p = put_len(p, o, len);
        w->prev_end = dw + (bytes >> 3);
        census(o->type, young ? age_bucket(mark) : 5, young ? 0 : 1, bytes);
        a += bytes;
    }
    if (open) put_u(e, HC_LIST_END);
    return a;
}

uint64_t walk_births(struct walker *w, uint64_t lo, uint64_t hi, bool young, bool all) {
#define CALL(lay) births(lay, w, lo, hi, young, all)
    return FOR_LAYOUT(CALL);
#undef CALL
}

PER_RECORDING uint64_t list_until;

// How a listing knows what is dead: it does not, by what an earlier one has found, by the marks of the collector.
enum { ALL, GRAVES, MARKS };

HOT uint64_t list(int lay, int how, struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes) {
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
    // objects.
    enum { PACE = 128 << 10 };
    uint8_t *p = e->p, *const end = e->end - TOKEN, *limit = end - p > PACE ? p + PACE : end;
    while (a < hi) {
        uint32_t len;
        uint64_t bytes;
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
        const struct hot *o = object(lay, a, rd64((void *)a), round, &spare, &len, &bytes);
        if (!LIKELY(o && bytes <= hi - a)) break;
        if (!LIKELY(p <= limit)) {
            if (p > end || (list_until && now_ns() > list_until)) {
                e->over = true;
                break;
            }
            limit = end - p > PACE ? p + PACE : end;
        }
        p = put4(p, o->list, o->nlist);
        p = put_len(p, o, len);
        a += bytes;
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
#define CALL(lay) list(lay, ALL, w, lo, hi, objects, bytes)
    return FOR_LAYOUT(CALL);
#undef CALL
}

uint64_t walk_list_living(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes) {
#define KNOWN(lay) list(lay, GRAVES, w, lo, hi, objects, bytes)
#define ASKED(lay) list(lay, MARKS, w, lo, hi, objects, bytes)
    if (graves_known) return graves_at(lo) ? FOR_LAYOUT(KNOWN) : walk_list(w, lo, hi, objects, bytes);
    return marks_there() ? FOR_LAYOUT(ASKED) : walk_list(w, lo, hi, objects, bytes);
#undef KNOWN
#undef ASKED
}

void walk_dead(uint64_t lo, uint64_t hi) {
    bool dug = graves_at(lo);
    for (uint64_t a = lo; a < hi;) {
        if (dug && is_grave(a)) {
            a += 8 * grave_words(a, hi);
            continue;
        }
        struct obj o;
        if (!obj_at(a, rd64((void *)a), &o) || o.bytes > hi - a) return;
        census(o.type, 5, 4, o.bytes);
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
            struct centry *c = class_lookup(word_at(layout(), a, mark));
            if (c && c->type & TF_DEAD) side_add(a, o.type);
            side_met(a);
        }
        a += o.bytes;
    }
    return true;
}

uint64_t walk_ndest(void) { return ndest; }
