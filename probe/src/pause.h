// pause.h: which collection a pause belongs to: kind, cause, number in the JVM's log, and collections that came without
// events. From the JVM's own counters; VM thread in pauses, inside the guard where a function says so.
#ifndef HEAPCAM_PAUSE_H
#define HEAPCAM_PAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heapmap.h"

bool pause_counters_there(void);    // false: the first pause, the counters have not been found
void pause_counters_at_start(void); // guard
void pause_count_collections(void); // all that the counters show are known from here on
void pause_count_missed(void);      // what they show more than was known has come without events
// The heap has counted a collection since pause_note_finish, though nothing was announced.
void pause_look_stale(bool have_last);
void pause_note_finish(void);
void pause_clear_missed(void); // an epoch that reports them has been committed
bool pause_missed(void);       // collections without events came before, which no epoch has reported yet
uint32_t pause_missed_flags(void);
int pause_kind(const struct heapmaps *m); // guard; by what the counters show since pause_counters_at_start
uint64_t pause_jvm_gc(int kind);          // guard; n of GC(n) in the JVM's log

// The event; times in ns since probe_epoch_ns, durations in ns.
struct pause_event {
    uint64_t epoch, start, duration, cost, jvm_gc, last_finish;
    uint64_t interval; // of sampling, bytes
    int kind;          // HC_PAUSE_*
    uint32_t flags;    // HC_PF_*
    uint32_t depth;    // HC_DEPTH_*
};
void pause_put(struct enc *e, const struct pause_event *p); // guard: the cause is the JVM's memory

#endif
