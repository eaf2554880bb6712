// finish.h: the state of one finish (the work at the end of a pause): where its epoch is written, and whether it is
// committed or dropped. VM thread, inside the guard.
#ifndef HEAPCAM_FINISH_H
#define HEAPCAM_FINISH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapmap.h"

// What the steps pass on. It is read after a fault has left a step, so none of it may be a local variable.
struct finish {
    struct enc e;
    struct enc at_epoch;     // e where the epoch's block begins
    struct enc before_pause; // e before the event that ends that block
    uint8_t *block;          // the epoch's
    uint64_t epoch;
    uint64_t begin, cpu;      // when it began; CPU time of this thread then
    uint64_t wanted;          // the ticket that a listing answers
    uint64_t may;             // ns that the finish may take; 0: unlimited
    int kind, forced, reason; // forced: why this pause is walked; reason: why it ends with a listing
    uint32_t depth, flags, cut_to;
    bool locked, to_ring; // we hold the ring's lock; to_ring: the epoch is written to the ring, else to the reserve
    bool fits, cut, seen; // seen: maps.finish is of this pause
    bool left_out;        // a listing is due, and would take too much in a storm: no object is recorded
    bool with_eden;       // a listing of this pause holds eden, too
    bool committed;
    const char *what; // why the walk was left; where: at which address
    uint64_t where;
};

extern _Atomic bool listing_did_not_fit; // the control thread makes the ring larger
uint64_t finish_bytes(struct work n, uint32_t depth); // that an epoch takes, about
void finish_begin(struct finish *f, uint64_t bytes); // of so many bytes, about
void finish_define(struct finish *f); // definitions, and samples
void finish_commit(struct finish *f);
void finish_roll_back(struct finish *f, const struct enc *to, bool walked);
void finish_give_up(struct finish *f); // nothing is recorded any more
void finish_publish(void *unused); // what the ring's header says
void finish_provoke(const struct finish *f);

#endif
