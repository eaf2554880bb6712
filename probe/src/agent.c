//go:build ignore

// agent.c: entry points, JVMTI events, the guard, and the control thread.
#define _GNU_SOURCE
#include "probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options opt;
jvmtiEnv *jvmti;
PER_RECORDING uint64_t probe_epoch_ns;
static PER_RECORDING uint64_t probe_epoch_wall_ms;
static JavaVM *javavm;
static PER_RECORDING bool at_start, exhaustion;
static PER_RECORDING _Atomic bool stopping;

// One line on stderr, never more: it is the application's stderr.
void log_line(const char *fmt, ...) {
    char b[900];
    int n = snprintf(b, sizeof b, "heapcam: ");
    va_list ap;
    va_start(ap, fmt);
    n += vsnprintf(b + n, sizeof b - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof b - 2) n = (int)sizeof b - 2;
    b[n++] = '\n';
    os_stderr(b, (size_t)n);
}

// ---- guard (os.h)
// --------------------------------------------------------------------------------------------------------------------
const char *violated;
uint64_t violated_at;

_Noreturn void violation(const char *what, uint64_t where) {
    violated = what;
    violated_at = where;
    guard_leave();
}

bool guarded(void (*f)(void *), void *arg) {
    volatile bool done = false;
    if (GUARD_ENTER()) {
        guard_arm();
        f(arg);
        done = true;
    }
    guard_disarm();
    return done;
}

// ---- options
// -------------------------------------------------------------------------------------------------------------------------
static bool parse(const char *s) {
    opt = (struct options){.depth = HC_DEPTH_SURVIVORS,
                           .stack = 64,
                           .frames = HC_MAX_FRAMES,
                           .interval = 512 << 10,
                           .max_sync = 250000000};
    os_host_switch(opt.disabled, sizeof opt.disabled);
    char *copy = strdup(s ? s : ""), *save = NULL;
    if (!copy) {
        log_line("not recording this JVM: no memory for its options");
        return false;
    }
    bool ok = true;
    for (char *t = strtok_r(copy, OPTION_SEPARATORS, &save); t; t = strtok_r(NULL, OPTION_SEPARATORS, &save)) {
        char *v = strchr(t, '=');
        if (!v && !strcmp(t, "spool"))
            v = strtok_r(NULL, OPTION_SEPARATORS, &save); // spool:DIR
        else if (v)
            *v++ = 0;
        if (!v) {
            log_line("option \"%s\" has no value (write %s=…); not recording", t, t);
            ok = false;
            break;
        }
        unsigned long long n = strtoull(v, NULL, 10);
        if (!strcmp(t, "dir"))
            snprintf(opt.dir, sizeof opt.dir, "%s", v);
        else if (!strcmp(t, "spool")) {
            if (v[0] != '/' || strlen(v) >= sizeof opt.spool) {
                log_line("option spool:%s: it must be an absolute path of less than %d bytes; not recording", v,
                         (int)sizeof opt.spool);
                ok = false;
                break;
            }
            snprintf(opt.spool, sizeof opt.spool, "%s", v);
        } else if (!strcmp(t, "depth"))
            opt.depth = !strcmp(v, "full")      ? HC_DEPTH_FULL
                        : !strcmp(v, "samples") ? HC_DEPTH_SAMPLES
                                                : HC_DEPTH_SURVIVORS;
        else if (!strcmp(t, "interval"))
            opt.interval = n > 1u << 30 ? 1u << 30 : n;
        else if (!strcmp(t, "ring"))
            opt.ring = n;
        else if (!strcmp(t, "frames"))
            opt.frames = n < 1 ? 1 : n > HC_MAX_FRAMES ? HC_MAX_FRAMES : (uint32_t)n;
        else if (!strcmp(t, "stack"))
            opt.stack = n < 1 ? 1 : n > 512 ? 512 : (int)n;
        else if (!strcmp(t, "slots"))
            opt.slots = n > 1u << 22 ? 1u << 22 : (uint32_t)n;
        else if (!strcmp(t, "allow_untested"))
            opt.allow_untested = n;
        else if (!strcmp(t, "untested"))
            opt.untested = (int)(n & 3);
        else if (!strcmp(t, "oracle"))
            opt.oracle = n;
        else if (!strcmp(t, "max_sync"))
            opt.max_sync = n > 1u << 20 ? 0 : n * 1000000;
        else if (!strcmp(t, "unmirrored"))
            opt.unmirrored = n;
        else if (!strcmp(t, "fault_at"))
            opt.fault_at = n;
        else if (!strcmp(t, "first_type"))
            opt.first_type = n < MAX_TYPE_IDS ? (uint32_t)n : 0;
        else if (!strcmp(t, "names"))
            opt.names = !strcmp(v, "full") ? NAMES_FULL : !strcmp(v, "off") ? NAMES_OFF : NAMES_FOLDED;
        else if (!strcmp(t, "disabled"))
            snprintf(opt.disabled, sizeof opt.disabled, "%s", v);
        else {
            log_line("option \"%s\" is unknown; not recording", t);
            ok = false;
            break;
        }
    }
    free(copy);
    if (!opt.slots) opt.slots = opt.interval < 65536 ? 1 << 20 : 1 << 16;
    return ok;
}

