// changed.h: which loaded classes the JVM is asked to load anew, so that ClassFileLoadHook sees them, by what the hook
// has found before. HotSpot appends the constants of each version of a class to those of the one before, and a NaN is
// never equal to the one that is there. So the constants of a class that is asked for again and again as it is grow
// twofold each time, until the JVM never ends counting them: it is not asked twice for a class that stays as it is.
#ifndef HEAPCAM_CHANGED_H
#define HEAPCAM_CHANGED_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

void changed_begin(void); // a recording begins: makes room
// The hook has changed a class, or it stays as it is in all recordings. name: as the hook gets it. Any thread
void changed_note(jvmtiEnv *env, jobject loader, const char *name, bool change);
// The JVM loads anew what may have something to change, or what was changed and is to be as it was. Both give how many
// classes the JVM refused. The second is for the control thread.
typedef bool changed_may(const char *name, size_t n); // NULL: all may
uint64_t changed_ask(JNIEnv *jni, changed_may *may);
uint64_t changed_give_back(JNIEnv *jni);
uint64_t changed_memory(JNIEnv *jni); // bytes that HotSpot keeps if all loaded classes are changed
void changed_show(void); // that the recording's end goes on. The control thread

#endif
