// meta.h: blocks that are not epochs: the JVM's properties, definitions, samples, the end. Threads that may wait.
#ifndef HEAPCAM_META_H
#define HEAPCAM_META_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "encode.h"

enum { VM_NAME = 300 };
extern char vm_name[VM_NAME];        // the thread that begins writes these two, before callbacks may come
extern bool at_start;                // the recording began with the JVM
void meta_begin(void);               // notes the time
extern _Atomic bool sampling_denied; // another agent has it, as of the last time that this probe asked

// Each of them commits one block or more; false: there is no room, or another epoch waits for it.
bool meta_put_first(void);
bool meta_put_samples(void);
bool meta_put_context(void); // what context_put writes
bool meta_put_note(const char *text); // with the JVM's properties anew
bool meta_put_end(uint64_t reason);   // HC_END_*
bool meta_commit(void (*fill)(struct enc *e)); // what fill writes, which begins with meta_fill_samples
void meta_fill_samples(struct enc *e);         // definitions, and all samples taken since the last time

// All definitions again, for an agent that comes later, in parts. Control thread.
void meta_again_begin(void);
bool meta_again_next(uint64_t *from,
                     bool *more); // from: where in the ring the first part begins; more: there is another
bool meta_again_is_first(void);   // the part that meta_again_next has committed

#endif
