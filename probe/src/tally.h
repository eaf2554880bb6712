// tally.h: a raw walk of everything, into the census counters: the oracle's, and the self-check's on an untested JDK.
#ifndef HEAPCAM_TALLY_H
#define HEAPCAM_TALLY_H

#include <stdint.h>

#include "heapmap.h"

struct tally {
    struct heapmaps *maps; // the finish map is overwritten
    uint64_t objects, bytes;
    uint64_t unknown; // places where a walk ended at an unknown class; UINT64_MAX: the walk faulted (guard.h: violated)
};
void heap_tally(struct tally *t); // inside a stop, outside the guard

#endif
