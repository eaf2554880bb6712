// retry.h: what to do after pauses that were not understood. VM thread in pauses, but for retry_after_epochs.
//
// After eight such pauses in a row there are two cases. If only the content of the heap is unknown (a read that
// faulted, an unknown class word), the cause ends by itself. After an attach, for example, G1 has dead objects of
// classes that were unloaded before, until it collects their regions. The probe then walks no object for RETRY_FIRST
// epochs, the next time for twice as many, up to RETRY_MOST. In all other cases the structures of the JVM are not the
// known ones, and recording ends.
#ifndef HEAPCAM_RETRY_H
#define HEAPCAM_RETRY_H

#include <stdbool.h>
#include <stdint.h>

enum { FAULTS_IN_A_ROW = 8, RETRY_FIRST = 16, RETRY_MOST = 1024 }; // epochs
void retry_faulted(bool by_contents); // this epoch was not understood; by_contents: guard.h, violated_by_contents
void retry_understood(bool walked);   // this one was; walked: objects, too
bool retry_is_hopeless(void);
bool retry_waits(void);            // the next epoch is recorded without walking objects; asked once an epoch
uint32_t retry_after_epochs(void); // any thread; epochs of the present or last wait; 0: there was none

#endif
