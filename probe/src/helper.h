// helper.h: the class whose method site(I) stores the number of a site, for exact. A JVM thread
#ifndef HEAPCAM_HELPER_H
#define HEAPCAM_HELPER_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "shadow.h"

// eetop: where a java.lang.Thread keeps the address of HotSpot's own object. false: it is not there, or not ready.
bool helper_define(JNIEnv *jni, const char *name, const struct shadow_place *at, uint64_t eetop);

#endif
