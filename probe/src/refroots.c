//go:build ignore

// refroots.c: refroots.h.
#include "refroots.h"

#include <stdio.h>
#include <string.h>

#include "epoch.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "jvm.h"
#include "marks.h"
#include "options.h"
#include "os.h"
#include "reforacle.h"
#include "refstores.h"
#include "samples.h"
#include "storm.h"
#include "vmstructs.h"

// To visit classes and what comes behind them, a JVM before 25 resets the marks of all objects afterwards: 10 ns each.
static bool stops_at_classes(void) { return vm.major < 25; }

static void add_sample(void *arg, uint64_t id, uint64_t addr) {
    struct refs *r = arg;
    const uint64_t word = (addr - (uint64_t)vm.heap_base) >> 3;
    if (r->samples < r->samples_most && word < UINT32_MAX)
        r->sample[r->samples++] = (struct refsample){.id = id, .word = (uint32_t)word};
}

// Where the samples are. At depth samples nothing else says it.
static void add_samples(void *arg) {
    struct refs *r = arg;
    samples_each(&r->heap, add_sample, r);
}

// A root that is a thread gets the number of that, by which it has a name.
static void number_threads(void *arg) {
    struct refstop *s = arg;
    for (uint32_t i = 0; i < s->refs->roots; i++) {
        struct refroot *x = &s->refs->root[i];
        const uint64_t a = (uint64_t)vm.heap_base + ((uint64_t)x->target - 1) * 8 + s->tid;
        if (x->kind == HC_RR_THREAD && x->target && !x->thread) x->thread = (int64_t)rd64((void *)(uintptr_t)a);
    }
}

static void begin_stop(struct refstop *s) {
    s->walked = true;
    s->begin = now_ns();
    s->epoch = epoch_number();
    if (!storm_has_room(s->begin, s->expected)) {
        s->no_room = true;
        return;
    }
    s->refs->until = s->begin + s->most;
    const uint64_t ends = storm_now(s->begin) ? storm_ends(s->begin) : 0;
    if (ends && ends < s->refs->until) s->refs->until = ends;
    const uint64_t cpu = cpu_ns();
    s->understood = guarded(refwalk_all, s->refs);
    s->what = violated, s->where = violated_at;
    s->walk = cpu_ns() - cpu;
    if (s->understood && !guarded(add_samples, s->refs)) s->refs->samples = 0;
    if (s->understood) s->stores = refstores_read(s->refs), s->stacks = refstores_stacks(s->refs);
    if (s->understood && s->tid) (void)guarded(number_threads, s);
    s->all = now_ns() - s->begin;
    if (s->known) s->known_at = rd64((void *)((uintptr_t)s->known & ~7ull)); // the world stands still
}

static int kind_of(jvmtiHeapReferenceKind k) {
    switch (k) {
    case JVMTI_HEAP_REFERENCE_JNI_GLOBAL: return HC_RR_JNI_GLOBAL;
    case JVMTI_HEAP_REFERENCE_JNI_LOCAL: return HC_RR_JNI_LOCAL;
    case JVMTI_HEAP_REFERENCE_STACK_LOCAL: return HC_RR_STACK;
    case JVMTI_HEAP_REFERENCE_SYSTEM_CLASS: return HC_RR_SYSTEM_CLASS;
    case JVMTI_HEAP_REFERENCE_MONITOR: return HC_RR_MONITOR;
    case JVMTI_HEAP_REFERENCE_THREAD: return HC_RR_THREAD;
    default: return HC_RR_OTHER;
    }
}

static struct refroot root_of(jvmtiHeapReferenceKind k, const jvmtiHeapReferenceInfo *i) {
    struct refroot x = {.kind = kind_of(k), .bci = -1};
    if (k == JVMTI_HEAP_REFERENCE_STACK_LOCAL && i)
        x.thread = i->stack_local.thread_id, x.depth = i->stack_local.depth, x.method = i->stack_local.method,
        x.bci = i->stack_local.location;
    if (k == JVMTI_HEAP_REFERENCE_JNI_LOCAL && i)
        x.thread = i->jni_local.thread_id, x.depth = i->jni_local.depth, x.method = i->jni_local.method;
    return x;
}

// Many frames may hold the same object: one root a method and thread is enough.
static bool is_repeat(struct refs *r, const struct refroot *x) {
    uint64_t h = (uint64_t)x->target << 8 | (uint64_t)x->kind;
    h = (h ^ (uint64_t)(uintptr_t)x->method) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 29 ^ (uint64_t)x->thread) * 0xbf58476d1ce4e5b9ull;
    uint64_t *place = &r->repeats[h >> 50];
    if (*place == h) return true;
    *place = h;
    return false;
}

