//go:build ignore

// jvm.c: jvm.h.
#include "jvm.h"

#include <stdio.h>
#include <string.h>

#include "log.h"
#include "vmstructs.h"

jvmtiEnv *jvmti;
JavaVM *java_vm;

bool jvmti_event(jvmtiEventMode m, jvmtiEvent ev, const char *name) {
    jvmtiError r = (*jvmti)->SetEventNotificationMode(jvmti, m, ev, NULL);
    if (r) log_line("JVMTI SetEventNotificationMode failed for %s: error %d", name, (int)r);
    return r == 0;
}

void jvmti_relinquish(void) {
    jvmtiCapabilities c;
    if ((*jvmti)->GetCapabilities(jvmti, &c) == JVMTI_ERROR_NONE) (*jvmti)->RelinquishCapabilities(jvmti, &c);
}

void jvmti_property(const char *name, char *to, size_t n) {
    char *v = NULL;
    to[0] = 0;
    if ((*jvmti)->GetSystemProperty(jvmti, name, &v) || !v) return;
    snprintf(to, n, "%s", v);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)v);
}

// ---- emergencies --------------------------------------------------------------------------------
struct stop {
    void (*f)(void *);
    void *arg;
    bool done;
};

static jint JNICALL stopped(jvmtiHeapReferenceKind k, const jvmtiHeapReferenceInfo *i, jlong ct, jlong rt, jlong size,
                            jlong *tag, jlong *rtag, jint len, void *user) {
    (void)k, (void)i, (void)ct, (void)rt, (void)size, (void)tag, (void)rtag, (void)len;
    struct stop *s = user;
    if (!s->done) s->done = true, s->f(s->arg);
    return JVMTI_VISIT_ABORT;
}

void in_a_stop(JNIEnv *jni, void (*f)(void *), void *arg) {
    jvmtiHeapCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.heap_reference_callback = stopped;
    struct stop s = {f, arg, false};
    // From the roots, and aborted at the first: before 25 the JVM otherwise resets the marks of all objects afterwards.
    (*jvmti)->FollowReferences(jvmti, 0, NULL, NULL, &cb, &s);
    if (s.done) return;
    jclass k = (*jni)->FindClass(jni, "java/lang/Object");
    jobject o = k ? (*jni)->AllocObject(jni, k) : NULL;
    if (o) (*jvmti)->FollowReferences(jvmti, 0, NULL, o, &cb, &s);
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, o);
    (*jni)->DeleteLocalRef(jni, k);
}

void know_thread(JNIEnv *jni) {
    jclass k = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID current = k ? (*jni)->GetStaticMethodID(jni, k, "currentThread", "()Ljava/lang/Thread;") : NULL;
    jfieldID eetop = current ? (*jni)->GetFieldID(jni, k, "eetop", "J") : NULL; // where HotSpot's own object for it is
    jobject t = eetop ? (*jni)->CallStaticObjectMethod(jni, k, current) : NULL;
    if (t && !(*jni)->ExceptionCheck(jni)) vm_know_thread((void *)(uintptr_t)(*jni)->GetLongField(jni, t, eetop));
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, t);
    (*jni)->DeleteLocalRef(jni, k);
}

static jlong call_long(JNIEnv *jni, jclass k, jobject o, const char *method) { // -1: it threw
    jmethodID m = (*jni)->GetMethodID(jni, k, method, "()J");
    jlong v = m ? (*jni)->CallLongMethod(jni, o, m) : -1;
    if (!(*jni)->ExceptionCheck(jni)) return v;
    (*jni)->ExceptionClear(jni);
    return -1;
}

uint64_t heap_in_use(JNIEnv *jni) {
    jclass k = (*jni)->FindClass(jni, "java/lang/Runtime");
    jmethodID get = k ? (*jni)->GetStaticMethodID(jni, k, "getRuntime", "()Ljava/lang/Runtime;") : NULL;
    jobject o = get ? (*jni)->CallStaticObjectMethod(jni, k, get) : NULL;
    jlong total = -1, left = -1;
    if ((*jni)->ExceptionCheck(jni))
        (*jni)->ExceptionClear(jni);
    else if (o)
        total = call_long(jni, k, o, "totalMemory"), left = call_long(jni, k, o, "freeMemory");
    (*jni)->DeleteLocalRef(jni, o);
    (*jni)->DeleteLocalRef(jni, k);
    return left >= 0 && total > left ? (uint64_t)(total - left) : 0;
}