// ---- the host's switch
// -------------------------------------------------------------------------------------------------------------------
static PER_RECORDING _Atomic bool switched_off;

bool is_off(void) {
    return atomic_load_explicit(&switched_off, memory_order_relaxed) ||
           atomic_load_explicit(ring32(HC_RING_OFF_PAUSE), memory_order_relaxed);
}

static void look_at_switch(void) { atomic_store(&switched_off, os_exists(opt.disabled)); }

// ---- blocks that are not epochs
// ----------------------------------------------------------------------------------------------------------
static PER_RECORDING char vm_name[300];
static PER_RECORDING _Atomic bool sampling_denied; // another agent has it, as of the last time that this probe asked
static PER_RECORDING _Atomic bool sampling_news;   // sampling_note and the JVM's flags are to be recorded
static PER_RECORDING char sampling_note[120];

static void put_jvm_event(struct enc *e) {
    uint8_t *at = block_begin(e, HC_KIND_META);
    put8(e, HC_EV_JVM);
    uint64_t v[] = {HC_ABI_VERSION,
                    (uint64_t)vm.major,
                    (uint64_t)vm.collector,
                    os_pid(),
                    probe_epoch_wall_ms,
                    probe_epoch_wall_ms,
                    (uint64_t)vm.heap_base,
                    vm.heap_bytes >> 3,
                    vm.align,
                    vm.collector == HC_COLLECTOR_G1 ? vm.region_bytes >> 3 : 0,
                    (vm.compressed_oops ? HC_JF_COMPRESSED_OOPS : 0) |
                        (vm.compressed_class ? HC_JF_COMPRESSED_CLASS : 0) |
                        (vm.compact_headers ? HC_JF_COMPACT_HEADERS : 0) | (at_start ? HC_JF_AT_START : 0) |
                        (sampling_denied ? HC_JF_NO_SAMPLING : 0),
                    (uint64_t)opt.depth,
                    opt.interval,
                    vm.max_heap};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) put_u(e, v[i]);
    put_str(e, (char *)ring + HC_RING_OFF_SESSION, HC_RING_LEN_SESSION);
    put_str(e, vm_name, strlen(vm_name));
    put_str(e, HC_PROBE_VERSION, strlen(HC_PROBE_VERSION));
    block_end(e, at);
}

void lock_writer(void) {
    while (!ring_try()) os_sleep_us(200);
}

static bool commit_now(void (*fill)(struct enc *)) {
    struct enc e;
    lock_writer();
    bool ok = reserve_flush(false); // else what comes would overtake it
    if (ok) {
        ring_begin(&e, false);
        fill(&e);
        ok = ring_commit(&e, false);
        defs_committed(ok);
    }
    ring_unlock();
    return ok;
}

