//go:build ignore

// drag.c: drag.h.
#include "drag.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "changed.h"
#include "draghelper.h"
#include "heapcam_abi.h"
#include "jvm.h"
#include "log.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "rewrite.h"
#include "uses.h"
#include "vmstructs.h"

#define HELPER "java/lang/HeapcamDrag"
static PER_RECORDING _Atomic bool on;
static PER_RECORDING jobject platform; // the platform class loader; written before `on`
static PER_RECORDING _Atomic uint64_t classes, odd, uses, methods, refused, others, unseen, cpu;
static PER_RECORDING uint64_t failed; // classes that the JVM did not load anew

// ---- scope ---------------------------------------------------------------------------------------
static bool begins(struct text t, const char *s, size_t n) {
    if (t.n < n) return false;
    for (size_t i = 0; i < n; i++)
        if (t.p[i] != (uint8_t)(s[i] == '.' ? '/' : s[i])) return false;
    return true;
}

static bool of_jdk(struct text name) {
    static const char *const jdk[] = {"[", "java/", "javax/", "jdk/", "sun/", "com/sun/"};
    for (size_t i = 0; i < sizeof jdk / sizeof *jdk; i++)
        if (begins(name, jdk[i], strlen(jdk[i]))) return true;
    return false;
}

static bool all(void) { return !strcmp(opt.drag, "all"); }

// Classes that stay as they are: what the helper calls, and what HotSpot treats in ways of its own.
static bool never(struct text name) {
    static const char *const which[] = {HELPER, "java/lang/Object", "java/lang/invoke/", "jdk/internal/misc/Unsafe",
                                        "jdk/internal/vm/"};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        if (begins(name, which[i], strlen(which[i]))) return true;
    return false;
}

// Whether a package of the option has the class. Of a class that only code names, the loader is not known.
static bool chosen(struct text name) {
    if (all()) return !never(name);
    if (!strcmp(opt.drag, "app")) return !of_jdk(name);
    for (const char *p = opt.drag; *p;) {
        const size_t n = strcspn(p, "+");
        if (n && begins(name, p, n) && (name.n == n || name.p[n] == '/' || name.p[n] == '$' || p[n - 1] == '.'))
            return true;
        p += n + (p[n] == '+');
    }
    return false;
}

// Methods of java.lang are often native, or an instruction for the compilers: they cannot check their receiver.
static bool outside(void *arg, struct text name) {
    (void)arg;
    return !chosen(name) || (all() && (begins(name, "java/lang/", 10) || begins(name, "[", 1)));
}

static bool may(const char *name, size_t n) { return chosen((struct text){(const uint8_t *)name, n}); }

static bool is_inside(JNIEnv *jni, jobject loader, const char *name) {
    return name && may(name, strlen(name)) &&
           (all() || (loader && !(*jni)->IsSameObject(jni, loader, platform)));
}

// ---- classes -------------------------------------------------------------------------------------
void JNICALL drag_class(jvmtiEnv *env, JNIEnv *jni, jclass redefined, jobject loader, const char *name, jobject domain,
                        jint n, const unsigned char *in, jint *new_n, unsigned char **new_in) {
    (void)redefined, (void)domain;
    if (!atomic_load_explicit(&on, memory_order_acquire) || n <= 0 || !is_inside(jni, loader, name) || !enter()) return;
    if (!loader_finds(env, jni, loader)) {
        atomic_fetch_add(&others, 1);
        leave();
        return;
    }
    const uint64_t from = cpu_ns();
    struct rewriting w = {.uses = true, .outside = outside, .helper = {(const uint8_t *)HELPER, sizeof HELPER - 1}};
    uint8_t *out;
    size_t out_n;
    bool is_odd;
    if (class_rewrite(in, (size_t)n, &w, &out, &out_n, &is_odd)) {
        unsigned char *copy;
        if ((*env)->Allocate(env, (jlong)out_n, &copy) == JVMTI_ERROR_NONE) {
            memcpy(copy, out, out_n);
            *new_in = copy, *new_n = (jint)out_n;
            changed_note(env, loader, name, true);
            atomic_fetch_add(&classes, 1);
        }
        free(out);
    } else if (all()) {
        changed_note(env, loader, name, false);
    }
    if (is_odd) atomic_fetch_add(&odd, 1);
    atomic_fetch_add(&uses, w.sites);
    atomic_fetch_add(&methods, w.methods);
    atomic_fetch_add(&refused, w.refused);
    atomic_fetch_add(&unseen, w.unseen);
    atomic_fetch_add(&cpu, cpu_ns() - from);
    leave();
}

