// crew.h: threads of the pool list, or walk, whole ranges of the heap for the VM thread, each into a buffer of its own
// (docs/design/0020). What they wrote is used only for ranges that they finished: those are the same bytes that the VM
// thread would have written. The VM thread lists all other ranges itself.
//
// A pause has up to three phases. Of each: crew_call; crew_add, crew_add_moves or crew_add_births for each range, in
// order of addresses; crew_start; then, for each of them in the same order, crew_took or crew_walked, or else the VM
// thread's own walk; crew_stop.
#ifndef HEAPCAM_CREW_H
#define HEAPCAM_CREW_H

#include <stdbool.h>
#include <stdint.h>

#include "heapmap.h"
#include "walk.h"

struct unit;
void crew_begin(void); // the control thread; without a crew all is as it is
bool crew_is_there(void);
void crew_end(void); // the control thread, when no pause can come
void crew_report(void); // a test's
// Of the option crew, for tests; 0: no crew, 1: as in production.
enum { TEST_COMPARE = 2, TEST_FAULT, TEST_LATE, TEST_STRAGGLE, TEST_HANG, TEST_DIE, TEST_USE, TEST_TURNS, TEST_WRONG,
       TEST_SOME, TEST_WRONG_SLICE };
enum { CREW_MOVES, CREW_BIRTHS, CREW_LIST, CREW_PHASES };
// bytes: of all ranges. finish: of the pause. false: no crew, or not worth it.
bool crew_call(int of, uint64_t bytes, const struct heapmap *finish);
void crew_add(uint64_t lo, uint64_t hi); // VM thread, inside the guard, like the rest
void crew_add_moves(uint64_t lo, uint64_t hi, int source, uint64_t uncounted); // as of walk_moves
void crew_add_births(uint64_t lo, uint64_t hi, bool young);
void crew_start(void);
// Writes what one of the crew has listed of the next range, which is [lo, hi). False: the VM thread has to list it.
bool crew_took(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes);
// What one of the crew has found in the next range, which is [lo, hi): for crewmoves.h. NULL: the VM thread has to walk
// it. *again: a test wants both, and to hear whether they differ.
const struct unit *crew_walked(uint64_t lo, uint64_t hi, bool *again);
void crew_differs(bool yes);
// A listing that ends when its time is over (list_until): in place of crew_start and crew_took, behind crew_add of
// ranges that follow each other from `at` on. The crew and the VM thread go up, so that what is listed is one range.
// Returns where it ends: inside of one of them if *stopped, as of walk_list_part. One that does not end at an object
// leaves the guard.
uint64_t crew_slice(struct walker *w, uint64_t at, uint64_t *objects, uint64_t *bytes, bool *stopped);
void crew_has_listed(uint64_t bytes); // a test's: in place of the bytes of crew_call
bool crew_is_called(void); // and some ranges have not been asked for
void crew_stop(void);

#endif
