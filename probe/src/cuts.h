// cuts.h: where spaces of Serial and Parallel can be cut into parts for the crew (crew.h): at objects that were
// sampled. Those since the last pause are in eden, and then where they arrived; others in survivor and old space. VM
// thread, inside the guard.
#ifndef HEAPCAM_CUTS_H
#define HEAPCAM_CUTS_H

#include <stdbool.h>

#include "heapmap.h"

void cuts_at_start(const struct heapmap *start, int depth); // also finds the holes in eden
void cuts_for_births(const struct heapmaps *m, bool evac);
void cuts_for_listing(const struct heapmap *finish, bool with_eden); // behind samples_resolve
void cuts_for_slice(uint64_t lo, uint64_t hi); // a part of old space
// Parts are being walked. Where that does not come to its end, a part may have ended inside of an object: no space is
// cut any more.
void cuts_amid(bool yes);

#endif
