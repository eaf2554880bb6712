// refstores.h: roots that JVMTI does not show, or not before it has marked all objects: threads that it hides, and what
// the JVM itself holds. HotSpot keeps them in stores (OopStorage) that no table names. So they are found by their
// names, and held to what is known: the store that has a JNI global of ours. Where anything is not as expected, they
// are left out.
#ifndef HEAPCAM_REFSTORES_H
#define HEAPCAM_REFSTORES_H

#include <jni.h>
#include <stdbool.h>

#include "refwalk.h"

bool refstores_find(jobject global); // not in a pause; false: this JVM does not show them
// In the stop, after the walk, with the guard's handler free. false: not all of them are among the roots.
bool refstores_read(struct refs *r);

// The same for what the frames of Java threads hold besides their variables: arguments of native methods, and what
// compiled code keeps. Nothing says where that is, so each word of a stack counts that may be a reference.
bool refstores_stacks(struct refs *r);
// After the stop, on the control thread: what stacks may refer to becomes a root if it is an object.
void refstores_settle(struct refs *r);

#endif
