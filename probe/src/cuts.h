// cuts.h: where spaces of Serial and Parallel can be cut into parts for the crew (crew.h): at objects that were sampled
// since the last pause. They are in eden, and then where they arrived. VM thread, inside the guard.
#ifndef HEAPCAM_CUTS_H
#define HEAPCAM_CUTS_H

#include <stdbool.h>

#include "heapmap.h"

void cuts_at_start(const struct heapmap *start, int depth); // also finds the holes in eden
void cuts_for_births(const struct heapmaps *m, bool evac);
// Parts are being walked. Where that does not come to its end, a part may have ended inside of an object: no space is
// cut any more.
void cuts_amid(bool yes);

#endif