static void fill_samples(struct enc *e) {
    put_defs(e, true);
    samples_put(e, false);
}
static void fill_first(struct enc *e) {
    put_jvm_event(e);
    put_defs(e, true);
}
static void fill_sampling(struct enc *e) {
    put_jvm_event(e);
    uint8_t *at = block_begin(e, HC_KIND_META);
    put8(e, HC_EV_NOTE);
    put_u(e, now_ns() - probe_epoch_ns);
    put_str(e, sampling_note, strlen(sampling_note));
    block_end(e, at);
}
static PER_RECORDING uint32_t again_part, again_next;
static PER_RECORDING uint64_t again_at;
static PER_RECORDING bool again_more;
static void fill_again(struct enc *e) {
    if (!again_part) {
        again_at = *ring64(HC_RING_OFF_HEAD);
        put_jvm_event(e);
    }
    again_next = again_part;
    again_more = put_defs_again(e, &again_next);
}
static PER_RECORDING uint64_t end_reason;
static void fill_end(struct enc *e) {
    fill_samples(e);
    uint8_t *at = block_begin(e, HC_KIND_END);
    put8(e, HC_EV_END);
    put_u(e, now_ns() - probe_epoch_ns);
    put_u(e, end_reason);
    put_str(e, "", 0);
    block_end(e, at);
}

// ---- events
// ----------------------------------------------------------------------------------------------------------------------------
static void JNICALL on_gc_start(jvmtiEnv *env) {
    (void)env;
    if (!enter_pause()) return;
    epoch_start();
    leave_pause();
}
static void JNICALL on_gc_finish(jvmtiEnv *env) {
    (void)env;
    if (!enter_pause()) return;
    epoch_finish();
    leave_pause();
}

// An allocation failed for want of heap, and the thread will get an OutOfMemoryError: a mark, in whatever thread. The
// JVM logs a line each time it tells us, so after a mark we do not listen for a minute: a program that catches its
// errors repeats them.
enum { DEAF_S = 60 };
static void JNICALL on_exhausted(jvmtiEnv *env, JNIEnv *jni, jint flags, const void *reserved, const char *what) {
    (void)env, (void)jni, (void)reserved, (void)what;
    if (!(flags & JVMTI_RESOURCE_EXHAUSTED_JAVA_HEAP) || !enter()) return;
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_EXHAUSTED), 1, memory_order_relaxed);
    leave();
}

static void refuse(const char *why) {
    log_line("not recording this JVM: %s", why);
    ring_state(HC_STATE_REFUSED, why);
}

static bool event(jvmtiEventMode m, jvmtiEvent ev, const char *name) {
    jvmtiError r = (*jvmti)->SetEventNotificationMode(jvmti, m, ev, NULL);
    if (r) log_line("SetEventNotificationMode(%s) failed: %d", name, (int)r);
    return r == 0;
}

// ---- allocation sampling
// --------------------------------------------------------------------------------------------------------------- The
// JVM gives allocation sampling to one agent at a time, and an agent that does not get it may end the JVM. The
// application's agents go first: the probe asks after all of them have had VMInit, records without sites if one of
// them has it, and gives it back while recording is paused.
static PER_RECORDING _Atomic bool sampling;       // this probe has it
static PER_RECORDING _Atomic bool sampling_asked; // from here on the control thread follows the switch
static PER_RECORDING bool sampling_off;           // what the switch was when sampling followed it last
static PER_RECORDING uint64_t sampling_due;
enum { SAMPLING_LATE_NS = 10000000 }; // a later begin is recorded

static void sampling_take(void) {
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_generate_sampled_object_alloc_events = 1;
    bool denied = (*jvmti)->AddCapabilities(jvmti, &c) != JVMTI_ERROR_NONE;
    bool news = denied != atomic_exchange(&sampling_denied, denied);
    if (denied) {
        if (news) log_line("another agent holds allocation sampling: recording without sites");
    } else {
        (*jvmti)->SetHeapSamplingInterval(jvmti, (jint)interval_now);
        event(JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "SampledObjectAlloc");
        sampling = true;
    }
    if (!news) return;
    snprintf(sampling_note, sizeof sampling_note, "allocation sampling: %s",
             denied ? "another agent holds it, no allocation sites from here on"
                    : "begins, no other agent holds it any more");
    sampling_news = true;
}

