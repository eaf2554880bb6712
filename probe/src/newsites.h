// newsites.h: at which bytecodes `new` the objects of each class may have been made: those of methods that were
// executed, of which the class is resolved. A class with one such place has a proven site. The control thread reads the
// JVM's metadata in slices of at most a millisecond, a thousandth of the time in all.
#ifndef HEAPCAM_NEWSITES_H
#define HEAPCAM_NEWSITES_H

#include <stdbool.h>
#include <stdint.h>

// After vm_load and classes_init. Nothing is read of a JDK or with a collector that metadata_init does not know
void newsites_init(void);
bool newsites_busy(void);           // a round is under way, and may be continued now. Control thread
void newsites_turn(uint64_t now); // control thread
void newsites_report_end(void);   // a test's: what was read, and what it cost

#endif
