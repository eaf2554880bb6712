// pool.h: threads of the probe that help the VM thread while the world stands still (docs/design/0020). The JVM does
// not know them. Each has a guard of its own: where a read of it faults, it goes back to sleep. The VM thread never
// waits for one. What they share outlives a recording, since one that is late may still read it.
#ifndef HEAPCAM_POOL_H
#define HEAPCAM_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { POOL_MOST = 8 };
typedef void pool_work(unsigned who);

// The control thread: begins so many threads; returns how many there are: 0 where one of an earlier recording has not
// ended.
unsigned pool_begin(unsigned n, pool_work *work, pool_work *rest);
bool pool_end(void);       // the control thread, when no pause can come: all have ended. Else their memory must stay
unsigned pool_ready(void); // VM thread: threads that sleep, if all do and there is a CPU for one; else 0
void pool_open(void);      // VM thread, inside the guard, after pool_ready: all work now
void pool_more(void);      // VM thread, while a job is open: who sleeps comes back to it
void pool_close(void);     // VM thread: who works stops soon; all do `rest` some time
bool pool_quiet(void);     // none can fault any more. Any thread, after pool_close
void pool_fault(void);     // in the handler of a fault: does not return if it was one of theirs
void pool_die(void);       // a test's: the calling thread of the pool is no more

extern _Atomic uint32_t pool_job; // 0: none is open
// For who works: whether the job that it began with is open.
static inline bool pool_works(uint32_t job) {
    return atomic_load_explicit(&pool_job, memory_order_relaxed) == job;
}

#endif
