//go:build ignore

// exact.c: exact.h.
#include "exact.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "changed.h"
#include "heapcam_abi.h"
#include "helper.h"
#include "jvm.h"
#include "meta.h"
#include "log.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "rewrite.h"
#include "shadow.h"
#include "sites.h"
#include "stamps.h"
#include "vmstructs.h"

#define HELPER "java/lang/HeapcamSites"
// Each recording costs native memory that HotSpot keeps: old versions of classes, and code that was compiled anew.
enum { MOST_RECORDINGS = 8 };
static uint32_t recordings;
static bool defined; // stays, as do the tables that the helper knows
static PER_RECORDING _Atomic bool on, beginning;
static PER_RECORDING _Atomic uint64_t classes, odd, sites, methods, refused, others, classes_failed, cpu;

// ---- definitions ---------------------------------------------------------------------------------
static void put_text(struct enc *e, struct text t) { put_str(e, (const char *)t.p, t.n); }

// As sites.c defines a method of a stack, so that both have one id.
static uint32_t method_of(void *arg, const struct rewritten *m) {
    (void)arg;
    const size_t room = 20 * m->nlines, names = m->class.n + m->name.n + m->sig.n + m->file.n + 80;
    uint8_t *b = malloc(2 * room + names);
    if (!b) return 0;
    struct enc l = {.p = b, .base = b, .end = b + room},
               e = {.p = b + room, .base = b + room, .end = b + 2 * room + names};
    int64_t bci = 0, line = 0;
    for (size_t i = 0; i < m->nlines && i < HC_MAX_LINES; i++) {
        const uint8_t *p = m->lines + 4 * i;
        const int64_t at = m->pos[p[0] << 8 | p[1]], n = p[2] << 8 | p[3];
        if (at < bci) continue;
        put_u(&l, (uint64_t)(at - bci));
        put_s(&l, n - line);
        bci = at, line = n;
    }
    uint8_t *const body = e.p = e.base + SITES_HEAD;
    const size_t class_n = sites_name((const char *)m->class.p, m->class.n);
    put_u(&e, class_n + 2);
    put8(&e, 'L');
    for (size_t i = 0; i < class_n; i++) put8(&e, m->class.p[i]);
    put8(&e, ';');
    put_text(&e, m->name);
    put_text(&e, m->sig);
    put_text(&e, m->file);
    put_u(&e, 0);
    put_str(&e, (char *)l.base, l.over ? 0 : (size_t)(l.p - l.base));
    const uint32_t id = e.over ? 0 : sites_same_method(body, &e);
    free(b);
    return id;
}

static uint32_t hash_of(const struct made *m) {
    const struct text type = m->type;
    uint32_t h = 0;
    for (int i = 0; i < m->dimensions; i++) h = shadow_hash(h, "[", 1);
    const bool wrap = m->dimensions && type.n > 1 && type.p[0] != '[';
    if (wrap) h = shadow_hash(h, "L", 1);
    h = shadow_hash(h, type.p, type.n);
    return wrap ? shadow_hash(h, ";", 1) : h;
}

static uint32_t site_of(void *arg, uint32_t method, uint32_t bci, const struct made *m) {
    (void)arg;
    const uint32_t frame = sites_outermost(method, (int32_t)bci);
    if (m->kind != MADE_TYPE) return shadow_site(frame, (uint32_t)m->kind, m->kind);
    const bool is_array = m->dimensions || (m->type.n && *m->type.p == '[');
    return shadow_site(frame, hash_of(m), is_array ? MADE_ARRAY : MADE_INSTANCE);
}

// ---- classes -------------------------------------------------------------------------------------
void JNICALL on_class(jvmtiEnv *env, JNIEnv *jni, jclass redefined, jobject loader, const char *name, jobject domain,
                      jint n, const unsigned char *in, jint *new_n, unsigned char **new_in) {
    (void)redefined, (void)domain;
    if (!atomic_load_explicit(&on, memory_order_acquire) || n <= 0 || (name && !strcmp(name, HELPER)) || !enter())
        return;
    if (!loader_finds(env, jni, loader)) {
        atomic_fetch_add(&others, 1);
        changed_note(env, loader, name, false);
        leave();
        return;
    }
    const uint64_t from = cpu_ns();
    struct rewriting w = {
        .method = method_of, .site = site_of, .helper = {(const uint8_t *)HELPER, sizeof HELPER - 1}};
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
    } else {
        changed_note(env, loader, name, false);
    }
    if (is_odd) atomic_fetch_add(&odd, 1);
    atomic_fetch_add(&sites, w.sites);
    atomic_fetch_add(&methods, w.methods);
    atomic_fetch_add(&refused, w.refused);
    atomic_fetch_add(&cpu, cpu_ns() - from);
    leave();
}

