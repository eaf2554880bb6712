// exact.h: the option exact: calls behind each allocation in the bytecode of all classes, which store its site where
// the object ends (shadow.h).
#ifndef HEAPCAM_EXACT_H
#define HEAPCAM_EXACT_H

#include <jvmti.h>
#include <stdbool.h>

void exact_begin(JNIEnv *jni); // behind all else that begins: rewrites what is loaded, and what will be
void exact_attach(JNIEnv *jni); // the same in a thread of its own: whoever attaches waits only some seconds
void exact_end(JNIEnv *jni);   // gives all classes back as they were. The control thread, while callbacks may still run
void exact_report(void);
void JNICALL on_class(jvmtiEnv *env, JNIEnv *jni, jclass redefined, jobject loader, const char *name, jobject domain,
                      jint n, const unsigned char *in, jint *new_n, unsigned char **new_in);

#endif
