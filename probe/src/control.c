//go:build ignore

// control.c: control.h.
#include "control.h"

#include <stdatomic.h>

#include "context.h"
#include "crew.h"
#include "cycles.h"
#include "deflog.h"
#include "epoch.h"
#include "finish.h"
#include "jvm.h"
#include "log.h"
#include "meta.h"
#include "newsites.h"
#include "options.h"
#include "oracle.h"
#include "os.h"
#include "recording.h"
#include "references.h"
#include "retry.h"
#include "ring.h"
#include "samples.h"
#include "sampling.h"
#include "sites.h"
#include "spool.h"
#include "stacks.h"
#include "switch.h"
#include "uses.h"
#include "vmstructs.h"

PER_RECORDING bool exhaustion;
static PER_RECORDING _Atomic bool stopping;
static PER_RECORDING control_end *end;     // written before the thread is there
static PER_RECORDING control_check *check; // likewise

// ---- exhaustion ----------------------------------------------------------------------------------
// The thread that wanted memory will get an OutOfMemoryError: a mark, in whatever thread. The JVM logs a line each time
// it posts the event, so after a mark the probe does not listen for a minute: a program that catches its errors repeats
// them.
enum { DEAF_S = 60 };
void JNICALL on_exhausted(jvmtiEnv *env, JNIEnv *jni, jint flags, const void *reserved, const char *what) {
    (void)env, (void)jni, (void)reserved, (void)what;
    if (!(flags & JVMTI_RESOURCE_EXHAUSTED_JAVA_HEAP) || !enter()) return;
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_EXHAUSTED), 1, memory_order_relaxed);
    leave();
}

// ---- naps ----------------------------------------------------------------------------------------
// At its exit the JVM waits up to 300 ms for threads in native code, and for none in a monitor.
static jrawMonitorID naps;

void control_init(void) {
    if (!naps && (*jvmti)->CreateRawMonitor(jvmti, "heapcam", &naps)) naps = NULL;
}

static void nap(uint32_t ms) {
    if (!naps || (*jvmti)->RawMonitorEnter(jvmti, naps)) {
        os_sleep_us(ms * 1000);
        return;
    }
    jvmtiError r = (*jvmti)->RawMonitorWait(jvmti, naps, ms);
    (*jvmti)->RawMonitorExit(jvmti, naps);
    if (r) os_sleep_us(ms * 1000); // interrupted
}

// ---- the duties of a turn ------------------------------------------------------------------------
// What the thread keeps from turn to turn. On its stack: no other thread sees it.
struct turn {
    JNIEnv *jni;
    uint64_t now, flushed, polled, emergency, redefine, marks, deaf_since, dropped;
    uint64_t checked; // the epoch that was checked last
    uint32_t checks, retry;
    bool cut_reported, again, deaf, check_failed;
};

static void follow_switch(struct turn *t) {
    if (t->now - t->polled > 500000000u) t->polled = t->now, switch_poll();
    bool off = is_off();
    ring_state(off ? HC_STATE_PAUSED : HC_STATE_RECORDING, NULL);
    sampling_turn(off);
}

static void listen_to_exhaustion(struct turn *t) {
    uint64_t marks = *ring64(HC_RING_OFF_EXHAUSTED);
    if (!exhaustion || !(t->deaf ? t->now - t->deaf_since > DEAF_S * 1000000000ull : marks != t->marks)) return;
    t->deaf = !t->deaf;
    t->deaf_since = t->now;
    jvmti_event(t->deaf ? JVMTI_DISABLE : JVMTI_ENABLE, JVMTI_EVENT_RESOURCE_EXHAUSTED, "ResourceExhausted");
    t->marks = *ring64(HC_RING_OFF_EXHAUSTED);
}

static void redefine(struct turn *t) {
    if (*ring64(HC_RING_OFF_REDEFINE) != t->redefine) {
        t->redefine = *ring64(HC_RING_OFF_REDEFINE);
        t->again = true, meta_again_begin();
    }
    if (spool_turn(t->now)) t->again = true, meta_again_begin();
    if (t->again)
        types_keep();
    else
        types_tidy();
    uint64_t from;
    bool more;
    while (t->again && meta_again_next(&from, &more)) { // else no room yet: goes on in a moment
        if (meta_again_is_first()) spool_mark(from);
        if (more) continue;
        t->again = false;
        if (vm_has_no_addresses())
            cycles_want_sync(HC_SYNC_RECONNECT);
        else
            epoch_want_sync(HC_SYNC_RECONNECT);
        *ring64(HC_RING_OFF_REDEFINE_DONE) = t->redefine;
    }
}

static void walk_now(void *arg) {
    (void)arg;
    epoch_walk(HC_SYNC_WALK);
}

