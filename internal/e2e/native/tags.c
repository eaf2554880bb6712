// Tags every object of the heap with its address, and later writes which tags are left: what has survived in between.
// It holds objects in the ways of JNI. HotSpot keeps the address of an object two words before its tag.
#include <jni.h>
#include <jvmti.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static jvmtiEnv *ti;
static atomic_int released;
static jlong *left;
static size_t n, most;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)reserved;
    jvmtiCapabilities c = {.can_tag_objects = 1};
    if ((*vm)->GetEnv(vm, (void **)&ti, JVMTI_VERSION_1_2) || (*ti)->AddCapabilities(ti, &c)) return JNI_ERR;
    return JNI_VERSION_1_8;
}

static jint JNICALL tag_one(jlong class_tag, jlong size, jlong *tag, jint length, void *user) {
    (void)class_tag, (void)size, (void)length, (void)user;
    *tag = tag[-2];
    n++;
    return JVMTI_VISIT_OBJECTS;
}

static jint JNICALL note_one(jlong class_tag, jlong size, jlong *tag, jint length, void *user) {
    (void)class_tag, (void)size, (void)length, (void)user;
    if (n == most && !(left = realloc(left, (most = 2 * most + 1024) * sizeof *left))) abort();
    left[n++] = *tag;
    return JVMTI_VISIT_OBJECTS;
}

JNIEXPORT jlong JNICALL Java_Dying_tag(JNIEnv *jni, jclass k) {
    (void)jni, (void)k;
    jvmtiHeapCallbacks cb = {.heap_iteration_callback = tag_one};
    n = 0;
    return (*ti)->IterateThroughHeap(ti, 0, NULL, &cb, NULL) ? 0 : (jlong)n;
}

JNIEXPORT void JNICALL Java_Dying_survivors(JNIEnv *jni, jclass k, jstring file) {
    (void)k;
    jvmtiHeapCallbacks cb = {.heap_iteration_callback = note_one};
    n = 0;
    (*ti)->IterateThroughHeap(ti, JVMTI_HEAP_FILTER_UNTAGGED, NULL, &cb, NULL);
    const char *path = (*jni)->GetStringUTFChars(jni, file, NULL);
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    for (size_t i = 0; i < n; i++) fprintf(f, "%lld\n", (long long)left[i]);
    fclose(f);
    (*jni)->ReleaseStringUTFChars(jni, file, path);
}

// Holds the first by a global reference, the second by a weak one.
JNIEXPORT void JNICALL Java_Dying_hold(JNIEnv *jni, jclass k, jobject strongly, jobject weakly) {
    (void)k;
    (*jni)->NewGlobalRef(jni, strongly);
    (*jni)->NewWeakGlobalRef(jni, weakly);
}

// Takes the only element out of an array, and holds it by a local reference alone.
JNIEXPORT void JNICALL Java_Dying_block(JNIEnv *jni, jclass k, jobjectArray box) {
    (void)k;
    jobject o = (*jni)->GetObjectArrayElement(jni, box, 0);
    (*jni)->SetObjectArrayElement(jni, box, 0, NULL);
    while (!atomic_load(&released)) usleep(20000);
    (*jni)->DeleteLocalRef(jni, o);
}

JNIEXPORT void JNICALL Java_Dying_release(JNIEnv *jni, jclass k) {
    (void)jni, (void)k;
    atomic_store(&released, 1);
}
