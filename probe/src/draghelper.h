// draghelper.h: the class whose methods note when an object is used, for drag. A JVM thread
#ifndef HEAPCAM_DRAGHELPER_H
#define HEAPCAM_DRAGHELPER_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

struct uses_place { // addresses: of the time, and of the table of last uses
    uint64_t clock, table;
};
bool draghelper_define(JNIEnv *jni, const char *name, const struct uses_place *at); // false: it is not ready

#endif
