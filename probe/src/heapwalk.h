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

// A part of a space that was emptied. source: SRC_*.
struct piece {
    uint64_t lo, hi;
    int source;
    uint32_t area;
};
typedef bool walk_piece(void *arg, const struct piece *p);

// evac: young space was evacuated by this pause.
struct heapwalk {
    bool (*emptied)(const struct heapmaps *m); // false: the pause left objects where it should have evacuated them
    // Calls each for each part, in order of addresses, of what was known and is empty now; of eden, which nothing knew.
    // False: each returned false, or it cannot be read any more.
    bool (*moves)(const struct heapmaps *m, bool evac, walk_piece *each, void *arg);
    bool (*eden)(const struct heapmaps *m, walk_piece *each, void *arg);
    // NULL, or whether objects may have come from places that seem not to have been emptied: asked before births.
    bool (*failed)(const struct heapmaps *m);
    // What is new in places that were not emptied. What was granted in this pause and has no header yet leaves
    // m->finish.
    void (*births)(struct walker *w, struct heapmaps *m, bool evac);
    void (*freed)(struct walker *w, const struct heapmaps *m, bool evac); // regions that were simply freed
    void (*list)(struct walker *w, struct heapmaps *m, bool with_eden, struct listed *sum);
};
// Of Serial and Parallel: objects in a space, by address, where it can be cut (cuts.h). Of eden
// and survivor space when a pause starts; of survivor space and the old one when it ends.
struct cuts {
    uint64_t at[STARTS];
    uint32_t n;
};
extern struct cuts heap_cuts[SPACES];
extern const struct heapwalk heapwalk_linear, heapwalk_g1;
static inline const struct heapwalk *heapwalk(void) { return vm_has_regions() ? &heapwalk_g1 : &heapwalk_linear; }

uint64_t humongous_end(uint64_t bottom); // or unknown_class

#endif
