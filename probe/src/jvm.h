// jvm.h: what the probe asks of the JVM through JVMTI and JNI. Not for the VM thread in a pause.
#ifndef HEAPCAM_JVM_H
#define HEAPCAM_JVM_H

#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern jvmtiEnv *jvmti; // one for all recordings; made by the first thread that begins, before anything is recorded
extern JavaVM *java_vm; // likewise

bool jvmti_event(jvmtiEventMode m, jvmtiEvent ev, const char *name); // false: the reason was logged
void jvmti_relinquish(
    void); // gives back what a probe that is loaded later needs: sampling belongs to one agent at a time
void jvmti_property(const char *name, char *to, size_t n); // "": there is none
// Calls f once in a stop without a collection: JVMTI stops the world to enumerate the roots.
void in_a_stop(JNIEnv *jni, void (*f)(void *), void *arg);
void know_thread(JNIEnv *jni);     // gives vm_know_thread HotSpot's object for the calling thread
uint64_t heap_in_use(JNIEnv *jni); // bytes, garbage included; 0: not known
uint32_t object_field_offset(JNIEnv *jni, const char *class, const char *field); // 0: not known
uint32_t chunk_size_offset(JNIEnv *jni);
// A thread of Java's that runs f; false: it could not be made.
bool thread_start(JNIEnv *jni, jvmtiStartFunction f);

// To change the code of classes. Before the JVM has begun; false: it does not offer that.
bool retransform_capabilities(void);
// Whether code that a class loader's classes are given finds a helper in java.lang without calling the program: the
// loader and its parents delegate as those of the JDK do, and hold no lock of the loader. loaders_begin comes first;
// false: the JDK does not show it.
bool loaders_begin(JNIEnv *jni);
// A security manager is asked while the JVM looks for the helper, and its own code may need the helper for the answer.
bool has_security_manager(JNIEnv *jni);
bool loader_finds(jvmtiEnv *env, JNIEnv *jni, jobject loader);

#endif
