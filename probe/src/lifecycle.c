//go:build ignore

// lifecycle.c: lifecycle.h.
#include "lifecycle.h"

#include <stdio.h>
#include <stdlib.h>

#include "census.h"
#include "classes.h"
#include "classtags.h"
#include "context.h"
#include "control.h"
#include "crew.h"
#include "cycles.h"
#include "drag.h"
#include "epoch.h"
#include "exact.h"
#include "guard.h"
#include "jvm.h"
#include "log.h"
#include "meta.h"
#include "newsites.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "references.h"
#include "ring.h"
#include "samples.h"
#include "sampling.h"
#include "spool.h"
#include "stacks.h"
#include "switch.h"
#include "tlabs.h"
#include "vmrows.h"
#include "vmstructs.h"
#include "walk.h"
#include "watch.h"

static void refuse(const char *why) {
    log_line("not recording this JVM: %s", why);
    ring_state(HC_STATE_REFUSED, why);
}

static void refuse_seen(const char *why) { // by agents, too
    refuse(why);
    ring_show();
}

static void give_back(void) {
    recording_close();
    classtags_end();
    ring_close();
    recording_end();
}

void lifecycle_unprepared(void) {
    if (jvmti) jvmti_event(JVMTI_DISABLE, JVMTI_EVENT_VM_DEATH, "VMDeath");
    give_back();
}

void lifecycle_refused(void) {
    jvmti_relinquish();
    lifecycle_unprepared();
}

// ---- the end -------------------------------------------------------------------------------------
static bool listen_to_pauses(jvmtiEventMode m) {
    bool ok = jvmti_event(m, JVMTI_EVENT_GARBAGE_COLLECTION_START, "GarbageCollectionStart");
    return jvmti_event(m, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH, "GarbageCollectionFinish") && ok;
}

static void listen_no_more(void) {
    jvmti_event(JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "SampledObjectAlloc");
    (void)listen_to_pauses(JVMTI_DISABLE);
    if (exhaustion) jvmti_event(JVMTI_DISABLE, JVMTI_EVENT_RESOURCE_EXHAUSTED, "ResourceExhausted");
}

// What waits in the reserve will never be read: it is counted as lost.
static void drop_reserve(void) {
    lock_writer();
    reserve_drop();
    ring_unlock();
}

enum { END_TRIES = 50 }; // 10 ms each
// The last that the control thread does: afterwards there is only the library, and another recording may begin.
static void end_recording(JNIEnv *jni, bool asked) {
    exact_end(jni);
    drag_end(jni);
    recording_close(); // disabling does not wait for callbacks that run
    crew_end();
    context_end();
    listen_no_more();
    if (asked && vm_has_no_addresses()) cycles_last(jni);
    if (asked && !atomic_exchange(&gave_up, true)) {
        // An agent that reads makes room; where none does the recording ends all the same, and only its last block is
        // missing.
        for (int i = 0; !meta_put_end(HC_END_DETACHED) && i < END_TRIES && ring_there(); i++) os_sleep_us(10000);
        drop_reserve();
        ring_state(HC_STATE_DETACHED, "detached on request");
    }
    samples_forget(jni);
    jvmti_relinquish();
    if (!asked) ring_state(HC_STATE_GAVE_UP, NULL); // this thread may have said since that it records
    if (!asked)
        log_line("stopped recording: %s (at %#llx)", (char *)ring + HC_RING_OFF_REASON,
                 (unsigned long long)violated_at);
    (void)ring_publish();
    give_back();
}

void lifecycle_jvm_ends(JNIEnv *jni) {
    control_stop();
    if (atomic_load(&gave_up)) return;
    exact_report();
    drag_report();
    crew_report();
    if (vm_has_no_addresses()) cycles_last(jni);
    sampling_report(); // of a JVM that ends before the control thread's first turn
    if (atomic_exchange(&gave_up, true)) return;
    stacks_report_end();
    newsites_report_end();
    (void)meta_put_end(HC_END_DEATH);
    ring_state(HC_STATE_GOODBYE, NULL);
    lock_writer(); // or the control thread may close this ring for a larger one meanwhile
    reserve_drop();
    // Where the ring has no room for the END, its state says it.
    if (!ring_there() || !ring_publish())
        log_line("stopped recording: the shared ring was truncated or cannot be written");
    ring_unlock();
}

// ---- the self-check ------------------------------------------------------------------------------
static void check_now(void *arg) {
    char *why = arg;
    if (!vm_late(why)) return;
    struct tally t;
    epoch_tally(&t);
    census_reset();
    if (opt.untested == 2) t.unknown++;
    if (t.unknown == UINT64_MAX)
        snprintf(why, HC_MAX_REASON, "the self-check of the heap failed: %s", violated);
    else if (t.unknown || t.objects < 1000)
        snprintf(why, HC_MAX_REASON, "the self-check of the heap read %llu objects and found %llu unknown classes",
                 (unsigned long long)t.objects, (unsigned long long)t.unknown);
    else
        why[0] = 0;
}

