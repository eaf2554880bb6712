// crewmoves.h: eden's ranges that the crew has walked (crew.h). VM thread, inside the guard.
#ifndef HEAPCAM_CREWMOVES_H
#define HEAPCAM_CREWMOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"

struct unit;
// Writes a segment of an event of its own, and does what the walk would have done besides.
void crewmoves_put(struct enc *e, const struct unit *u);
// A test's: whether the VM thread has written the same from there on, as the first segment of an event.
bool crewmoves_same(const struct enc *e, const uint8_t *from, const struct unit *u);

#endif