static const char *begin(JNIEnv *jni) {
#ifdef _WIN32
    return "not available on Windows";
#endif
    if (vm_has_no_addresses()) return "only with the collectors Serial, Parallel and G1";
    if (opt.depth != HC_DEPTH_FULL) return "only at depth full";
    if (vm.major < 17) return "only for JDK 17 and later";
    if (recordings >= MOST_RECORDINGS)
        return "the classes of this JVM were changed for 8 recordings, and each costs memory that the JVM keeps: "
               "start the JVM anew";
    if (vm.max_metaspace < 1ull << 48)
        return "-XX:MaxMetaspaceSize is set, and classes that are changed need more of it: start the JVM without it";
    const uint64_t used = heap_in_use(jni), later = vm.max_heap > used ? vm.max_heap - used : 0;
    if (os_memory_left() < later + vm.max_heap / 2 + changed_memory(jni))
        return "the largest heap, half of it more, and 12 KiB for each loaded class do not fit into the memory that is "
               "left";
    if (!loaders_begin(jni)) return "the JDK does not show how its class loaders work";
    if (has_security_manager(jni)) return "the program has a security manager";
    struct shadow_place at;
    if (!shadow_init(&at)) return "not enough memory";
    if (opt.hash && !stamps_init()) return "this JDK does not say where its identity hashes are, or not enough memory";
    const uint64_t eetop = object_field_offset(jni, "java/lang/Thread", "eetop");
    if (!eetop) return "the JDK does not tell where a thread keeps its address";
    if (!defined && !helper_define(jni, HELPER, &at, eetop)) return "the helper class could not be defined";
    defined = true;
    return NULL;
}

void exact_begin(JNIEnv *jni) {
    if (!opt.exact) return;
    const char *why = begin(jni);
    if (why) {
        log_line("exact sites: off: %s", why);
        return;
    }
    recordings++;
    changed_begin();
    stamps_switch(opt.hash);
    (void)shadow_switch(true);
    atomic_store(&on, true);
    if (jvmti_event(JVMTI_ENABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, "ClassFileLoadHook"))
        classes_failed += changed_ask(jni, NULL);
}

static void JNICALL begin_thread(jvmtiEnv *env, JNIEnv *jni, void *arg) {
    (void)env, (void)arg;
    exact_begin(jni);
    atomic_store(&beginning, false);
}

void exact_attach(JNIEnv *jni) {
    if (!opt.exact) return;
    atomic_store(&beginning, true);
    if (!thread_start(jni, begin_thread)) begin_thread(NULL, jni, NULL);
}

void exact_end(JNIEnv *jni) {
    for (; atomic_load(&beginning); os_sleep_us(20000)) changed_show();
    (void)shadow_switch(false);
    stamps_switch(false);
    if (!atomic_exchange(&on, false)) return;
    classes_failed += changed_give_back(jni);
    shadow_give_back();
    jvmti_event(JVMTI_DISABLE, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, "ClassFileLoadHook");
}

void exact_report(void) {
    if (!atomic_load(&classes)) return;
    log_line("exact sites: %llu classes with %llu sites in %llu methods; left as they are: %llu methods, %llu classes "
             "that were not understood, %llu that the JVM refused; CPU %llu ms; %llu objects, %llu of another type",
             (unsigned long long)classes, (unsigned long long)sites, (unsigned long long)methods,
             (unsigned long long)refused, (unsigned long long)odd, (unsigned long long)classes_failed,
             (unsigned long long)cpu / 1000000, (unsigned long long)shadow_marked(),
             (unsigned long long)shadow_mistyped());
    if (atomic_load(&others))
        log_line("exact sites: %llu classes were left as they are: their class loaders load classes in ways of their "
                 "own",
                 (unsigned long long)others);
    if (stamps_put()) log_line("exact sites: %llu identity hashes have one", (unsigned long long)stamps_put());
}