// Walks the whole heap in a stop of its own: where nobody has tested the probe, it must understand every object before
// it begins.
static bool self_check(JNIEnv *jni, char why[HC_MAX_REASON]) {
    char reason[HC_MAX_REASON] = "the JVM did not run the self-check of the heap";
    in_a_stop(jni, check_now, reason);
    if (reason[0]) snprintf(why, HC_MAX_REASON, "JDK %d is untested, and %.200s", vm.major, reason);
    return !reason[0];
}

// After the first collections what they left is walked, too. The control thread.
static bool check_later(JNIEnv *jni, char why[HC_MAX_REASON]) {
    if (opt.untested == 4) opt.untested = 2;
    return self_check(jni, why);
}

// ---- the beginning -------------------------------------------------------------------------------
static bool begin_ring(JNIEnv *jni, char why[HC_MAX_REASON]) {
    if (!ring_create(heap_in_use(jni), opt.spool[0] ? spool_open : NULL, why)) return false;
    snprintf((char *)ring + HC_RING_OFF_JVM, HC_RING_LEN_JVM, "%s", vm_name);
    if (opt.spool[0]) {
        char command[600];
        jvmti_property("sun.java.command", command, sizeof command);
        spool_name(command);
    }
    return true;
}

static bool know_jvm(JNIEnv *jni, bool *tested, char why[HC_MAX_REASON]) {
    char name[120], version[120];
    jvmti_property("java.vm.name", name, sizeof name);
    jvmti_property("java.vm.version", version, sizeof version);
    vm.major = atoi(version);
    if (!vm.major) { // another VM than HotSpot: its table of fields is missing, which is the reason to refuse it
        char java[40];
        jvmti_property("java.vm.specification.version", java, sizeof java);
        vm.major = atoi(java);
    }
    snprintf(vm_name, sizeof vm_name, "%s %s", name, version);
    *tested = vm_tested(vm.major) && !opt.untested;
    const bool newer = vm.major > vm_newest() || opt.untested > 2;
    if (!vm_load((void *)(*java_vm)->GetEnv, *tested || newer || opt.allow_untested, why)) return false;
    if (vm_has_no_addresses()) {
        opt.depth = HC_DEPTH_SAMPLES;
        block_version = HC_FORMAT_CONCURRENT;
        *tested = true; // no object is read, so there is nothing to check
    } else {
        vm.chunk_size_offset = chunk_size_offset(jni);
    }
    return true;
}

static bool listen(JNIEnv *jni, control_check *check) {
    if (exhaustion) jvmti_event(JVMTI_ENABLE, JVMTI_EVENT_RESOURCE_EXHAUSTED, "ResourceExhausted");
    if (listen_to_pauses(JVMTI_ENABLE) && control_start(jni, end_recording, check)) return true;
    listen_no_more();
    recording_close();
    samples_forget(jni);
    refuse("JVMTI refused the events that the probe needs");
    (void)ring_publish();
    return false;
}

static bool tables_init(void) {
    if (vm_has_no_addresses())
        return classtags_begin(java_vm) && watch_init() && cycles_init() && samples_init();
    return classes_init() && census_init() && tlabs_init() && dest_init() && epoch_init() && samples_init();
}

enum { ROOM = 24 }; // MiB: tables, the smallest ring, and what the JVM keeps for the probe
// A JVM that runs has what it needs. Of one that starts nobody knows how much that will be.
static bool has_room(char why[HC_MAX_REASON]) {
    const uint64_t left = os_memory_left() >> 20;
    if (at_start || left >= ROOM) return true;
    snprintf(why, HC_MAX_REASON,
             "%llu MiB of memory are left (of its limit, or of the machine), and recording may take %d MiB",
             (unsigned long long)left, ROOM);
    return false;
}

int lifecycle_begin(JNIEnv *jni) {
    char why[HC_MAX_REASON] = "";
    bool tested;
    if (!know_jvm(jni, &tested, why) || !has_room(why) || !begin_ring(jni, why)) return refuse(why), 1;
    if (!tables_init())
        return refuse_seen("not enough memory for the probe's tables"), 1;
    if (!tested && !self_check(jni, why)) return refuse_seen(why), 1;
    if (!tested)
        log_line("JDK %d is untested: the heap is walked once more after each of the first %d collections", vm.major,
                 CONTROL_CHECKS);
    interval_now = opt.interval;
    switch_poll();
    if (!at_start) sampling_begin(); // before the JVM's flags are recorded
    references_begin();
    newsites_init();
    (void)meta_put_first();
    ring_show();
    recording_open();
    if (!listen(jni, tested ? NULL : check_later)) return 1;
    ring_state(is_off() ? HC_STATE_PAUSED : HC_STATE_RECORDING, NULL);
    return 0;
}
