// epoch.h: what happens at the start and the finish of a pause. VM thread, world stopped, but for what says otherwise.
// It never waits, allocates, or makes a system call but clock_gettime and sigaction (and, with -Xcheck:jni,
// process_vm_readv).
#ifndef HEAPCAM_EPOCH_H
#define HEAPCAM_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tally.h"

bool epoch_init(void); // the thread that begins
void epoch_start(void);
void epoch_finish(void);
void epoch_walk(int reason);             // inside a stop without collection
void epoch_tally(struct tally *t);       // inside a stop: heap_tally
void epoch_want_sync(int reason);        // any thread: the next pause ends with a listing
uint64_t epoch_number(void);             // any thread; of the newest pause

#endif
