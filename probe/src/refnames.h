// refnames.h: names of the classes and fields of a reference listing, and of the threads and methods of its roots.
// Control thread, while the application runs. Names are read; values are not.
#ifndef HEAPCAM_REFNAMES_H
#define HEAPCAM_REFNAMES_H

#include <jvmti.h>

#include "refhead.h"
#include "refwalk.h"

void refnames_put(JNIEnv *jni, const struct refs *r, struct refhead *h); // refclass, reffield, refroots

#endif
