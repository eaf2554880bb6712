// cycles.h: pauses and concurrent cycles of collectors whose objects have no address: ZGC, Shenandoah, Epsilon. A pause
// is only noted; the control thread makes cycles of pauses, by the number that the JVM's log has for them, and records
// each as an epoch. docs/design/0018-concurrent-collectors.md has the reasons.
#ifndef HEAPCAM_CYCLES_H
#define HEAPCAM_CYCLES_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

bool cycles_init(void);       // the thread that begins
void cycles_pause_begin(void); // these two: VM thread, in a pause
void cycles_pause_end(void);
void cycles_turn(JNIEnv *jni, uint64_t now); // control thread: records the cycles that have ended
void cycles_last(JNIEnv *jni);               // the recording ends: records what is left
void cycles_want_sync(int reason);           // control thread: the next epoch ends with a sync point
uint64_t cycles_number(void);                // any thread; of the newest epoch

#endif
