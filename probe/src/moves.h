// moves.h: what a pause did to the objects: who moved, who died, who is new. VM thread, inside the guard.
#ifndef HEAPCAM_MOVES_H
#define HEAPCAM_MOVES_H

#include <stdbool.h>

#include "encode.h"
#include "heapmap.h"

// false: something was not evacuated, and what was encoded so far means nothing.
bool moves_put(struct enc *e, struct heapmaps *m, int kind, int depth);

// Of a pause whose moves are not followed: at depth full, exact sites are kept for the next one.
void moves_keep_sites(struct heapmaps *m, int kind, int depth);

#endif
