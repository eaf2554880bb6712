//go:build ignore

// object.c: object.h.
#include "object.h"

#include "heapcam_abi.h"
#include "leb.h"
#include "options.h"
#include "sidetable.h"
#include "tops.h"

// What few objects need: mirrors, stacks of virtual threads. Also for threads of the pool.
static bool measure(int lay, uint64_t a, const struct centry *c, uint32_t type, struct obj *o) {
    int32_t lh = type == (c->type & TYPE_MASK) ? c->lh : tinfo[TSLOT(type)].lh;
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

// Classes whose word has been used twice, and classes that nobody has loaded yet, too.
static __attribute__((noinline)) bool object_slowly(int lay, uint64_t a, uint64_t word, struct obj *o) {
    struct centry *c = class_lookup(word);
    if (!word || (!c && !(c = class_learn(word)))) return false;
    uint32_t type = c->type & TYPE_MASK;
    o->reused = c->type & ((uint32_t)TF_DEAD | TF_REUSED);
    uint32_t t = o->reused ? side_get(a) : 0;
    if (o->reused && !t && vm_has_regions()) t = tops_type(c, a);
    if (t) type = t;
    if (opt.oracle && o->reused && tinfo[TSLOT(type)].id != type)
        violation("an object of a class that was reported as unloaded", a);
    return measure(lay, a, c, type, o);
}

bool obj_at(uint64_t a, uint64_t mark, struct obj *o) {
    return object_slowly(layout(), a, word_at(layout(), a, mark), o);
}

uint64_t word_of_object(uint64_t a, uint64_t mark) { return word_at(layout(), a, mark); }

static void hot_fill(struct hot *h, uint32_t type, bool len) {
    *h = (struct hot){.type = type,
                      .lenmask = len ? ~0u : 0,
                      .ntok = (uint8_t)leb_size(type << 3),
                      .nlist = (uint8_t)leb_size(type - 1 + HC_LIST_TYPE)};
    h->tok = leb_bytes(type << 3, h->ntok);
    h->list = leb_bytes(type - 1 + HC_LIST_TYPE, h->nlist);
}

// Where its size follows from the class alone.
static void hot_keep(struct hot *table, int lay, uint64_t word, const struct centry *c, const struct hot *h) {
    uint32_t base = (uint32_t)vm.align - 1 + (c->lh < 0 ? (uint32_t)c->lh >> 16 & 0xff : (uint32_t)c->lh & ~1u);
    if (lay == WIDE || c->type & TF_SLOW || base < vm.align - 1 + 8 || base > UINT16_MAX) return;
    struct hot *to = hot_at(table, word, lay == COMPACT);
    *to = *h;
    to->base = (uint16_t)base;
    to->shift = c->lh < 0 ? (uint8_t)c->lh & 63 : 0;
    to->word = (uint32_t)word;
}

__attribute__((noinline)) const struct hot *object_learn(int lay, uint64_t a, uint64_t word, struct hot *h,
                                                         uint32_t *len, uint64_t *bytes) {
    struct obj o;
    if (!object_slowly(lay, a, word, &o)) return NULL;
    *len = o.len;
    *bytes = o.bytes;
    hot_fill(h, o.type, o.has_len);
    hot_keep(hots, lay, word, class_lookup(word), h);
    return h;
}

// The tables may have been given back, if the thread comes late enough: the search ends whatever it finds.
static const struct centry *look_aside(uint64_t word) {
    enum { MOST = 4096 };
    uint64_t i = (word * 0x9e3779b97f4a7c15ull) >> ctab_shift;
    for (int n = 0; n < MOST; n++, i++) {
        const struct centry *c = &ctab[i & ctab_mask];
        uint64_t w = atomic_load_explicit((const _Atomic uint64_t *)&c->word, memory_order_acquire);
        if (w == word || !w) return w ? c : NULL;
    }
    return NULL;
}

__attribute__((noinline)) const struct hot *object_learn_aside(struct hot *table, int lay, uint64_t a, uint64_t word,
                                                               struct hot *h, uint32_t *len, uint64_t *bytes) {
    struct obj o;
    const struct centry *c = word ? look_aside(word) : NULL;
    if (!c || c->type & ((uint32_t)TF_DEAD | TF_REUSED) || !measure(lay, a, c, c->type & TYPE_MASK, &o)) return NULL;
    *len = o.len;
    *bytes = o.bytes;
    hot_fill(h, o.type, o.has_len);
    hot_keep(table, lay, word, c, h);
    return h;
}
