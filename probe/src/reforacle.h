// reforacle.h: the test build's oracle of reference listings (option oracle=1): in the same stop JVMTI follows all
// references, and both are compared by class. Control thread; refedge on the VM thread in the stop.
#ifndef HEAPCAM_REFORACLE_H
#define HEAPCAM_REFORACLE_H

#include <jvmti.h>
#include <stdbool.h>

#include "refwalk.h"

bool reforacle_begin(void); // false: there is no memory for it
// One reference as JVMTI names it.
void reforacle_edge(jvmtiHeapReferenceKind k, const jlong *tag, const jlong *referrer_tag);
void reforacle_compare(const struct refs *r); // one line on stderr for each class that differs, and one for all

#endif
