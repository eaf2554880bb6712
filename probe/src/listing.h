// listing.h: sync points: all objects of the heap, for readers that do not know what was before. VM thread, inside the
// guard.
#ifndef HEAPCAM_LISTING_H
#define HEAPCAM_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapmap.h"

struct listing {
    struct heapmaps *maps;
    uint64_t epoch;
    int reason;     // HC_SYNC_*
    int kind;       // of the pause, HC_PAUSE_*
    bool with_eden; // of collectors without regions
    uint32_t depth; // at depth samples no object is listed
    uint64_t until; // when it is aborted, 0: never
    bool sooner;    // than the time for a listing ends: another budget does
};
void listing_put(struct enc *e, const struct listing *l);
// Tells the agent what one would take; listed: this pause has one.
void listing_predict(const struct heapmap *m, bool listed);

#endif
