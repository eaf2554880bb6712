//go:build ignore

// fakejvm.c: a process that is a JVM as far as the probe can see, for systems that no JVM of the tests runs on: Windows
// (make test-wine) and musl (TestFakeJVM). It has the tables that libjvm exports, a Serial heap that is filled and
// collected, the JVMTI and JNI functions that the probe calls, and a neighbour that handles page faults of its own, as
// HotSpot does.
//
//	fakejvm PROBE.DLL OPTIONS COLLECTIONS end|kill|nojvmti [VERSION [NAME]]
//
// kill: another thread ends the process in the middle of the last collection's finish. It prints what it collected,
// which is what a recording must hold.
#include <jvmti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include "posix.h"
#endif

#include "vm.h"

#define HEAP 0x680000000ull

// ---- JVMTI and JNI, as far as the probe goes ------------------------------------------------------------------------
static const char *version = "17.0.0", *vm_name = "Fake VM";
static bool without_jvmti;
static jvmtiEventCallbacks callbacks;      // of the probe's first environment
static jvmtiEventCallbacks last_callbacks; // of the one that it makes in VMInit
static jvmtiEnv ti, last_ti;
static bool ti_given, last_enabled;
static bool enabled[JVMTI_MAX_EVENT_TYPE_VAL + 1];
static uint64_t weaks[WEAKS]; // what each refers to; 1: free
static SRWLOCK weak_lock = SRWLOCK_INIT;
static volatile LONG agent_threads, walks;

