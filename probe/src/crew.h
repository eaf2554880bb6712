// crew.h: threads of the pool list, or walk, whole ranges of the heap for the VM thread, each into a buffer of its own
// (docs/design/0020). What they wrote is used only for ranges that they finished: those are the same bytes that the VM
// thread would have written. The VM thread lists all other ranges itself.
//
// crew_call; crew_add for each range, in order of addresses; crew_start; then, for each of them in the same order,
// crew_took or else walk_list_living.
#ifndef HEAPCAM_CREW_H
#define HEAPCAM_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "heapmap.h"
#include "walk.h"

struct unit;
void crew_begin(bool full); // the control thread; without a crew all is as it is. full: that is the depth
bool crew_is_there(void);
void crew_end(void);   // the control thread, when no pause can come
void crew_report(void); // a test's
bool crew_call(uint64_t bytes);           // of all ranges; false: no crew, or not worth it
void crew_add(uint64_t lo, uint64_t hi);  // VM thread, inside the guard, like the rest
void crew_start(void);
// Writes what one of the crew has listed of the next range, which is [lo, hi). False: the VM thread has to list it.
bool crew_took(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes);
// Of eden after a pause: crew_call_eden, crew_add_eden for each range, in order of addresses; crew_start; then, for each
// of them in the same order, crew_walked, or else walk_moves.
bool crew_call_eden(uint64_t bytes, const struct heapmap *finish);
bool crew_add_eden(void *unused, uint64_t lo, uint64_t hi); // true
// What one of the crew has found in the next range, which is [lo, hi): for crewmoves_put. NULL: the VM thread has to
// walk it. *again: a test wants both, and to hear whether they differ.
const struct unit *crew_walked(uint64_t lo, uint64_t hi, bool *again);
void crew_differs(bool yes);
bool crew_is_called(void); // and some ranges have not been asked for
void crew_stop(void);

#endif