static void follow_emergency(struct turn *t) {
    if (*ring64(HC_RING_OFF_EMERGENCY) == t->emergency) return;
    t->emergency = *ring64(HC_RING_OFF_EMERGENCY);
    uint32_t m = *ring32(HC_RING_OFF_EMERGENCY_METHOD);
    if (vm_has_no_addresses()) {
        cycles_want_sync(m == HC_EMERGENCY_WALK ? HC_SYNC_WALK : HC_SYNC_GC); // nothing needs to be stopped for it
    } else if (m == HC_EMERGENCY_WALK) {
        in_a_stop(t->jni, walk_now, NULL);
    } else if (m == HC_EMERGENCY_GC) {
        epoch_want_sync(HC_SYNC_GC);
        (*jvmti)->ForceGarbageCollection(jvmti);
    } else if (m == HC_EMERGENCY_ORACLE && opt.oracle) {
        oracle(t->jni);
    }
    atomic_store(ring64(HC_RING_OFF_EMERGENCY_DONE), t->emergency);
}

static void look_after_samples(struct turn *t) {
    if (t->now - t->flushed > 1000000000u || samples_waiting() || atomic_load(&reserve_len)) {
        t->flushed = t->now;
        meta_put_samples();
    }
    samples_reap(t->jni);
    sites_make_room(t->now);
    stacks_report();
    *ring64(HC_RING_OFF_SITES_CUT) = sites_cut;
    *ring64(HC_RING_OFF_SITES_FOLDED) = sites_folded;
    if (t->cut_reported || !sites_cut) return;
    t->cut_reported = true;
    log_line("site table full: least-used frames evicted, new stacks truncated to known callers");
}

static void log_retry(struct turn *t) {
    if (t->retry || !(t->retry = retry_after_epochs())) return; // once
    log_line("recording only samples: %d collections in a row could not be read, most likely because of unloaded "
             "classes; next attempt after %u collections, later attempts after up to %d",
             FAULTS_IN_A_ROW, (unsigned)t->retry, RETRY_MOST);
}

static void check_again(struct turn *t) {
    if (!check || t->checks == CONTROL_CHECKS || epoch_number() == t->checked) return;
    char why[HC_MAX_REASON] = "";
    t->checked = epoch_number();
    if (check(t->jni, why))
        t->checks++;
    else if (t->check_failed && !atomic_exchange(&gave_up, true))
        ring_state(HC_STATE_GAVE_UP, why), (void)meta_put_end(HC_END_GAVE_UP);
    else
        t->check_failed = true;
}

static void look_after_ring(struct turn *t) {
    uint64_t beat = *ring64(HC_RING_OFF_AGENT_HEARTBEAT), dropped = *ring64(HC_RING_OFF_EPOCHS_DROPPED);
    bool read = beat && t->now < beat + HC_RING_AGENT_STALE_NS;
    ring_grow(t->now, read, dropped != t->dropped || atomic_exchange(&listing_did_not_fit, false));
    t->dropped = dropped;
}

static void JNICALL control(jvmtiEnv *env, JNIEnv *jni, void *arg) {
    (void)env, (void)arg;
    if (opt.late) os_sleep_us((uint32_t)opt.late * 1000);
    know_thread(jni);
    crew_begin();
    context_begin(now_ns());
    // What was answered last, not what was asked last: a pause may have read a request before this thread's first turn.
    struct turn t = {
        .jni = jni, .emergency = *ring64(HC_RING_OFF_EMERGENCY_DONE), .redefine = *ring64(HC_RING_OFF_REDEFINE_DONE)};
    t.checked = epoch_number();
    while (!atomic_load(&stopping)) {
        nap(references_busy() ? 5 : uses_are_on() || newsites_busy() ? 10 : 50);
        if (uses_are_on()) uses_tick();
        t.now = now_ns();
        atomic_store_explicit(ring64(HC_RING_OFF_HEARTBEAT), t.now, memory_order_relaxed);
        if (!atomic_load(&gave_up)) ring_exchange();
        if (atomic_load(&stopping)) return;
        if (atomic_load(&gave_up)) {
            references_end();
            end(jni, false);
            return;
        }
        follow_switch(&t);
        listen_to_exhaustion(&t);
        sampling_interval(*ring64(HC_RING_OFF_INTERVAL_WANTED));
        redefine(&t);
        follow_emergency(&t);
        check_again(&t);
        if (vm_has_no_addresses()) cycles_turn(jni, t.now);
        look_after_samples(&t);
        log_retry(&t);
        if (context_turn(t.now) && meta_put_context()) context_sent();
        look_after_ring(&t);
        references_turn(jni, t.now);
        newsites_turn(t.now);
        if (*ring32(HC_RING_OFF_DETACH)) {
            references_end();
            end(jni, true);
            return;
        }
    }
}

bool control_start(JNIEnv *jni, control_end *at_end, control_check *at_first) {
    end = at_end, check = at_first;
    return thread_start(jni, control);
}

void control_stop(void) { atomic_store(&stopping, true); }
