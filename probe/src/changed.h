// changed.h: what a look at the code of each class has found, by the class's name and loader. HotSpot appends the
// constants of each version of a class to those of the one before, and a NaN is never equal to the one that is there.
// So the constants of a class that is asked for again and again grow twofold each time, until the JVM never ends
// counting them: it must not be asked for a class that has nothing to change. Any thread
#ifndef HEAPCAM_CHANGED_H
#define HEAPCAM_CHANGED_H

#include <jvmti.h>
#include <stdbool.h>

enum changed_state { CHANGED_NO = 1, CHANGED_YES }; // 0: not known, or given back

void changed_begin(void); // a recording begins: makes room. What has nothing to change stays known
// name: as ClassFileLoadHook gives it, which may be NULL.
void changed_note(jvmtiEnv *env, jobject loader, const char *name, enum changed_state s);
bool changed_may(JNIEnv *jni, jclass k);   // whether the class may have something to change
bool changed_taken(JNIEnv *jni, jclass k); // whether it was changed, and must be given back; forgets that it was

#endif