static void sampling_give_back(void) {
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_generate_sampled_object_alloc_events = 1;
    if (!atomic_exchange(&sampling, false)) return;
    event(JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "SampledObjectAlloc");
    (*jvmti)->RelinquishCapabilities(jvmti, &c);
}

static void sampling_begin(void) {
    sampling_off = is_off();
    if (!sampling_off) sampling_take();
    sampling_asked = true;
}

// Control thread.
static void sampling_turn(bool off) {
    if (sampling_asked && off != sampling_off) {
        sampling_off = off;
        if (off)
            sampling_give_back();
        else
            sampling_take();
    }
    if (sampling_news && commit_now(fill_sampling)) sampling_news = false;
}

// VMInit of the environment that sampling_begin_last makes.
static void JNICALL on_last_vm_init(jvmtiEnv *env, JNIEnv *jni, jthread t) {
    (void)jni, (void)t;
    if (enter()) {
        uint64_t late = now_ns() - sampling_due;
        sampling_begin();
        if (sampling && late > SAMPLING_LATE_NS) {
            snprintf(sampling_note, sizeof sampling_note,
                     "allocation sampling: begins %llu ms after the recording, when the other agents have started",
                     (unsigned long long)late / 1000000);
            sampling_news = true;
        }
        leave();
    }
    (*env)->DisposeEnvironment(env);
}

// In VMInit. The JVM calls VMInit in the order in which environments were made, those that are made meanwhile
// included: a new one is called last.
static void sampling_begin_last(void) {
    jvmtiEnv *last = NULL;
    jvmtiEventCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.VMInit = on_last_vm_init;
    sampling_due = now_ns();
    if ((*javavm)->GetEnv(javavm, (void **)&last, JVMTI_VERSION_11) == JNI_OK &&
        !(*last)->SetEventCallbacks(last, &cb, sizeof cb) &&
        !(*last)->SetEventNotificationMode(last, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL))
        return;
    if (last) (*last)->DisposeEnvironment(last);
    sampling_begin();
}

// ---- emergencies
// -------------------------------------------------------------------------------------------------------------------------
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

// Calls f once in a stop without a collection: JVMTI stops the world to follow the references of one new object.
static void in_a_stop(JNIEnv *jni, void (*f)(void *), void *arg) {
    jvmtiHeapCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.heap_reference_callback = stopped;
    struct stop s = {f, arg, false};
    jclass k = (*jni)->FindClass(jni, "java/lang/Object");
    jobject o = k ? (*jni)->AllocObject(jni, k) : NULL;
    if (o) (*jvmti)->FollowReferences(jvmti, 0, NULL, o, &cb, &s);
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, o);
    (*jni)->DeleteLocalRef(jni, k);
}

static void walk_now(void *arg) {
    (void)arg;
    epoch_walk(HC_SYNC_WALK);
}

// ---- control thread
// ----------------------------------------------------------------------------------------------------------------------
static void relinquish(void);
static void know_thread(JNIEnv *jni) {
    jclass k = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID current = k ? (*jni)->GetStaticMethodID(jni, k, "currentThread", "()Ljava/lang/Thread;") : NULL;
    jfieldID eetop = current ? (*jni)->GetFieldID(jni, k, "eetop", "J") : NULL; // where HotSpot's own object for it is
    jobject t = eetop ? (*jni)->CallStaticObjectMethod(jni, k, current) : NULL;
    if (t && !(*jni)->ExceptionCheck(jni)) vm_know_thread((void *)(uintptr_t)(*jni)->GetLongField(jni, t, eetop));
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, t);
    (*jni)->DeleteLocalRef(jni, k);
}

static void listen_to_pauses(jvmtiEventMode m) {
    event(m, JVMTI_EVENT_GARBAGE_COLLECTION_START, "GarbageCollectionStart");
    event(m, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, "GarbageCollectionFinish");
    if (exhaustion) event(m, JVMTI_EVENT_RESOURCE_EXHAUSTED, "ResourceExhausted");
}

