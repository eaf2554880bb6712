// ramp.h: a listing that is spread over several pauses, in slices (docs/design/0019-rolling-sync-points.md): what is
// listed, and what readers do not know. trace/ramp is the same in Go. VM thread in a pause, inside the guard where a
// function writes.
#ifndef HEAPCAM_RAMP_H
#define HEAPCAM_RAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapmap.h"
#include "ramp_parts.h"

bool ramp_init(void);
bool ramp_allowed(void); // the agent stores slices, and this collector's heap can be listed so
bool ramp_open(void);    // the last slice has not come
bool ramp_follows(void); // a reader can know the heap: a listing has begun since the last pause without moves
bool ramp_behind(void);  // epochs were lost, and the next one may say what a reader has to forget

// The epoch, in this order.
bool ramp_put_lost(struct enc *e, const struct heapmaps *m); // returns whether there was anything to say
const uint64_t *ramp_uncounted(void);                        // what is not listed yet, as struct walker has it
void ramp_emptied(const struct heapmaps *m, bool evac);      // what this pause has emptied, its moves are reported
void ramp_forget(void);                                      // or: nothing is known of the moves of this pause

// The listing behind it. A whole one begins and ends a ramp.
void ramp_whole(void);
void ramp_put_slice(struct enc *e, const struct slice *s); // sets e->over if it does not fit

void ramp_finish(const struct heapmaps *m, uint64_t epoch, bool committed);

#endif
