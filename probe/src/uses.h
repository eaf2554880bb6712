// uses.h: when objects were used last. The probe follows sampled objects: it writes a number into the upper bits of an
// object's header, which JDK 17 and 25 leave zero. Code that `drag` has put into classes stores the time at that
// number. The table outlives recordings, since that code may still run.
#ifndef HEAPCAM_USES_H
#define HEAPCAM_USES_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapcam_abi.h"

enum { USES = 1 << 16, USES_SHIFT = 48 }; // numbers, 0 is nobody's; where the number is in the header
bool uses_init(uint64_t *clock, uint64_t *table); // false: no memory. The thread that begins
void uses_switch(bool on);
bool uses_are_on(void);
void uses_tick(void); // moves the time on. Any thread
// In a pause, of all numbers that have or had an object: one blob, between begin and end. VM thread, inside the guard.
struct uses_turn {
    struct enc *e;
    uint8_t *at;
    uint64_t id, now;
    bool full; // a full or missed collection, which may have reset headers
};
void uses_begin(struct uses_turn *t, struct enc *e, bool full);
void uses_of(struct uses_turn *t, uint32_t number, uint64_t id, uint64_t addr); // id 0: it has no object
void uses_end(struct uses_turn *t);
void uses_committed(bool ok); // false: what uses_of wrote may not be read; the next turn reports all
// Any thread, for the log:
uint64_t uses_followed(void), uses_blind(void);

#endif
