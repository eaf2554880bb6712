// crewmates.h: what the VM thread and a thread of the pool share of one range: crew.c, crewmoves.c.
#ifndef HEAPCAM_CREWMATES_H
#define HEAPCAM_CREWMATES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "census.h"
#include "evacuated.h"
#include "object.h"
#include "pool.h"
#include "walk.h"

enum { ALL, GRAVES, MARKS, MOVES, BIRTHS }; // the first three as in walk_list.c
struct grave {
    uint64_t lo, hi;
};
struct unit {
    uint64_t lo, hi, seen;
    const uint64_t *bits; // with MARKS
    uint64_t uncounted;   // with MOVES
    uint32_t how, source; // source: with MOVES
    bool young;           // with BIRTHS
    _Atomic uint32_t state;
    // By who has it, before it is done:
    const uint8_t *tokens;
    uint64_t n; // bytes
    const struct grave *graves; // that were found; they lie downwards
    uint64_t ngraves;
    const struct run *runs; // with MOVES: where objects have arrived, and sites of those from eden (shadow.h)
    uint64_t nruns;
    uint64_t begin, end;     // with BIRTHS and tokens: words of the heap that these are about
    uint64_t met;            // with BIRTHS: words that had arrived where an object was expected
    const struct crow *rows; // what MOVES and BIRTHS have counted
    uint64_t nrows;
    uint64_t objects, bytes;
};

enum { ROWS = 1 << 10 };
// What one of the crew has: its memory, its classes.
struct mate {
    uint8_t *buffer;
    uint64_t used;      // bytes at its beginning; of this phase
    uint64_t most;      // below this nothing of its end is used; of this phase
    uint64_t low, high; // bytes at its beginning and its end that stay between jobs
    uint64_t phase;
    uint64_t until; // now_ns() at which it stops; 0: never
    uint32_t job;
    struct hot *hots;
    struct crow *rows; // of the range at work, by type and age
    uint32_t *touched, ntouched;
};

enum { FREE, MAIN, CREW, DONE }; // state
// For one of the crew, at times: whether the VM thread has neither taken the range nor ended the pause.
static inline bool is_wanted(const struct unit *u, uint32_t job) {
    return pool_works(job) && atomic_load_explicit(&u->state, memory_order_relaxed) == CREW;
}

// For one of the crew. False: the VM thread has to walk the range.
bool crewmoves_walk(struct mate *m, struct unit *u, const struct heapmap *after, uint32_t job);
bool crewmoves_look(struct mate *m, struct unit *u, uint32_t job); // of BIRTHS
bool crew_finished(struct unit *u); // false: the VM thread has taken it

#endif
