// object.h: what stands at an address: type, length and size of an object. VM thread, inside the guard.
#ifndef HEAPCAM_OBJECT_H
#define HEAPCAM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "classtable.h"
#include "guard.h"
#include "vmstructs.h"

struct obj {
    uint32_t type, len; // len: elements, or words for types of variable size; only with has_len
    uint64_t bytes;
    uint32_t has_len, reused; // 0, 1
};
bool obj_at(uint64_t a, uint64_t mark, struct obj *o); // false: unknown class
uint64_t word_of_object(uint64_t a, uint64_t mark);    // its class word

#define HOT static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)

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

// h: used when the object's class is not among the hot ones. NULL: not an object that the probe knows.
const struct hot *object_learn(int lay, uint64_t a, uint64_t word, struct hot *h, uint32_t *len, uint64_t *bytes);

// The same for a thread of the pool, with a table of its own. NULL: or one that only the VM thread knows.
const struct hot *object_learn_aside(struct hot *table, int lay, uint64_t a, uint64_t word, struct hot *h,
                                     uint32_t *len, uint64_t *bytes);

// aside: NULL, or the table of a thread of the pool. next: behind the object. The walk waits for it, so that what is
// known first is added first, and no size stands between it and the next object.
HOT const struct hot *object_next(struct hot *aside, int lay, uint64_t a, uint64_t mark, uint64_t round,
                                  struct hot *spare, uint32_t *len, uint64_t *next) {
    *next = a;
    if (aside && lay == COMPACT && (mark & 3) == 3 && (mark & ~7ull) - (uint64_t)vm.heap_base >= vm.heap_bytes)
        return NULL; // the VM thread says what is wrong
    uint64_t word = word_at(lay, a, mark);
    const struct hot *h = hot_at(aside ? aside : hots, word, lay == COMPACT);
    if (lay == WIDE || !LIKELY(h->word == (uint32_t)word && word)) {
        uint32_t some_len = 0; // the caller's variables stay in registers
        uint64_t some_bytes = 0;
        h = aside ? object_learn_aside(aside, lay, a, word, spare, &some_len, &some_bytes)
                  : object_learn(lay, a, word, spare, &some_len, &some_bytes);
        *len = some_len, *next = a + some_bytes;
        return h;
    }
    // A length is read of instances too where that is inside the smallest object.
    uint32_t n = (lay == NARROW ? rd32((char *)a + 12) : rd32((char *)a + (h->lenmask & 8))) & h->lenmask;
    *len = n;
    *next = (a + h->base + ((uint64_t)n << h->shift)) & round;
    return LIKELY(!(n >> 31)) ? h : NULL;
}

HOT const struct hot *object_in(struct hot *aside, int lay, uint64_t a, uint64_t mark, uint64_t round,
                                struct hot *spare, uint32_t *len, uint64_t *bytes) {
    uint64_t next;
    const struct hot *h = object_next(aside, lay, a, mark, round, spare, len, &next);
    *bytes = next - a;
    return h;
}

HOT const struct hot *object(int lay, uint64_t a, uint64_t mark, uint64_t round, struct hot *spare, uint32_t *len,
                             uint64_t *bytes) {
    return object_in(NULL, lay, a, mark, round, spare, len, bytes);
}

#endif
