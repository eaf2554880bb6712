// samples.h: sampled allocations: taken on application threads, lock-free towards the VM thread, which follows the
// objects through pauses.
#ifndef HEAPCAM_SAMPLES_H
#define HEAPCAM_SAMPLES_H

#include <jvmti.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapmap.h"
#include "walk.h"

extern _Atomic uint64_t interval_now; // bytes between two samples; the control thread writes
bool samples_init(void);
struct sampled {
    jthread thread;
    jobject object;
    jclass class;
    jlong size;
    uint64_t epoch; // that it is born in
};
void samples_take(jvmtiEnv *env, JNIEnv *jni,
                  const struct sampled *s); // an application thread, between enter and leave
// Gives a thread an id and records its name. Any thread but the VM thread
uint32_t samples_define_thread(jvmtiEnv *env, JNIEnv *jni, jthread t);
// Everything taken since the last time, in two steps, with the writer lock: samples_gather finds their types before the
// definitions are written, so that no pause in between adds a type that a sample names already.
void samples_gather(void);
void samples_put(struct enc *e, bool at_pause);
// Whether what samples_put wrote is in the ring; it is counted as dropped if not. After each samples_put.
void samples_committed(bool ok);
bool samples_sent(void); // none waits, and none is being written; VM thread
// In a pause: which ones have become part of the state, and which have died. at_finish: of this pause.
// full: a full or missed collection.
void samples_resolve(struct enc *e, const struct heapmap *at_finish, bool full);
void samples_live_typed(struct enc *e, const struct heapmap *at_finish); // with the types of their objects
void samples_live(struct enc *e, const struct heapmap *at_finish); // those of the state
// In a pause: the lowest object in each of some parts of [lo, hi), by address, of those sampled since the last pause
// or, with settled, before it. Returns how many.
uint32_t samples_starts(uint64_t lo, uint64_t hi, bool settled, uint64_t to[STARTS]);
uint32_t samples_most(void); // no more of them live
// Calls f for each one that lives and has survived a collection, in a stop whose heap is at.
void samples_each(const struct heapmap *at, void (*f)(void *arg, uint64_t id, uint64_t addr), void *arg);
// Control thread.
void samples_reap(JNIEnv *jni); // deletes weak references of the dead
bool samples_waiting(void);
void samples_forget(JNIEnv *jni);

#endif
