// drag.h: the option drag: calls before each use of an object in the bytecode of the application or of all
// classes, which note when sampled objects were used last (uses.h).
#ifndef HEAPCAM_DRAG_H
#define HEAPCAM_DRAG_H

#include <jvmti.h>

void drag_begin(JNIEnv *jni); // at VMInit, behind all else: changes what will be loaded
void drag_end(JNIEnv *jni);   // gives all classes back as they were. The control thread, while callbacks may still run
void drag_report(void);
void JNICALL drag_class(jvmtiEnv *env, JNIEnv *jni, jclass redefined, jobject loader, const char *name, jobject domain,
                        jint n, const unsigned char *in, jint *new_n, unsigned char **new_in);

#endif
