// lifecycle.h: a recording begins, and ends with the JVM, on request, or because it cannot go on.
#ifndef HEAPCAM_LIFECYCLE_H
#define HEAPCAM_LIFECYCLE_H

#include <jni.h>

// Begins a recording; the JVM has created its heap. Returns 0 if it records. A thread of the JVM, while nothing is
// recorded.
int lifecycle_begin(JNIEnv *jni);
void lifecycle_refused(void);    // it has not begun: gives back what it had, so that the JVM may be asked again
void lifecycle_unprepared(void); // likewise, before lifecycle_begin was called
void lifecycle_jvm_ends(JNIEnv *jni); // in VMDeath

#endif