static char *copied(const char *s) { return s ? strdup(s) : NULL; }
static jvmtiError JNICALL Deallocate(jvmtiEnv *t, unsigned char *p) { return (void)t, free(p), 0; }
static jvmtiError JNICALL AddCapabilities(jvmtiEnv *t, const jvmtiCapabilities *c) { return (void)t, (void)c, 0; }
static jvmtiError JNICALL GetCapabilities(jvmtiEnv *t, jvmtiCapabilities *c) {
    return (void)t, memset(c, 0, sizeof *c), 0;
}
static jvmtiError JNICALL DisposeEnvironment(jvmtiEnv *t) { return (void)t, 0; }
static jvmtiError JNICALL SetHeapSamplingInterval(jvmtiEnv *t, jint n) { return (void)t, (void)n, 0; }
static jvmtiError JNICALL SetEventCallbacks(jvmtiEnv *t, const jvmtiEventCallbacks *c, jint n) {
    return memcpy(t == &ti ? &callbacks : &last_callbacks, c, (size_t)n), 0;
}
static jvmtiError JNICALL SetEventNotificationMode(jvmtiEnv *t, jvmtiEventMode m, jvmtiEvent e, jthread th, ...) {
    (void)th;
    *(t == &ti ? &enabled[e] : &last_enabled) = m == JVMTI_ENABLE;
    return 0;
}
static SRWLOCK monitor = SRWLOCK_INIT;
static jvmtiError JNICALL CreateRawMonitor(jvmtiEnv *t, const char *name, jrawMonitorID *m) {
    return (void)t, (void)name, *m = (jrawMonitorID)&monitor, 0;
}
static jvmtiError JNICALL RawMonitorEnter(jvmtiEnv *t, jrawMonitorID m) {
    return (void)t, AcquireSRWLockExclusive((SRWLOCK *)m), 0;
}
static jvmtiError JNICALL RawMonitorExit(jvmtiEnv *t, jrawMonitorID m) {
    return (void)t, ReleaseSRWLockExclusive((SRWLOCK *)m), 0;
}
static jvmtiError JNICALL RawMonitorWait(jvmtiEnv *t, jrawMonitorID m, jlong ms) {
    return (void)t, (void)m, Sleep((DWORD)ms), 0;
} // nobody notifies
static jvmtiError JNICALL GetSystemProperty(jvmtiEnv *t, const char *name, char **v) {
    (void)t;
    *v = copied(!strcmp(name, "java.vm.version") ? version : vm_name);
    return 0;
}
static jvmtiError JNICALL GetStackTrace(jvmtiEnv *t, jthread th, jint depth, jint max, jvmtiFrameInfo *f, jint *n) {
    (void)t, (void)th, (void)depth;
    static int calls;
    int first = calls++ % 3;
    for (*n = 0; *n < 3 && *n < max; ++*n)
        f[*n] = (jvmtiFrameInfo){(jmethodID)(uintptr_t)(64 * (1 + first + *n)), 4 * *n};
    return 0;
}
static jvmtiError JNICALL GetMethodName(jvmtiEnv *t, jmethodID m, char **name, char **sig, char **generic) {
    (void)t, (void)generic;
    char s[20];
    snprintf(s, sizeof s, "method%u", (unsigned)(uintptr_t)m / 64);
    *name = copied(s), *sig = copied("()V");
    return 0;
}
static jvmtiError JNICALL GetMethodDeclaringClass(jvmtiEnv *t, jmethodID m, jclass *k) {
    return (void)t, *k = (jclass)m, 0;
}
static jvmtiError JNICALL GetClassSignature(jvmtiEnv *t, jclass k, char **s, char **g) {
    return (void)t, (void)k, (void)g, *s = copied("LShop;"), 0;
}
static jvmtiError JNICALL GetSourceFileName(jvmtiEnv *t, jclass k, char **s) {
    return (void)t, (void)k, *s = copied("Shop.java"), 0;
}
static jvmtiError JNICALL IsMethodNative(jvmtiEnv *t, jmethodID m, jboolean *n) {
    return (void)t, (void)m, *n = JNI_FALSE, 0;
}
static jvmtiError JNICALL GetLineNumberTable(jvmtiEnv *t, jmethodID m, jint *n, jvmtiLineNumberEntry **l) {
    (void)t;
    *n = 1;
    *l = malloc(sizeof **l);
    **l = (jvmtiLineNumberEntry){0, (jint)(uintptr_t)m / 64 * 10};
    return 0;
}
static jvmtiError JNICALL GetThreadInfo(jvmtiEnv *t, jthread th, jvmtiThreadInfo *i) {
    return (void)t, (void)th, i->name = copied("main"), 0;
}
// The world stands still: the program holds its lock but at its safepoints. The probe looks once and ends it.
static SRWLOCK world = SRWLOCK_INIT;
static jvmtiError JNICALL FollowReferences(jvmtiEnv *t, jint filter, jclass k, jobject o, const jvmtiHeapCallbacks *c,
                                           const void *user) {
    (void)t, (void)filter, (void)k, (void)o;
    AcquireSRWLockExclusive(&world);
    c->heap_reference_callback(JVMTI_HEAP_REFERENCE_CLASS, NULL, 0, 0, 16, NULL, NULL, -1, (void *)(uintptr_t)user);
    walks++;
    ReleaseSRWLockExclusive(&world);
    return 0;
}
static jobject JNICALL AllocObject(JNIEnv *j, jclass k) { return (void)j, (jobject)k; }
static jvmtiError JNICALL GetObjectSize(jvmtiEnv *t, jobject o, jlong *n) { return (void)t, (void)o, *n = 0, 0; }
static jint JNICALL JNIVersion(JNIEnv *j) { return (void)j, JNI_VERSION_10; }
static jclass JNICALL FindClass(JNIEnv *j, const char *name) {
    return (void)j, strstr(name, "StackChunk") ? NULL : (jclass)&klasses[ORDER];
}
static jmethodID JNICALL GetMethodID(JNIEnv *j, jclass k, const char *n, const char *s) {
    return (void)j, (void)k, (void)n, (void)s, (jmethodID)&names;
}
static jmethodID JNICALL GetStaticMethodID(JNIEnv *j, jclass k, const char *n, const char *s) {
    return (void)j, (void)k, (void)n, (void)s, NULL;
}
static jstring JNICALL NewStringUTF(JNIEnv *j, const char *s) { return (void)j, (jstring)(uintptr_t)s; }
static jobject JNICALL NewObject(JNIEnv *j, jclass k, jmethodID m, ...) { return (void)j, (void)m, (jobject)k; }
static void JNICALL DeleteLocalRef(JNIEnv *j, jobject o) { (void)j, (void)o; }
static void JNICALL ExceptionClear(JNIEnv *j) { (void)j; }
static jboolean JNICALL ExceptionCheck(JNIEnv *j) { return (void)j, JNI_FALSE; }
static jweak JNICALL NewWeakGlobalRef(JNIEnv *j, jobject o) {
    (void)j;
    jweak w = NULL;
    AcquireSRWLockExclusive(&weak_lock);
    for (int i = 0; i < WEAKS && !w; i++)
        if (weaks[i] == 1) weaks[i] = *(uint64_t *)o, w = (jweak)((uintptr_t)&weaks[i] | 1);
    ReleaseSRWLockExclusive(&weak_lock);
    return w;
}
static void JNICALL DeleteWeakGlobalRef(JNIEnv *j, jweak w) {
    (void)j, *(volatile uint64_t *)((uintptr_t)w & ~7ull) = 1;
}

