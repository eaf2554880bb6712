// heapwalk.h: the walks that a pause needs, over all parts of the heap: heapwalk_linear.c (Serial, Parallel) and
// heapwalk_g1.c. VM thread, inside the guard; what is not understood leaves it.
#ifndef HEAPCAM_HEAPWALK_H
#define HEAPCAM_HEAPWALK_H

#include <stdbool.h>
#include <stdint.h>

#include "heapmap.h"
#include "walk.h"

struct listed {
    uint64_t objects, bytes;
    uint64_t humongous; // of these, bytes that no walk has read: of humongous objects
};

// evac: young space was evacuated by this pause.
struct heapwalk {
    bool (*emptied)(const struct heapmaps *m); // false: the pause left objects where it should have evacuated them
    bool (*moves)(struct walker *w, const struct heapmaps *m, bool evac); // of known ranges that were emptied
    // Calls each for each range of eden, in order of addresses, which nothing knew. False: one did so, or eden is gone.
    bool (*eden)(const struct heapmaps *m, bool (*each)(void *arg, uint64_t lo, uint64_t hi), void *arg);
    // NULL, or whether objects may have come from places that seem not to have been emptied: asked before births.
    bool (*failed)(const struct heapmaps *m);
    // What is new in places that were not emptied. What was granted in this pause and has no header yet leaves
    // m->finish.
    void (*births)(struct walker *w, struct heapmaps *m, bool evac);
    void (*freed)(struct walker *w, const struct heapmaps *m, bool evac); // regions that were simply freed
    void (*list)(struct walker *w, struct heapmaps *m, bool with_eden, struct listed *sum);
};
// Of Serial and Parallel: objects in eden at the start of the pause, by address. Where eden can be cut.
extern uint64_t eden_starts[STARTS];
extern uint32_t neden_starts;
extern const struct heapwalk heapwalk_linear, heapwalk_g1;
static inline const struct heapwalk *heapwalk(void) { return vm_has_regions() ? &heapwalk_g1 : &heapwalk_linear; }

uint64_t humongous_end(uint64_t bottom); // or unknown_class

#endif
