//go:build ignore

// sampling.c: sampling.h.
#include "sampling.h"

#include <stdio.h>
#include <string.h>

#include "jvm.h"
#include "log.h"
#include "meta.h"
#include "os.h"
#include "recording.h"
#include "samples.h"
#include "switch.h"

static PER_RECORDING _Atomic bool sampling_news; // sampling_note and the JVM's flags are to be recorded
static PER_RECORDING char sampling_note[120];    // written before sampling_news is set

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
        if (news) log_line("another agent holds allocation sampling: recording without allocation sites");
    } else {
        (*jvmti)->SetHeapSamplingInterval(jvmti, (jint)interval_now);
        jvmti_event(JVMTI_ENABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "SampledObjectAlloc");
        sampling = true;
    }
    if (!news) return;
    snprintf(sampling_note, sizeof sampling_note, "allocation sampling: %s",
             denied ? "another agent holds it; no allocation sites from now on"
                    : "begins; no other agent holds it any more");
    sampling_news = true;
}

static void sampling_give_back(void) {
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_generate_sampled_object_alloc_events = 1;
    if (!atomic_exchange(&sampling, false)) return;
    jvmti_event(JVMTI_DISABLE, JVMTI_EVENT_SAMPLED_OBJECT_ALLOC, "SampledObjectAlloc");
    (*jvmti)->RelinquishCapabilities(jvmti, &c);
}

void sampling_begin(void) {
    sampling_off = is_off();
    if (!sampling_off) sampling_take();
    sampling_asked = true;
}

// Control thread.
void sampling_turn(bool off) {
    if (sampling_asked && off != sampling_off) {
        sampling_off = off;
        if (off)
            sampling_give_back();
        else
            sampling_take();
    }
    sampling_report();
}

void sampling_report(void) {
    if (atomic_exchange(&sampling_news, false) && !meta_put_note(sampling_note)) sampling_news = true;
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
void sampling_begin_last(void) {
    jvmtiEnv *last = NULL;
    jvmtiEventCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.VMInit = on_last_vm_init;
    sampling_due = now_ns();
    if ((*java_vm)->GetEnv(java_vm, (void **)&last, JVMTI_VERSION_11) == JNI_OK &&
        !(*last)->SetEventCallbacks(last, &cb, sizeof cb) &&
        !(*last)->SetEventNotificationMode(last, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL))
        return;
    if (last) (*last)->DisposeEnvironment(last);
    sampling_begin();
}

void sampling_interval(uint64_t want) {
    if (!sampling || !want || want - 1 == interval_now || want - 1 > 1u << 30) return;
    interval_now = want - 1;
    (*jvmti)->SetHeapSamplingInterval(jvmti, (jint)interval_now);
}