static struct jvmtiInterface_1_ jvmti = {
    .Deallocate = Deallocate,
    .AddCapabilities = AddCapabilities,
    .GetCapabilities = GetCapabilities,
    .RelinquishCapabilities = AddCapabilities,
    .DisposeEnvironment = DisposeEnvironment,
    .SetHeapSamplingInterval = SetHeapSamplingInterval,
    .SetEventCallbacks = SetEventCallbacks,
    .SetEventNotificationMode = SetEventNotificationMode,
    .GetSystemProperty = GetSystemProperty,
    .GetStackTrace = GetStackTrace,
    .GetMethodName = GetMethodName,
    .GetMethodDeclaringClass = GetMethodDeclaringClass,
    .GetClassSignature = GetClassSignature,
    .GetSourceFileName = GetSourceFileName,
    .IsMethodNative = IsMethodNative,
    .GetLineNumberTable = GetLineNumberTable,
    .GetThreadInfo = GetThreadInfo,
    .GetObjectSize = GetObjectSize,
    .FollowReferences = FollowReferences,
    .CreateRawMonitor = CreateRawMonitor,
    .RawMonitorEnter = RawMonitorEnter,
    .RawMonitorExit = RawMonitorExit,
    .RawMonitorWait = RawMonitorWait,
};
static struct JNINativeInterface_ jni = {
    .GetVersion = JNIVersion,
    .FindClass = FindClass,
    .GetMethodID = GetMethodID,
    .GetStaticMethodID = GetStaticMethodID,
    .NewStringUTF = NewStringUTF,
    .NewObject = NewObject,
    .DeleteLocalRef = DeleteLocalRef,
    .ExceptionClear = ExceptionClear,
    .ExceptionCheck = ExceptionCheck,
    .NewWeakGlobalRef = NewWeakGlobalRef,
    .DeleteWeakGlobalRef = DeleteWeakGlobalRef,
    .AllocObject = AllocObject,
};
static jvmtiEnv ti = &jvmti, last_ti = &jvmti;
static JNIEnv env = &jni;

struct agent_thread {
    jvmtiStartFunction f;
    const void *arg;
};
static DWORD WINAPI agent_thread(void *p) {
    struct agent_thread *a = p;
    a->f(&ti, &env, (void *)(uintptr_t)a->arg);
    InterlockedDecrement(&agent_threads);
    return 0;
}
static jvmtiError JNICALL RunAgentThread(jvmtiEnv *t, jthread th, jvmtiStartFunction f, const void *arg,
                                         jint priority) {
    (void)t, (void)th, (void)priority;
    static struct agent_thread a;
    a = (struct agent_thread){f, arg};
    InterlockedIncrement(&agent_threads);
    return CreateThread(NULL, 0, agent_thread, &a, 0, NULL) ? JVMTI_ERROR_NONE : JVMTI_ERROR_INTERNAL;
}

