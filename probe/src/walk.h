// walk.h: linear walks over memory that stands still, and the tokens of docs/format/stream.md. VM thread, inside the
// guard.
#ifndef HEAPCAM_WALK_H
#define HEAPCAM_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapmap.h"
#include "tokens.h"

struct walker {
    struct enc *e;
    const struct heapmap *map; // after the pause; walk_list needs none
    uint64_t prev_end, prev_dst;
    struct lanes lanes;
    const uint64_t *uncounted; // by area: below this address a ramp has not counted the objects; NULL: of none
};
static inline struct walker walker_on(struct enc *e, const struct heapmap *map) {
    return (struct walker){.e = e, .map = map};
}

enum { STARTS = 64 }; // eden is cut into one part more at most, where it has no regions
enum { SRC_FROM, SRC_OLD, SRC_EDEN };
// What became of the objects of an evacuated range; source says what a death counts as; eden lists dead objects too and
// skips holes. What lies below uncounted counts apart. Returns false on self-forwarding.
bool walk_moves(struct walker *w, uint64_t lo, uint64_t hi, int source, uint64_t uncounted);
static inline uint64_t uncounted_in(const struct walker *w, uint32_t area) {
    return w->uncounted ? w->uncounted[area] : 0;
}
// Objects of [lo, hi) that are no destinations; returns where it had to stop (hi when all was understood).
uint64_t walk_births(struct walker *w, uint64_t lo, uint64_t hi, bool young, bool all);
// Whether an object of [lo, hi) that is no filler is no destination: asked before walk_births.
bool walk_stranger(uint64_t lo, uint64_t hi);
extern uint64_t list_until; // now_ns() at which a listing is aborted (over); 0: never. VM thread in a pause
// These two list [lo, hi), add to objects and bytes, and return where they had to stop.
uint64_t walk_list(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes);
// The same up to list_until, or as far as there is room: stopped then, and nothing is over.
uint64_t walk_list_part(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes, bool *stopped);
// Of a region, without what is known to be dead. stopped: NULL, or as above.
uint64_t walk_list_living(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes,
                          bool *stopped);
void walk_dead(uint64_t lo, uint64_t hi, uint64_t uncounted); // counts deaths of a freed range
bool walk_stale(uint64_t lo, uint64_t hi); // notes objects of classes that died; false: not all

bool dest_init(void);
void dest_reset(void);
const uint64_t *walk_dest(void); // one bit a word of heap: destinations that no walk of a target range has met
uint64_t walk_met(uint64_t lo, uint64_t hi); // somebody else has met those of a range; returns how many
void walk_arrived(uint64_t dw, uint64_t n); // destinations that somebody else has found: n words from dw on
uint64_t walk_ndest(void); // words of destinations that no walk of a target range has met

#endif