enum { END_TRIES = 50 }; // 10 ms each
// The last that the control thread does: afterwards there is only the library, and another recording may begin.
static void end_recording(JNIEnv *jni, bool asked) {
    recording_close(); // disabling does not wait for callbacks that run
    event(JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "SampledObjectAlloc");
    listen_to_pauses(JVMTI_DISABLE);
    if (asked && !atomic_exchange(&gave_up, true)) {
        end_reason = HC_END_DETACHED;
        // An agent that reads makes room; where none does the recording ends all the same, and only its last block is
        // missing.
        for (int i = 0; !commit_now(fill_end) && i < END_TRIES && ring_there(); i++) os_sleep_us(10000);
        ring_state(HC_STATE_DETACHED, "detached on request");
    }
    samples_forget(jni);
    relinquish();
    if (!asked) ring_state(HC_STATE_GAVE_UP, NULL); // this thread may have said since that it records
    if (!asked)
        log_line("stopped recording: %s (at %#llx)", (char *)ring + HC_RING_OFF_REASON,
                 (unsigned long long)violated_at);
    (void)ring_publish();
    recording_end();
}

// At its exit the JVM waits up to 300 ms for threads in native code, and for none in a monitor.
static jrawMonitorID naps;
static void nap(uint32_t ms) {
    if (!naps || (*jvmti)->RawMonitorEnter(jvmti, naps)) {
        os_sleep_us(ms * 1000);
        return;
    }
    jvmtiError r = (*jvmti)->RawMonitorWait(jvmti, naps, ms);
    (*jvmti)->RawMonitorExit(jvmti, naps);
    if (r) os_sleep_us(ms * 1000); // interrupted
}

static void JNICALL control(jvmtiEnv *env, JNIEnv *jni, void *arg) {
    (void)env, (void)arg;
    know_thread(jni);
    uint64_t flushed = 0, looked = 0, emergency = *ring64(HC_RING_OFF_EMERGENCY),
             redefine = *ring64(HC_RING_OFF_REDEFINE);
    uint64_t marks = 0, deaf_since = 0, lost = 0;
    bool cut_told = false, again = false, deaf = false;
    while (!atomic_load(&stopping)) {
        nap(50);
        uint64_t now = now_ns();
        atomic_store_explicit(ring64(HC_RING_OFF_HEARTBEAT), now, memory_order_relaxed);
        if (!atomic_load(&gave_up)) ring_exchange();
        if (atomic_load(&stopping)) return;
        if (atomic_load(&gave_up)) {
            end_recording(jni, false);
            return;
        }
        if (now - looked > 500000000u) looked = now, look_at_switch();
        bool off = is_off();
        ring_state(off ? HC_STATE_PAUSED : HC_STATE_RECORDING, NULL);
        sampling_turn(off);
        if (exhaustion &&
            (deaf ? now - deaf_since > DEAF_S * 1000000000ull : *ring64(HC_RING_OFF_EXHAUSTED) != marks)) {
            deaf = !deaf;
            deaf_since = now;
            event(deaf ? JVMTI_DISABLE : JVMTI_ENABLE, JVMTI_EVENT_RESOURCE_EXHAUSTED, "ResourceExhausted");
            marks = *ring64(HC_RING_OFF_EXHAUSTED);
        }
        uint64_t iw = *ring64(HC_RING_OFF_INTERVAL_WANTED);
        if (sampling && iw && iw - 1 != interval_now && iw - 1 <= 1u << 30) {
            interval_now = iw - 1;
            (*jvmti)->SetHeapSamplingInterval(jvmti, (jint)interval_now);
        }
        if (*ring64(HC_RING_OFF_REDEFINE) != redefine) {
            redefine = *ring64(HC_RING_OFF_REDEFINE);
            again = true, again_part = 0;
        }
        if (spool_turn(now)) again = true, again_part = 0;
        if (again)
            types_keep();
        else
            types_tidy();
        while (again && commit_now(fill_again)) { // else no room yet: goes on in a moment
            if (!again_part) spool_mark(again_at);
            again_part = again_next;
            if (again_more) continue;
            again = false;
            epoch_want_sync(HC_SYNC_RECONNECT);
            *ring64(HC_RING_OFF_REDEFINE_DONE) = redefine;
        }
        if (*ring64(HC_RING_OFF_EMERGENCY) != emergency) {
            emergency = *ring64(HC_RING_OFF_EMERGENCY);
            uint32_t m = *ring32(HC_RING_OFF_EMERGENCY_METHOD);
            if (m == HC_EMERGENCY_WALK) {
                in_a_stop(jni, walk_now, NULL);
            } else if (m == HC_EMERGENCY_GC) {
                epoch_want_sync(HC_SYNC_GC);
                (*jvmti)->ForceGarbageCollection(jvmti);
            } else if (m == HC_EMERGENCY_ORACLE && opt.oracle) {
                oracle(jni);
            }
            atomic_store(ring64(HC_RING_OFF_EMERGENCY_DONE), emergency);
        }
        if (now - flushed > 1000000000u || samples_waiting() || atomic_load(&reserve_len)) {
            flushed = now;
            commit_now(fill_samples);
        }
        samples_reap(jni);
        sites_make_room(now);
        *ring64(HC_RING_OFF_SITES_CUT) = sites_cut;
        *ring64(HC_RING_OFF_SITES_FOLDED) = sites_folded;
        if (!cut_told && sites_cut) {
            cut_told = true;
            log_line("the table of allocation sites is full: the least used ones make room, and new ones are told by "
                     "the callers that are known until then");
        }
        uint64_t beat = *ring64(HC_RING_OFF_AGENT_HEARTBEAT), dropped = *ring64(HC_RING_OFF_EPOCHS_DROPPED);
        ring_grow(now, beat && now < beat + HC_RING_AGENT_STALE_NS,
                  dropped != lost || atomic_exchange(&listing_did_not_fit, false));
        lost = dropped;
        if (*ring32(HC_RING_OFF_DETACH)) {
            end_recording(jni, true);
            return;
        }
    }
}

