// crew.h: threads of the pool list whole ranges of the heap for the VM thread, each into a buffer of its own
// (docs/design/0020). What they wrote is used only for ranges that they finished: those are the same bytes that the VM
// thread would have written. The VM thread lists all other ranges itself.
//
// crew_call; crew_add for each range, in order of addresses; crew_start; then, for each of them in the same order,
// crew_took or else walk_list_living.
#ifndef HEAPCAM_CREW_H
#define HEAPCAM_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "walk.h"

void crew_begin(void); // the control thread; without a crew all is as it is
void crew_end(void);   // the control thread, when no pause can come
void crew_report(void); // a test's
bool crew_call(uint64_t bytes);           // of all ranges; false: no crew, or not worth it
void crew_add(uint64_t lo, uint64_t hi);  // VM thread, inside the guard, like the rest
void crew_start(void);
// Writes what one of the crew has listed of the next range, which is [lo, hi). False: the VM thread has to list it.
bool crew_took(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes);
bool crew_is_called(void); // and some ranges have not been asked for
void crew_stop(void);

#endif
