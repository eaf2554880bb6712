// crewmoves.h: what the crew (crew.h) has found in ranges that were evacuated, and where objects arrived. VM thread,
// inside the guard.
#ifndef HEAPCAM_CREWMOVES_H
#define HEAPCAM_CREWMOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "walk.h"

struct unit;
// Writes a segment that begins an event, and does what the walk would have done besides.
void crewmoves_put(struct enc *e, const struct unit *u);
// A test's: whether the VM thread has written the same from there on, as the first segment of an event.
bool crewmoves_same(const struct enc *e, const uint8_t *from, const struct unit *u);
// Like walk_births, which it calls unless one of the crew has walked the range.
uint64_t crewmoves_births(struct walker *w, uint64_t lo, uint64_t hi, bool young);

#endif