static jint JNICALL GetEnv(JavaVM *v, void **to, jint which) {
    (void)v;
    bool is_jvmti = (which & 0x70000000) == 0x30000000;
    if (is_jvmti && without_jvmti) return JNI_EVERSION;
    *to = !is_jvmti ? (void *)&env : ti_given ? (void *)&last_ti : (void *)&ti;
    ti_given |= is_jvmti;
    return JNI_OK;
}
static struct JNIInvokeInterface_ invoke = {.GetEnv = GetEnv};
static JavaVM vm = &invoke;

// ---- a neighbour that lives on faults: each must come to it and to nobody else --------------------------------------
enum { PAGES = 1 << 16, PAGE = 4096 };
static char *lazily;
static volatile LONG handled, touched, stop_faults;
#ifdef _WIN32
static LONG CALLBACK my_fault(EXCEPTION_POINTERS *x) {
    uintptr_t at = x->ExceptionRecord->ExceptionInformation[1];
    if (x->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION || at < (uintptr_t)lazily ||
        at >= (uintptr_t)lazily + (size_t)PAGES * PAGE)
        return EXCEPTION_CONTINUE_SEARCH;
    InterlockedIncrement(&handled);
    return VirtualAlloc((void *)at, 1, MEM_COMMIT, PAGE_READWRITE) ? EXCEPTION_CONTINUE_EXECUTION
                                                                   : EXCEPTION_CONTINUE_SEARCH;
}
static void *reserve(void *at, size_t n, bool commit) {
    return VirtualAlloc(at, n, MEM_RESERVE | (commit ? MEM_COMMIT : 0), PAGE_READWRITE);
}
// The probe's handler comes later: Windows asks it first.
static void handle_faults(void) { AddVectoredExceptionHandler(1, my_fault); }
static void end_here(void) { TerminateProcess(GetCurrentProcess(), 0); }
static void join(HANDLE thread) { WaitForSingleObject(thread, INFINITE); }
#else
static void my_fault(int sig, siginfo_t *i, void *context) {
    (void)context;
    uintptr_t at = (uintptr_t)i->si_addr & ~(uintptr_t)(PAGE - 1);
    if (at < (uintptr_t)lazily || at >= (uintptr_t)lazily + (size_t)PAGES * PAGE ||
        mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE)) {
        signal(sig, SIG_DFL); // nobody's: the access is made again and ends the process
        return;
    }
    InterlockedIncrement(&handled);
}
static void *reserve(void *at, size_t n, bool commit) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *p = mmap(at, n, commit ? PROT_READ | PROT_WRITE : PROT_NONE, flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
static void handle_faults(void) { // the probe's comes later, and passes on what is not its own
    struct sigaction a = {.sa_sigaction = my_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &a, NULL);
}
static void end_here(void) { kill(getpid(), SIGKILL); }
static void join(HANDLE thread) { pthread_join(*(pthread_t *)thread, NULL); }
#endif
static DWORD WINAPI faults(void *p) {
    (void)p;
    while (!stop_faults && touched < PAGES) {
        lazily[(size_t)touched * PAGE] = 1;
        if (InterlockedIncrement(&touched) % 64 == 0) Sleep(1);
    }
    return 0;
}

// ---- the program, and the collector ---------------------------------------------------------------------------------
static uint64_t seed = 88172645463325252ull;
static uint32_t chance(uint32_t n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}
#define MARK(a) (*(uint64_t *)(a))
static struct klass *class_of(uint64_t a) {
    return (struct klass *)(klass_base + ((uint64_t) * (uint32_t *)(a + 8) << klass_shift));
}
static uint64_t size_of(uint64_t a) {
    int32_t lh = class_of(a)->layout;
    uint64_t n = lh > 0 ? (uint64_t)lh : ((uint32_t)lh >> 16 & 0xff) + ((uint64_t) * (uint32_t *)(a + 12) << (lh & 63));
    return (n + 7) & ~7ull;
}

static bool allocate(int k, uint32_t len) {
    struct klass *c = &klasses[k];
    uint64_t a = eden.top,
             n = c->layout > 0 ? (uint64_t)c->layout : (16 + ((uint64_t)len << (c->layout & 63)) + 7) & ~7ull;
    if (eden.end - a < n) return false;
    memset((void *)a, 0, n);
    MARK(a) = 1;
    *(uint32_t *)(a + 8) = (uint32_t)((uint64_t)((char *)c - klass_base) >> klass_shift);
    if (c->layout < 0) *(uint32_t *)(a + 12) = len;
    eden.top += n;
    static unsigned count;
    if (++count % EACH_SAMPLE == 0 && enabled[JVMTI_EVENT_SAMPLED_OBJECT_ALLOC]) {
        static uint64_t handle;
        handle = a;
        callbacks.SampledObjectAlloc(&ti, &env, NULL, (jobject)&handle, NULL, (jlong)n);
    }
    return true;
}

static void safepoint(void) {
    ReleaseSRWLockExclusive(&world);
    Sleep(1);
    AcquireSRWLockExclusive(&world);
}

static void fill_eden(bool late) {
    for (bool room = true, half = false; room;) {
        if (!half && eden.top > eden.bottom + EDEN / 2) half = true, safepoint();
        int k = (int)chance(late ? CLASSES : CLASSES - 1);
        room = allocate(k, k == BYTES ? chance(200) : chance(12));
    }
}

// evacuate copies what lives of a space; the old copy tells where to.
static void evacuate(struct space *s, unsigned percent) {
    for (uint64_t a = s->bottom, n; a < s->top; a += n) {
        n = size_of(a);
        if (chance(100) >= percent) continue;
        uint64_t age = (MARK(a) >> 3 & 15) + 1;
        struct space *to = age > TENURE || young.to->end - young.to->top < n ? &old : young.to;
        uint64_t d = to->top;
        if (to->end - d < n) exit(9); // the heap is too small for the test
        memcpy((void *)d, (void *)a, n);
        to->top += n;
        MARK(d) = 1 | age << 3;
        MARK(a) = d | 3;
    }
    s->top = s->bottom;
}

static bool in(const struct space *s, uint64_t a) { return a >= s->bottom && a < s->end; }

static void follow_weaks(bool full) {
    for (int i = 0; i < WEAKS; i++) {
        uint64_t a = weaks[i];
        if (a > 1 && (full || in(&eden, a) || in(young.from, a))) weaks[i] = (MARK(a) & 3) == 3 ? MARK(a) & ~7ull : 0;
    }
}

static void collect_young(void) {
    perf.e[0].n++;
    evacuate(young.from, 50);
    evacuate(&eden, 10);
    follow_weaks(false);
    struct space *t = young.from;
    young.from = young.to, young.to = t;
}

// Everything that lives slides down into old space, in order.
static void collect_full(void) {
    perf.e[1].n++;
    struct space *order[] = {&old, young.from, &eden};
    uint64_t d = old.bottom;
    for (int i = 0; i < 3; i++)
        for (uint64_t a = order[i]->bottom, n; a < order[i]->top; a += n) {
            n = size_of(a);
            MARK(a) = 1;
            if (chance(100) < (i ? 20 : 60)) MARK(a) = d | 3, d += n;
        }
    follow_weaks(true);
    for (int i = 0; i < 3; i++)
        for (uint64_t a = order[i]->bottom, n; a < order[i]->top; a += n) {
            n = size_of(a);
            uint64_t to = MARK(a) & ~7ull;
            if ((MARK(a) & 3) != 3) continue;
            memmove((void *)to, (void *)a, n);
            MARK(to) = 1;
        }
    old.top = d;
    for (int i = 1; i < 3; i++) order[i]->top = order[i]->bottom;
}

// The last collection is interrupted: the process ends while it is in the probe's finish, or just before.
static DWORD WINAPI killer(void *p) {
    (void)p;
    end_here();
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return fprintf(stderr, "arguments: PROBE.DLL OPTIONS COLLECTIONS end|kill|nojvmti [VERSION [NAME]]\n"), 2;
    int collections = atoi(argv[3]);
    without_jvmti = !strcmp(argv[4], "nojvmti");
    if (argc > 5) version = argv[5];
    if (argc > 6) vm_name = argv[6];
    bool killed = !strcmp(argv[4], "kill");
    lazily = reserve(NULL, (size_t)PAGES * PAGE, false);
    handle_faults();
    jvmti.RunAgentThread = RunAgentThread;
    struct flag f[] = {{&on, "UseSerialGC", {0}},
                       {&on, "UsePerfData", {0}},
                       {&on, "UseCompressedOops", {0}},
                       {&on, "UseCompressedClassPointers", {0}},
                       {&object_alignment, "ObjectAlignmentInBytes", {0}},
                       {&max_heap, "MaxHeapSize", {0}}};
    memcpy(flags, f, sizeof f);
    if (reserve((void *)HEAP, HEAP_SIZE, true) != (void *)HEAP)
        return fprintf(stderr, "no heap\n"), 2;
    eden = (struct space){HEAP, HEAP, HEAP + EDEN};
    survivors[0] = (struct space){eden.end, eden.end, eden.end + SURVIVOR};
    survivors[1] = (struct space){survivors[0].end, survivors[0].end, survivors[0].end + SURVIVOR};
    old = (struct space){survivors[1].end, survivors[1].end, HEAP + HEAP_SIZE};
    heap = (struct heap){&young, &tenured, HEAP, HEAP_SIZE / 8, 0};
    for (int i = 0; i < WEAKS; i++) weaks[i] = 1;

    HMODULE lib = LoadLibraryA(argv[1]);
    if (!lib) return fprintf(stderr, "%s was not loaded\n", argv[1]), 1;
    typedef jint(JNICALL * load)(JavaVM *, char *, void *);
    load on_load = (load)(uintptr_t)GetProcAddress(lib, "Agent_OnLoad");
    if (!on_load || !GetProcAddress(lib, "Agent_OnAttach"))
        return fprintf(stderr, "Agent_OnLoad or Agent_OnAttach is missing\n"), 1;
    jint r = on_load(&vm, argv[2], NULL);
    if (r) return fprintf(stderr, "Agent_OnLoad: %d\n", (int)r), 1; // it would end the JVM
    if (without_jvmti) return 0;
    if (enabled[JVMTI_EVENT_VM_INIT]) callbacks.VMInit(&ti, &env, NULL);
    if (last_enabled) last_callbacks.VMInit(&last_ti, &env, NULL);
    AcquireSRWLockExclusive(&world);
    HANDLE neighbour = CreateThread(NULL, 0, faults, NULL, 0, NULL);
    while (!touched) Sleep(1); // a run may be over before that thread begins
    for (int i = 1; i <= collections; i++) {
        if (i == collections / 2) boot.klasses = &klasses[LATE];
        fill_eden(i > collections / 2);
        if (enabled[JVMTI_EVENT_GARBAGE_COLLECTION_START]) callbacks.GarbageCollectionStart(&ti);
        heap.total++;
        i % EACH_FULL == 0 ? collect_full() : collect_young();
        if (i == collections && killed) CreateThread(NULL, 0, killer, NULL, 0, NULL);
        if (enabled[JVMTI_EVENT_GARBAGE_COLLECTION_FINISH]) callbacks.GarbageCollectionFinish(&ti);
    }
    for (; killed;) Sleep(1000);
    stop_faults = 1;
    join(neighbour);
    ReleaseSRWLockExclusive(&world);
    if (enabled[JVMTI_EVENT_VM_DEATH]) callbacks.VMDeath(&ti, &env);
    uint64_t objects = 0, bytes = 0;
    struct space *state[] = {young.from, &old};
    for (int i = 0; i < 2; i++)
        for (uint64_t a = state[i]->bottom, n; a < state[i]->top; a += n) n = size_of(a), objects++, bytes += n;
    for (int i = 0; agent_threads && i < 100; i++) Sleep(50);
    printf("%d collections, %llu objects, %llu bytes, %ld walks, %ld faults of others, %ld of them came here, %ld "
           "agent threads\n",
           collections, (unsigned long long)objects, (unsigned long long)bytes, (long)walks, (long)touched,
           (long)handled, (long)agent_threads);
    return touched > 0 && touched == handled && !agent_threads ? 0 : 1;
}