static jint JNICALL each_root(jvmtiHeapReferenceKind k, const jvmtiHeapReferenceInfo *i, jlong ct, jlong rt, jlong size,
                              jlong *tag, jlong *rtag, jint len, void *user) {
    (void)ct, (void)rt, (void)size, (void)rtag, (void)len;
    struct refstop *s = user;
    struct refs *r = s->refs;
    if (!s->walked) begin_stop(s);
    if (!s->understood || refs_failed(r)) return JVMTI_VISIT_ABORT;
    if (++s->calls % 1024 == 0 && now_ns() > r->until) return s->cut = true, JVMTI_VISIT_ABORT;
    if (k == JVMTI_HEAP_REFERENCE_SYSTEM_CLASS && stops_at_classes()) return JVMTI_VISIT_ABORT;
    // The mirrors of classes come from their loaders, in the walk.
    if (k == JVMTI_HEAP_REFERENCE_SYSTEM_CLASS) return 0;
    // HotSpot keeps the object two words before its tag, on the stack; whether it does, the known object shows.
    const uint64_t a = ((const uint64_t *)tag)[-2];
    if (a == s->known_at && k == JVMTI_HEAP_REFERENCE_JNI_GLOBAL) return s->found++, 0;
    if (a - (uint64_t)vm.heap_base >= vm.heap_bytes || a & (vm.align - 1)) return s->odd++, 0;
    if (k == JVMTI_HEAP_REFERENCE_THREAD && s->stores) return 0; // it is among them
    struct refroot x = root_of(k, i);
    x.target = (uint32_t)WORD(a) + 1;
    if (k == JVMTI_HEAP_REFERENCE_THREAD && s->tid && !safe_read(&x.thread, a + s->tid, sizeof x.thread)) x.thread = 0;
    if (is_repeat(r, &x)) return 0;
    if (r->roots == REF_ROOTS) r->roots_full = true;
    if (r->roots_full) return JVMTI_VISIT_ABORT;
    r->root[r->roots++] = x;
    return 0;
}

static jint JNICALL each_reference(jvmtiHeapReferenceKind k, const jvmtiHeapReferenceInfo *i, jlong ct, jlong rt,
                                   jlong size, jlong *tag, jlong *rtag, jint len, void *user) {
    struct refstop *s = user;
    if (s->oracle && s->walked && rtag) { // no root; with the oracle alone
        reforacle_edge(k, tag, rtag);
        return JVMTI_VISIT_OBJECTS;
    }
    jint what = each_root(k, i, ct, rt, size, tag, rtag, len, user);
    if (what == JVMTI_VISIT_ABORT) s->all = now_ns() - s->begin;
    if (!s->oracle || !s->understood || refs_failed(s->refs)) return what;
    reforacle_edge(JVMTI_HEAP_REFERENCE_OTHER, tag, NULL);
    return JVMTI_VISIT_OBJECTS;
}

void refroots_stop(JNIEnv *jni, struct refstop *s) {
    jvmtiHeapCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.heap_reference_callback = each_reference;
    jclass k = (*jni)->FindClass(jni, "java/lang/Object");
    jobject o = k ? (*jni)->AllocObject(jni, k) : NULL;
    s->known = o ? (*jni)->NewGlobalRef(jni, o) : NULL;
    (*jni)->ExceptionClear(jni);
    (void)refstores_find(s->known);
    s->tid = object_field_offset(jni, "java/lang/Thread", "tid");
    s->oracle = opt.oracle && reforacle_begin();
    (*jvmti)->FollowReferences(jvmti, 0, NULL, NULL, &cb, s);
    if (s->oracle && s->understood && !refs_failed(s->refs)) reforacle_compare(s->refs);
    if (s->walked && !s->oracle && !stops_at_classes()) s->all = now_ns() - s->begin; // it was not aborted
    storm_stopped(s->all);
    if (s->known) (*jni)->DeleteGlobalRef(jni, s->known);
    (*jni)->DeleteLocalRef(jni, o);
    (*jni)->DeleteLocalRef(jni, k);
    struct refs *r = s->refs;
    if (s->understood && (!s->found || s->odd)) { // what they name is not what was expected
        uint32_t n = 0;
        for (uint32_t i = 0; i < r->roots; i++)
            if (r->root[i].kind == HC_RR_LOADER) r->root[n++] = r->root[i];
        r->roots = n;
    }
    if (s->understood) refstores_settle(r);
}

void refroots_missing(const struct refstop *s, bool kinds, char *to, size_t n) {
    const struct refs *r = s->refs;
    const struct {
        bool is;
        const char *text;
    } all[] = {
        {!s->found || s->odd, "roots but classes: this JVM does not show which objects they are"},
        {s->cut, "some roots: the time that the listing may take was over"},
        {r->roots_full, "some roots: there are more than a listing can hold"},
        {!s->stores, "roots of the JVM itself that are neither classes, threads nor JNI references"},
        {r->extras_full, "some classes of class loaders"},
        {r->no_resolved, "constants of classes that have been resolved"},
        {!kinds, "referents of soft, weak, final and phantom references"},
        {r->maybes_full && r->chunks, "stacks of virtual threads that are not running"},
        {!s->stacks || r->maybes_full, "what frames hold besides their variables"},
        {r->odd_mirrors != 0, "statics of some classes"},
    };
    size_t at = 0;
    to[0] = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is && at < n)
            at += (size_t)snprintf(to + at, n - at, "%s%s", at ? "\n" : "", all[i].text);
}
