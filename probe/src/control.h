// control.h: the probe's own thread. It copies the header words between the shared ring and the probe, does what the
// agent requests, and ends the recording.
#ifndef HEAPCAM_CONTROL_H
#define HEAPCAM_CONTROL_H

#include <jvmti.h>
#include <stdbool.h>

#include "log.h"

// end: what the thread does last. asked: somebody detaches the probe; else the recording cannot continue.
typedef void control_end(JNIEnv *jni, bool asked);
// check: called after the first collections, until it has succeeded CONTROL_CHECKS times. If it fails twice, the
// recording ends with the reason in `why`. (A single failure may come from dead objects of classes that were unloaded.)
// NULL: nothing is checked.
enum { CONTROL_CHECKS = 3 };
typedef bool control_check(JNIEnv *jni, char why[HC_MAX_REASON]);
bool control_start(JNIEnv *jni, control_end *end, control_check *check);
void control_stop(void); // the JVM ends; the thread does nothing more, and ends no recording

// ResourceExhausted: an allocation failed for want of heap. exhaustion: this JVM posts it.
extern bool exhaustion; // the thread that begins writes it, before the control thread is there
void JNICALL on_exhausted(jvmtiEnv *env, JNIEnv *jni, jint flags, const void *reserved, const char *what);
void control_init(void); // once in the life of the JVM

#endif
