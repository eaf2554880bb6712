// stacks.h: the innermost frame of the calling thread's stack. A stack that was seen before is known by its number
// (frames.h), without a call into the JVM. Others are composed of what is known of their frames (compose.h). The JVM is
// asked for the rest, and for a part of those that are known, to compare: if they differ too often, it is asked for all
// from then on.
#ifndef HEAPCAM_STACKS_H
#define HEAPCAM_STACKS_H

#include <jvmti.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "compose.h"
#include "frames.h"

bool stacks_init(void); // after vm_load and sites_init
struct stack_found {
    struct frames_key key;
    struct frames_list list;
    struct composed composed; // unless its frame is known
    bool partly;              // some of its methods are known
    uint32_t since; // how often methods may have been freed
    bool keyed;     // the stack has a number
    uint32_t frame; // 0: not known
};
// The three below: an application thread, in an event.
void stacks_find(struct stack_found *s);
bool stacks_check(uint32_t random); // whether a stack that is known is to be compared
// Asks the JVM for what is not known, or, to compare, for all; the innermost frame.
uint32_t stacks_read(jvmtiEnv *env, JNIEnv *jni, struct stack_found *s, bool check);
// Methods may have been freed, so that others may come to lie where they were. VM thread, in a pause.
void stacks_methods_freed(void);
void stacks_report(void);    // control thread: says once that the JVM is asked for all
void stacks_report_end(void); // a test's: what was counted

#endif
