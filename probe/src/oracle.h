// oracle.h: the probe's walk against JVMTI's own heap iteration, inside one stop (option oracle=1, for tests). Control
// thread.
#ifndef HEAPCAM_ORACLE_H
#define HEAPCAM_ORACLE_H

#include <jni.h>

void oracle(JNIEnv *jni);

#endif
