// classtags.h: types by class, where objects must not be read: JVMTI keeps the type's id with the class. Application
// threads, in the callback of a sample.
#ifndef HEAPCAM_CLASSTAGS_H
#define HEAPCAM_CLASSTAGS_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

bool classtags_begin(JavaVM *v); // the thread that begins
void classtags_end(void);        // when no callback runs any more: the JVM forgets all tags
// The type of a class, defined when it is met first. size: bytes of an object of it. 0: not known.
uint32_t classtags_type(JNIEnv *jni, jclass k, jlong size);

#endif