// Gives back what a probe that is loaded later needs: sampling belongs to one agent at a time.
static void relinquish(void) {
    jvmtiCapabilities c;
    if ((*jvmti)->GetCapabilities(jvmti, &c) == JVMTI_ERROR_NONE) (*jvmti)->RelinquishCapabilities(jvmti, &c);
}

static bool start_control(JNIEnv *jni) {
    jclass k = (*jni)->FindClass(jni, "java/lang/Thread");
    jmethodID init = k ? (*jni)->GetMethodID(jni, k, "<init>", "(Ljava/lang/String;)V") : NULL;
    jstring name = init ? (*jni)->NewStringUTF(jni, "heapcam") : NULL;
    jobject t = name ? (*jni)->NewObject(jni, k, init, name) : NULL;
    if (!t) {
        (*jni)->ExceptionClear(jni);
        return false;
    }
    jvmtiError r = (*jvmti)->RunAgentThread(jvmti, t, control, NULL, JVMTI_THREAD_NORM_PRIORITY);
    (*jni)->DeleteLocalRef(jni, t);
    (*jni)->DeleteLocalRef(jni, name);
    (*jni)->DeleteLocalRef(jni, k);
    return r == JVMTI_ERROR_NONE;
}

static jlong call_long(JNIEnv *jni, jclass k, jobject o, const char *method) { // -1: it threw
    jmethodID m = (*jni)->GetMethodID(jni, k, method, "()J");
    jlong v = m ? (*jni)->CallLongMethod(jni, o, m) : -1;
    if (!(*jni)->ExceptionCheck(jni)) return v;
    (*jni)->ExceptionClear(jni);
    return -1;
}

// Bytes of the heap in use, garbage included; 0: not known.
static uint64_t heap_in_use(JNIEnv *jni) {
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

static void property(const char *name, char *to, size_t n) {
    char *v = NULL;
    to[0] = 0;
    if ((*jvmti)->GetSystemProperty(jvmti, name, &v) || !v) return;
    snprintf(to, n, "%s", v);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)v);
}