// What the VM's tables do not have; the JDK's own Java code does.
uint32_t object_field_offset(JNIEnv *jni, const char *class, const char *field) {
    jlong at = 0;
    jclass k = (*jni)->FindClass(jni, class),
           u = k ? (*jni)->FindClass(jni, "jdk/internal/misc/Unsafe") : NULL;
    jmethodID get = u ? (*jni)->GetStaticMethodID(jni, u, "getUnsafe", "()Ljdk/internal/misc/Unsafe;") : NULL;
    jobject o = get ? (*jni)->CallStaticObjectMethod(jni, u, get) : NULL;
    jmethodID offset = o && !(*jni)->ExceptionCheck(jni)
                           ? (*jni)->GetMethodID(jni, u, "objectFieldOffset", "(Ljava/lang/Class;Ljava/lang/String;)J")
                           : NULL;
    jstring name = offset ? (*jni)->NewStringUTF(jni, field) : NULL;
    if (name) at = (*jni)->CallLongMethod(jni, o, offset, k, name);
    if ((*jni)->ExceptionCheck(jni)) {
        (*jni)->ExceptionClear(jni);
        at = 0;
    }
    (*jni)->DeleteLocalRef(jni, name);
    (*jni)->DeleteLocalRef(jni, o);
    (*jni)->DeleteLocalRef(jni, u);
    (*jni)->DeleteLocalRef(jni, k);
    return at >= 8 && at < 4096 ? (uint32_t)at : 0;
}

// 0: there is no such class (17).
uint32_t chunk_size_offset(JNIEnv *jni) {
    return object_field_offset(jni, "jdk/internal/vm/StackChunk", "size");
}

bool thread_start(JNIEnv *jni, jvmtiStartFunction f) {
    jclass k = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID init = k ? (*jni)->GetMethodID(jni, k, "<init>", "(Ljava/lang/String;)V") : NULL;
    jstring name = init ? (*jni)->NewStringUTF(jni, "heapcam") : NULL;
    jobject t = name ? (*jni)->NewObject(jni, k, init, name) : NULL;
    if (!t) {
        (*jni)->ExceptionClear(jni);
        return false;
    }
    jvmtiError r = (*jvmti)->RunAgentThread(jvmti, t, f, NULL, JVMTI_THREAD_NORM_PRIORITY);
    (*jni)->DeleteLocalRef(jni, t);
    (*jni)->DeleteLocalRef(jni, name);
    (*jni)->DeleteLocalRef(jni, k);
    return r == JVMTI_ERROR_NONE;
}

// ---- class loaders -------------------------------------------------------------------------------
static jclass builtin, loader_class, reflection; // global; the last one is NULL where there is none (JDK 25)
static jmethodID load, load_resolve;
static jfieldID parent, lock_map;

bool loaders_begin(JNIEnv *jni) {
    if (lock_map) return true;
    jclass k = (*jni)->FindClass(jni, "java/lang/ClassLoader");
    jclass b = k ? (*jni)->FindClass(jni, "jdk/internal/loader/BuiltinClassLoader") : NULL;
    if (b) {
        load = (*jni)->GetMethodID(jni, k, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;");
        load_resolve = load ? (*jni)->GetMethodID(jni, k, "loadClass", "(Ljava/lang/String;Z)Ljava/lang/Class;") : NULL;
        parent = load_resolve ? (*jni)->GetFieldID(jni, k, "parent", "Ljava/lang/ClassLoader;") : NULL;
        builtin = parent ? (*jni)->NewGlobalRef(jni, b) : NULL;
        loader_class = builtin ? (*jni)->NewGlobalRef(jni, k) : NULL;
        if (loader_class)
            lock_map = (*jni)->GetFieldID(jni, k, "parallelLockMap", "Ljava/util/concurrent/ConcurrentHashMap;");
    }
    (*jni)->ExceptionClear(jni);
    jclass r = lock_map ? (*jni)->FindClass(jni, "jdk/internal/reflect/DelegatingClassLoader") : NULL;
    reflection = r ? (*jni)->NewGlobalRef(jni, r) : NULL;
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, r);
    (*jni)->DeleteLocalRef(jni, b);
    (*jni)->DeleteLocalRef(jni, k);
    return lock_map != NULL;
}

