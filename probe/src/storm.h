// storm.h: storms of full collections. What heapcam takes of any ten seconds is bounded then (opt.storm), and so a
// listing that a full collection forces is left out unless it fits. VM thread in pauses. Times by now_ns(), in ns.
#ifndef HEAPCAM_STORM_H
#define HEAPCAM_STORM_H

#include <stdbool.h>
#include <stdint.h>

void storm_full_collection(uint64_t now, bool due); // due: it came while a listing was, or was under way
bool storm_now(uint64_t now); // full collections follow each other, or a listing was left out not long ago
uint64_t storm_ends(uint64_t now); // when what is left of the ten seconds is spent; 0: no limit

// Whether a pause that began at start is recorded without objects. due: it ends with a listing.
struct storm_pause {
    uint64_t now, start, list_bytes;
    bool due;
};
bool storm_leaves_out(const struct storm_pause *p);
// Whether a listing that takes so long is not spread over pauses, since the next full collection would end it: in a
// storm, whatever heapcam may take, and where full collections have ended some, if it takes no longer than the pause.
bool storm_in_one_piece(const struct storm_pause *p, uint64_t ns);
void storm_left_out(uint64_t now);                        // a listing was, for another reason
void storm_spent(uint64_t now, uint64_t ns, bool listed); // what a pause took
// A stop for references, which is no pause of a collection. Whether one that takes so long fits into the budget; what
// one took, which the next pause counts (any thread).
bool storm_has_room(uint64_t now, uint64_t ns);
void storm_stopped(uint64_t ns);

#endif