static bool find_platform(JNIEnv *jni) {
    jclass k = (*jni)->FindClass(jni, "java/lang/ClassLoader");
    jmethodID m =
        k ? (*jni)->GetStaticMethodID(jni, k, "getPlatformClassLoader", "()Ljava/lang/ClassLoader;") : NULL;
    jobject l = m ? (*jni)->CallStaticObjectMethod(jni, k, m) : NULL;
    (*jni)->ExceptionClear(jni);
    platform = l ? (*jni)->NewGlobalRef(jni, l) : NULL;
    (*jni)->DeleteLocalRef(jni, l);
    (*jni)->DeleteLocalRef(jni, k);
    return platform != NULL;
}

static const char *begin(JNIEnv *jni) {
#ifdef _WIN32
    return "not available on Windows";
#endif
    if (opt.exact) return "not together with exact sites";
    // Elsewhere the upper bits of headers may mean something.
    if ((vm.major != 17 && vm.major != 25) || vm.compact_headers)
        return "only for JDK 17 and 25, without compact headers";
    if (vm_has_no_addresses()) return "only with the Serial, Parallel and G1 collectors";
    if (vm.max_metaspace < 1ull << 48)
        return "-XX:MaxMetaspaceSize is set, and classes that are changed need more of it: start the JVM without it";
    struct uses_place at;
    if (!uses_init(&at.clock, &at.table)) return "not enough memory";
    if (all() && os_memory_left() < changed_memory(jni))
        return "12 KiB for each loaded class do not fit into the memory that is left";
    if (!loaders_begin(jni)) return "the JDK does not show how its class loaders work";
    if (has_security_manager(jni)) return "the program has a security manager";
    if (!find_platform(jni)) return "the JVM does not give its platform class loader";
    if (!draghelper_define(jni, HELPER, &at)) return "the helper class could not be defined";
    return NULL;
}

void drag_begin(JNIEnv *jni) {
    if (!opt.drag[0]) return;
    const char *why = begin(jni);
    if (why) {
        log_line("drag: off: %s", why);
        return;
    }
    changed_begin();
    uses_switch(true);
    atomic_store(&on, true);
    // But for `all`, what is loaded already stays as it is: the JDK, and what other agents brought.
    if (jvmti_event(JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, "ClassFileLoadHook") && all())
        failed = changed_ask(jni, may);
}

void drag_end(JNIEnv *jni) {
    uses_switch(false);
    if (!atomic_exchange(&on, false)) return;
    (void)changed_give_back(jni);
    jvmti_event(JVMTI_DISABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, "ClassFileLoadHook");
}

void drag_report(void) {
    if (!atomic_load(&on)) return;
    log_line("drag: %llu classes with %llu uses in %llu methods; left as they are: %llu methods, %llu classes that "
             "were not understood; CPU %llu ms; %llu calls with too many arguments; %llu objects followed, %llu times "
             "one was locked",
             (unsigned long long)classes, (unsigned long long)uses, (unsigned long long)methods,
             (unsigned long long)refused, (unsigned long long)odd, (unsigned long long)cpu / 1000000,
             (unsigned long long)unseen, (unsigned long long)uses_followed(), (unsigned long long)uses_blind());
    if (others + failed)
        log_line("drag: uses in %llu classes are not seen: the loaders of %llu load classes in ways of their own, and "
                 "the JVM refused %llu",
                 (unsigned long long)(others + failed), (unsigned long long)others, (unsigned long long)failed);
}
