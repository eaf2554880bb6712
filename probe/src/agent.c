//go:build ignore

// agent.c: the entry points that the JVM calls: Agent_OnLoad, Agent_OnAttach, and JVMTI's events.
#include <errno.h>
#include <jvmti.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "cycles.h"
#include "drag.h"
#include "epoch.h"
#include "exact.h"
#include "heapcam_abi.h"
#include "jvm.h"
#include "lifecycle.h"
#include "log.h"
#include "meta.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "samples.h"
#include "sampling.h"
#include "switch.h"
#include "vmrows.h"
#include "vmstructs.h"

// ---- events --------------------------------------------------------------------------------------
static void JNICALL on_gc_start(jvmtiEnv *env) {
    (void)env;
    if (!enter_pause()) return;
    if (vm_has_no_addresses())
        cycles_pause_begin();
    else
        epoch_start();
    leave_pause();
}

static void JNICALL on_gc_finish(jvmtiEnv *env) {
    (void)env;
    if (!enter_pause()) return;
    if (vm_has_no_addresses())
        cycles_pause_end();
    else
        epoch_finish();
    leave_pause();
}

static void JNICALL on_sample(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject obj, jclass klass, jlong size) {
    const int was = errno; // native code of the application that allocates may look at it after
    if (!enter()) return;
    if (!atomic_load_explicit(&gave_up, memory_order_relaxed) && !is_off()) {
        const uint64_t epoch = vm_has_no_addresses() ? cycles_number() : epoch_number();
        struct sampled s = {thread, obj, klass, size, epoch + 1};
        samples_take(env, jni, &s);
    }
    leave();
    errno = was;
}

static void JNICALL on_vm_init(jvmtiEnv *env, JNIEnv *jni, jthread t) {
    (void)env, (void)t;
    if (lifecycle_begin(jni)) {
        lifecycle_refused();
        return;
    }
    sampling_begin_last();
    exact_begin(jni);
    drag_begin(jni);
}

static void JNICALL on_vm_death(jvmtiEnv *env, JNIEnv *jni) {
    (void)env;
    if (!enter()) return;
    lifecycle_jvm_ends(jni);
    leave();
}

// ---- entry points --------------------------------------------------------------------------------
static bool take_capabilities(void) {
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_generate_garbage_collection_events = 1;
    c.can_get_line_numbers = 1;
    c.can_get_source_file_name = 1;
    c.can_tag_objects = 1;
    jvmtiError r = (*jvmti)->AddCapabilities(jvmti, &c);
    if (r) {
        log_line("not recording this JVM: JVMTI AddCapabilities failed with error %d", (int)r);
        return false;
    }
    const bool changes = (opt.exact || (opt.drag[0] && at_start)) && retransform_capabilities();
    if (opt.exact && !changes) {
        opt.exact = false;
        log_line("exact sites: off: the JVM does not let its classes be changed");
    }
    if (opt.drag[0] && (!changes || !at_start)) {
        opt.drag[0] = 0;
        log_line("drag: off: this JVM must be started with the probe");
    }
    memset(&c, 0, sizeof c);
    c.can_generate_resource_exhaustion_heap_events = 1; // a hint; gone without
    exhaustion = (*jvmti)->AddCapabilities(jvmti, &c) == JVMTI_ERROR_NONE;
    return true;
}

// A JVM without JVMTI 11: says so if it is of an older JDK.
static bool too_old(JavaVM *v) {
    jvmtiEnv *old;
    char *version = NULL;
    if ((*v)->GetEnv(v, (void **)&old, JVMTI_VERSION_1_2) != JNI_OK) return false;
    int major = 0;
    if ((*old)->GetSystemProperty(old, "java.vm.specification.version", &version) == JVMTI_ERROR_NONE && version) {
        major = atoi(strncmp(version, "1.", 2) ? version : version + 2);
        (*old)->Deallocate(old, (unsigned char *)version);
    }
    (*old)->DisposeEnvironment(old);
    if (!major || major >= vm_oldest()) return false;
    log_line("not recording this JVM: JDK %d is too old: heapcam records JDK %d and later", major, vm_oldest());
    return true;
}

// OpenJ9 and native images have no tables of HotSpot's, whatever they are named; before JVMTI gives anything away.
static bool is_hotspot(JavaVM *v) {
    static const char *const others[] = {"J9", "Substrate VM"};
    char name[80];
    jvmti_property("java.vm.name", name, sizeof name);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ') *c = '?';
    void *library = os_library_of((void *)(*v)->GetEnv);
    bool is = library && os_symbol(library, "gHotSpotVMStructs");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) is = is && !strstr(name, others[i]);
    if (!is)
        log_line("not recording this JVM: %s is not HotSpot: heapcam records only HotSpot JVMs",
                 name[0] ? name : "this VM");
    return is;
}

static jint setup(JavaVM *v, char *options) {
    java_vm = v;
    if (!os_init()) {
        log_line("not recording this JVM: cannot install the signal handler");
        return HC_LOAD_REFUSED;
    }
    meta_begin();
    if (!options_parse(options)) return HC_LOAD_OPTIONS;
    if (!jvmti && (*v)->GetEnv(v, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        jvmti = NULL;
        if (too_old(v)) return HC_LOAD_REFUSED;
        if (at_start) log_line("not recording this JVM: it does not offer JVMTI 11");
        return HC_LOAD_JVMTI; // a JVM that is still starting is asked again
    }
    if (!is_hotspot(v)) return HC_LOAD_REFUSED;
    if (!take_capabilities()) return HC_LOAD_JVMTI;
    jvmtiEventCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.VMInit = on_vm_init;
    cb.VMDeath = on_vm_death;
    cb.GarbageCollectionStart = on_gc_start;
    cb.GarbageCollectionFinish = on_gc_finish;
    cb.SampledObjectAlloc = on_sample;
    cb.ResourceExhausted = on_exhausted;
    if (opt.exact || opt.drag[0]) cb.ClassFileLoadHook = opt.exact ? on_class : drag_class;
    (*jvmti)->SetEventCallbacks(jvmti, &cb, sizeof cb);
    jvmti_event(JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, "VMDeath");
    control_init();
    return 0;
}

// A refusal never ends the JVM: at start the answer is always 0.
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *v, char *options, void *reserved) {
    (void)reserved;
    if (!recording_begin()) return 0; // this library stands twice on the command line
    at_start = true;
    if (setup(v, options) == 0)
        jvmti_event(JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, "VMInit");
    else
        lifecycle_unprepared();
    return 0;
}

enum { ENDS_WITHIN = 1000 }; // ms
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *v, char *options, void *reserved) {
    (void)reserved;
    JNIEnv *jni;
    if ((*v)->GetEnv(v, (void **)&jni, JNI_VERSION_10) != JNI_OK)
        return too_old(v) ? HC_LOAD_REFUSED : HC_LOAD_JVMTI;
    for (int i = 0; !recording_begin(); i++, os_sleep_us(10000))
        if (i == ENDS_WITHIN / 10) {
            // detached from a moment ago, the last recording may still be giving back what it had
            log_line("not loading the probe: this JVM is being recorded already");
            return HC_LOAD_TWICE;
        }
    jint r = setup(v, options);
    if (r) {
        lifecycle_unprepared();
    } else if (lifecycle_begin(jni)) {
        lifecycle_refused();
        r = HC_LOAD_REFUSED;
    } else {
        exact_attach(jni);
    }
    return r;
}