bool has_security_manager(JNIEnv *jni) {
    jclass k = (*jni)->FindClass(jni, "java/lang/System");
    jmethodID m =
        k ? (*jni)->GetStaticMethodID(jni, k, "getSecurityManager", "()Ljava/lang/SecurityManager;") : NULL;
    jobject o = m ? (*jni)->CallStaticObjectMethod(jni, k, m) : NULL;
    const bool has = o != NULL;
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, o);
    (*jni)->DeleteLocalRef(jni, k);
    return has;
}

// Loaders of frameworks that ask for classes of java.* where the JDK's do.
static bool is_known(jvmtiEnv *env, jclass k) {
    static const char *const names[] = {"Lorg/springframework/boot/loader/", "Lorg/apache/catalina/loader/",
                                        "Lorg/eclipse/jetty/", "Ljava/net/"};
    char *name = NULL;
    bool known = false;
    if ((*env)->GetClassSignature(env, k, &name, NULL) != JVMTI_ERROR_NONE) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) known |= !strncmp(name, names[i], strlen(names[i]));
    (*env)->Deallocate(env, (unsigned char *)name);
    return known;
}

// What javac reads another JDK with. It has a lock, but holds none that the code of its classes may wait for.
static bool reads_jdk(jvmtiEnv *env, JNIEnv *jni, jobject l) {
    static const char loader[] = "Ljdk/internal/jrtfs/JrtFileSystemProvider$JrtFsLoader;";
    char *name = NULL;
    jclass k = (*jni)->GetObjectClass(jni, l);
    const bool ok = !(*env)->GetClassSignature(env, k, &name, NULL) && !strcmp(name, loader);
    (*env)->Deallocate(env, (unsigned char *)name);
    (*jni)->DeleteLocalRef(jni, k);
    return ok;
}

// One level: whether it delegates; more: to its parent, which may be null.
static bool delegates(jvmtiEnv *env, JNIEnv *jni, jobject l) {
    if (reads_jdk(env, jni, l)) return true;
    jobject locks = (*jni)->GetObjectField(jni, l, lock_map);
    if (!locks) return false;
    (*jni)->DeleteLocalRef(jni, locks);
    jclass k = (*jni)->GetObjectClass(jni, l);
    const bool as_jdk =
        (*jni)->GetMethodID(jni, k, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;") == load &&
        (*jni)->GetMethodID(jni, k, "loadClass", "(Ljava/lang/String;Z)Ljava/lang/Class;") == load_resolve;
    (*jni)->ExceptionClear(jni);
    const bool ok = as_jdk || is_known(env, k);
    (*jni)->DeleteLocalRef(jni, k);
    return ok;
}

bool loader_finds(jvmtiEnv *env, JNIEnv *jni, jobject loader) {
    enum { MOST = 32 };
    jobject l = loader ? (*jni)->NewLocalRef(jni, loader) : NULL;
    bool ok = true;
    for (int i = 0; l && ok && !(*jni)->IsInstanceOf(jni, l, builtin); i++) {
        // The JVM never asks the loader of reflection's own classes, but its parent.
        ok = i < MOST && ((reflection && (*jni)->IsInstanceOf(jni, l, reflection)) || delegates(env, jni, l));
        jobject up = ok ? (*jni)->GetObjectField(jni, l, parent) : NULL;
        (*jni)->DeleteLocalRef(jni, l);
        l = up;
    }
    (*jni)->DeleteLocalRef(jni, l);
    return ok;
}

bool retransform_capabilities(void) {
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_retransform_classes = 1;
    c.can_generate_all_class_hook_events = 1;
    return (*jvmti)->AddCapabilities(jvmti, &c) == JVMTI_ERROR_NONE;
}
