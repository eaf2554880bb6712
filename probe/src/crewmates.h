// crewmates.h: what the VM thread and a thread of the pool share of one range: crew.c, crewmoves.c.
#ifndef HEAPCAM_CREWMATES_H
#define HEAPCAM_CREWMATES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "evacuated.h"
#include "object.h"

enum { ALL, GRAVES, MARKS, MOVES }; // the first three as in walk_list.c
struct grave {
    uint64_t lo, hi;
};
// Objects of a type that survived: in survivor space, in old space.
struct count {
    uint32_t type, unused;
    uint64_t n[2], bytes[2];
};
struct unit {
    uint64_t lo, hi, seen;
    const uint64_t *bits; // with MARKS
    uint32_t how;
    _Atomic uint32_t state;
    // By who has it, before it is done:
    const uint8_t *tokens;
    uint64_t n; // bytes
    const struct grave *graves; // that were found; they lie downwards
    uint64_t ngraves;
    const struct run *runs; // with MOVES: where objects have arrived
    uint64_t nruns;
    const struct count *counts; // with MOVES
    uint64_t ncounts;
    uint64_t objects, bytes;
};

enum { COUNTS = 1 << 10 };
// What one of the crew has: its memory, its classes.
struct mate {
    uint8_t *buffer;
    uint64_t used;      // bytes at its beginning; of this job
    uint64_t most;      // below this nothing of its end is used; of this job
    uint64_t low, high; // bytes at its beginning and its end that stay between jobs
    struct hot *hots;
    struct count *counts; // of the range at work, by type
    uint32_t *touched, ntouched;
};

// For one of the crew. False: the VM thread has to walk the range.
bool crewmoves_walk(struct mate *m, struct unit *u, const struct heapmap *after, uint32_t job);
bool crew_finished(struct unit *u); // false: the VM thread has taken it

#endif
