// heapmap.h: which parts the heap has, and what each is used for, at one moment. heapmap_linear.c (Serial, Parallel)
// and heapmap_g1.c know how to read it and what a pause did; the rest of the probe asks here. VM thread in pauses; what
// reads the JVM's memory runs inside the guard.
#ifndef HEAPCAM_HEAPMAP_H
#define HEAPCAM_HEAPMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapcam_abi.h"
#include "vmstructs.h"

struct area {
    uint64_t bottom, top, end;
    uint32_t kind; // HC_SPACE_*
};
enum { EDEN, FROM, TO, OLD, SPACES }; // the areas of Serial and Parallel; those of G1 are its regions by their index
struct heapmap {
    struct area *area;
    uint32_t n;
    uint64_t eden_known; // eden below this address is part of the state (a full collection left it filled); not of G1
};

// Three moments that a finish compares.
struct heapmaps {
    struct heapmap last, start, finish; // last finish, start of this pause, finish of this pause
};

// Bytes that the walks of a pause have to walk.
struct work {
    uint64_t eden, rest;
};

struct heapmap_reader {
    uint32_t (*areas)(void); // how many there may be
    void (*read)(struct heapmap *m);
    // Takes off a map what the collection that ends here has granted itself, behind all that it left. It has no header
    // yet, and in its place stand remains of dead objects.
    void (*drop_granted)(struct heapmap *m);
    bool (*in_state)(const struct heapmap *m, uint64_t a);           // is an object at a part of the recorded state
    struct work (*to_walk)(const struct heapmaps *m, bool evac);     // evac: young space was evacuated
    uint64_t (*list_bytes)(const struct heapmap *m);                 // that a listing walks
    uint64_t (*put_spaces)(struct enc *e, const struct heapmaps *m); // returns bytes in use
};
extern const struct heapmap_reader heapmap_linear, heapmap_g1;
static inline const struct heapmap_reader *heapmap(void) { return vm_has_regions() ? &heapmap_g1 : &heapmap_linear; }

static inline uint64_t region_shift(void) { return (uint64_t)__builtin_ctzll(vm.region_bytes); }
static inline uint32_t region_of(uint64_t a) { return (uint32_t)((a - (uint64_t)vm.heap_base) >> region_shift()); }

bool heapmaps_init(struct heapmaps *m);
void heapmaps_next(struct heapmaps *m); // this finish is the last one from now on
static inline bool kind_evacuates(int kind) { return kind == HC_PAUSE_YOUNG || kind == HC_PAUSE_MIXED; }
void put_space(struct enc *e, uint32_t kind, const struct area *a, uint64_t before, uint64_t after); // for the readers
static inline uint64_t used(const struct area *a) { return a->top - a->bottom; }

// Serial lets threads allocate in survivor space while eden is full and a critical section of JNI keeps a collection
// from beginning. Up to this address it was there at the last finish, and is part of the state; the rest is like eden.
static inline uint64_t survivors_top(const struct heapmaps *m, const struct area *now) {
    const struct area *last = &m->last.area[FROM];
    return now->bottom == last->bottom && now->top > last->top ? last->top : now->top;
}
// Takes that rest off the finish of a pause of that kind and, where its start is known, what a pause that collected
// nothing has granted in old space: see drop_granted.
void heapmaps_leave_new(struct heapmaps *m, int kind, bool started);

// Of maps with regions.
bool humongous_at(const struct heapmap *m, uint64_t a);          // a humongous object begins here
bool evacuated(const struct heapmaps *m, uint32_t i, bool evac); // did this pause empty region i
// A humongous object that the pause itself granted has no header yet: it is born in the next one.
static inline bool humongous_new(const struct heapmaps *m, uint32_t i) {
    return m->finish.area[i].kind == HC_SPACE_HUMONGOUS && m->start.area[i].kind != HC_SPACE_HUMONGOUS;
}
static inline bool humongous_known(const struct heapmaps *m, uint32_t i) {
    return i < m->last.n && m->last.area[i].kind == HC_SPACE_HUMONGOUS;
}
static inline uint32_t regions_in_both(const struct heapmaps *m) {
    return m->start.n < m->finish.n ? m->start.n : m->finish.n;
}

#endif