// The VM's tables do not tell the fields of a StackChunk; the JDK's own Java code does. 0: there is no such class (17).
static uint32_t chunk_size_offset(JNIEnv *jni) {
    jlong at = 0;
    jclass k = (*jni)->FindClass(jni, "jdk/internal/vm/StackChunk"),
           u = k ? (*jni)->FindClass(jni, "jdk/internal/misc/Unsafe") : NULL;
    jmethodID get = u ? (*jni)->GetStaticMethodID(jni, u, "getUnsafe", "()Ljdk/internal/misc/Unsafe;") : NULL;
    jobject o = get ? (*jni)->CallStaticObjectMethod(jni, u, get) : NULL;
    jmethodID offset = o && !(*jni)->ExceptionCheck(jni)
                           ? (*jni)->GetMethodID(jni, u, "objectFieldOffset", "(Ljava/lang/Class;Ljava/lang/String;)J")
                           : NULL;
    jstring name = offset ? (*jni)->NewStringUTF(jni, "size") : NULL;
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

static void check_now(void *arg) {
    char *why = arg;
    if (!vm_late(why)) return;
    uint64_t objects = 0, bytes = 0, unknown = oracle_tally(&objects, &bytes) + (opt.untested == 2);
    census_reset();
    if (unknown == UINT64_MAX)
        snprintf(why, HC_MAX_REASON, "a self-check walk failed: %s", violated);
    else if (unknown || objects < 1000)
        snprintf(why, HC_MAX_REASON, "a self-check walk understood %llu objects and then met %llu unknown classes",
                 (unsigned long long)objects, (unsigned long long)unknown);
    else
        why[0] = 0;
}

// Walks the whole heap in a stop of its own: where nobody has tested the probe, it must understand every object before
// it begins.
static bool self_check(JNIEnv *jni, char why[HC_MAX_REASON]) {
    snprintf(why, HC_MAX_REASON, "the JVM did not let the self-check walk run");
    in_a_stop(jni, check_now, why);
    return !why[0];
}

// The heap exists now: look at it, and begin. 0: recording.
static int begin(JNIEnv *jni) {
    char why[HC_MAX_REASON] = "", a[120], b[120];
    property("java.vm.name", a, sizeof a);
    property("java.vm.version", b, sizeof b);
    vm.major = atoi(b);
    snprintf(vm_name, sizeof vm_name, "%s %s", a, b);
    bool tested = (vm.major == 17 || vm.major == 25) && !opt.untested;
    if (!vm_load((void *)(*javavm)->GetEnv, tested || opt.allow_untested, why)) return refuse(why), 1;
    vm.chunk_size_offset = chunk_size_offset(jni);
    if (!ring_create(heap_in_use(jni), why)) return refuse(why), 1;
    snprintf((char *)ring + HC_RING_OFF_JVM, HC_RING_LEN_JVM, "%s", vm_name);
    if (opt.spool[0]) {
        char command[600];
        property("sun.java.command", command, sizeof command);
        spool_name(command);
    }
    if (!classes_init() || !dest_init() || !epoch_init() || !samples_init()) {
        refuse("no memory for the probe's tables");
        ring_show();
        return 1;
    }
    if (!tested && !self_check(jni, why)) {
        char full[HC_MAX_REASON];
        snprintf(full, sizeof full, "JDK %d is untested, and %.200s", vm.major, why);
        refuse(full);
        ring_show();
        return 1;
    }
    interval_now = opt.interval;
    look_at_switch();
    if (!at_start) sampling_begin(); // before the JVM's flags are recorded
    commit_now(fill_first);
    ring_show();
    recording_open();
    if (exhaustion) event(JVMTI_ENABLE, JVMTI_EVENT_RESOURCE_EXHAUSTED, "ResourceExhausted");
    if (!event(JVMTI_ENABLE, JVMTI_EVENT_GARBAGE_COLLECTION_START, "GarbageCollectionStart") ||
        !event(JVMTI_ENABLE, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, "GarbageCollectionFinish") || !start_control(jni)) {
        event(JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "SampledObjectAlloc");
        listen_to_pauses(JVMTI_DISABLE);
        recording_close();
        samples_forget(jni);
        refuse("JVMTI did not give the events");
        (void)ring_publish();
        return 1;
    }
    ring_state(is_off() ? HC_STATE_PAUSED : HC_STATE_RECORDING, NULL);
    return 0;
}

static void JNICALL on_vm_init(jvmtiEnv *env, JNIEnv *jni, jthread t) {
    (void)env, (void)t;
    if (!begin(jni)) {
        sampling_begin_last();
        return;
    }
    relinquish();
    recording_end(); // the JVM may be asked again, with other options
}

static void JNICALL on_vm_death(jvmtiEnv *env, JNIEnv *jni) {
    (void)env, (void)jni;
    if (!enter()) return;
    atomic_store(&stopping, true);
    if (!atomic_exchange(&gave_up, true)) {
        end_reason = HC_END_DEATH;
        bool told = commit_now(fill_end);
        ring_state(HC_STATE_GOODBYE, NULL);
        lock_writer(); // or the control thread may close this ring for a larger one meanwhile
        reserve_drop();
        if (told ? !ring_publish() : !ring_there())
            log_line("stopped recording: its shared ring is no longer what it was");
        ring_unlock();
    }
    leave();
}

static jint setup(JavaVM *v, char *options) {
    javavm = v;
    if (!os_init()) {
        log_line("not recording this JVM: the handler for faults can not be set");
        return HC_LOAD_REFUSED;
    }
    probe_epoch_ns = now_ns();
    probe_epoch_wall_ms = os_wall_ms();
    if (!parse(options)) return HC_LOAD_OPTIONS;
    if (!jvmti && (*v)->GetEnv(v, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        jvmti = NULL;
        if (at_start) log_line("not recording this JVM: it has no JVMTI 11");
        return HC_LOAD_JVMTI; // a JVM that is still starting is asked again
    }
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_generate_garbage_collection_events = 1;
    c.can_get_line_numbers = 1;
    c.can_get_source_file_name = 1;
    c.can_tag_objects = 1;
    jvmtiError r = (*jvmti)->AddCapabilities(jvmti, &c);
    if (r) {
        log_line("not recording this JVM: AddCapabilities failed: %d", (int)r);
        return HC_LOAD_JVMTI;
    }
    memset(&c, 0, sizeof c);
    c.can_generate_resource_exhaustion_heap_events = 1; // a hint; gone without
    exhaustion = (*jvmti)->AddCapabilities(jvmti, &c) == JVMTI_ERROR_NONE;
    jvmtiEventCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.VMInit = on_vm_init;
    cb.VMDeath = on_vm_death;
    cb.GarbageCollectionStart = on_gc_start;
    cb.GarbageCollectionFinish = on_gc_finish;
    cb.SampledObjectAlloc = on_sample;
    cb.ResourceExhausted = on_exhausted;
    (*jvmti)->SetEventCallbacks(jvmti, &cb, sizeof cb);
    event(JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, "VMDeath");
    if (!naps && (*jvmti)->CreateRawMonitor(jvmti, "heapcam", &naps)) naps = NULL;
    return 0;
}

// A refusal never ends the JVM: at start the answer is always 0.
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *v, char *options, void *reserved) {
    (void)reserved;
    if (!recording_begin()) return 0; // this library stands twice on the command line
    at_start = true;
    if (setup(v, options) == 0)
        event(JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, "VMInit");
    else
        recording_end();
    return 0;
}

enum { ENDS_WITHIN = 1000 }; // ms
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *v, char *options, void *reserved) {
    (void)reserved;
    JNIEnv *jni;
    if ((*v)->GetEnv(v, (void **)&jni, JNI_VERSION_10) != JNI_OK) return HC_LOAD_JVMTI;
    for (int i = 0; !recording_begin(); i++, os_sleep_us(10000))
        if (i ==
            ENDS_WITHIN / 10) { // detached from a moment ago, the last recording may still be giving back what it had
            log_line("the probe is already in this JVM");
            return HC_LOAD_TWICE;
        }
    jint r = setup(v, options);
    if (!r && begin(jni)) {
        relinquish();
        r = HC_LOAD_REFUSED;
    }
    if (r) recording_end();
    return r;
}
