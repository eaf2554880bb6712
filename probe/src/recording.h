// recording.h: memory and variables of one recording, and the gate that callbacks of the JVM pass.
//
// PER_RECORDING (os.h) variables begin each recording with the value that the code gives them. Memory is given back
// when the recording ends. recording_begin and recording_end are called by the thread that begins, or by the control
// thread when it ends: never by two at a time.
#ifndef HEAPCAM_RECORDING_H
#define HEAPCAM_RECORDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memory(size_t n); // zero; NULL: none. Not for the VM thread
void *memory_ready(size_t n); // its first use costs nothing more: for small tables that threads of the application fill
void *memory_sparse(size_t n);
void memory_give_back(void *p);

// Callbacks run between these two: what they touch stays as long as one runs. False: there is no recording.
bool enter(void);
void leave(void);
bool enter_pause(void); // the same for those of the VM thread
void leave_pause(void);
void wait_for_pause(void); // until no callback of the VM thread runs

bool recording_begin(void);           // false: there is one
void recording_open(void);            // callbacks may come
void recording_close(void);           // none comes any more, and none runs
void recording_end(void);             // after recording_close and ring_close: all that it had is given back
extern _Atomic uint32_t recording_no; // 1, 2, …
extern _Atomic bool gave_up;          // nothing is recorded any more; the control thread ends the recording
extern _Atomic uint64_t gc_counter;   // odd while a collection runs: objects may move. The VM thread counts
extern uint64_t probe_epoch_ns;       // CLOCK_MONOTONIC at the start; written before callbacks may come

#endif
