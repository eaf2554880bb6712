//go:build ignore

// changed.c: changed.h.
#include "changed.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "heapcam_abi.h"
#include "jvm.h"
#include "os.h"
#include "recording.h"
#include "ring.h"

// A slot: the upper bits of a hash of the class's name and its loader's identity, and the state below. The table
// outlives recordings, as the classes do.
enum state { UNKNOWN, STAYS, CHANGED, STATES = 3 };
enum { STATE_BITS = 2, FEWEST = 1 << 13, MOST = 1 << 18 };
static uint64_t *slots;
static uint32_t size, used;
static bool full; // some class that was changed is not in the table
static os_mutex lock = OS_MUTEX_INITIALIZER;

static uint64_t hash(uint64_t h, const void *p, size_t n) { // FNV-1a
    for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3ull;
    return h;
}

static uint64_t key_of(jvmtiEnv *env, jobject loader, const char *name, size_t n) {
    jint l = 0;
    if (loader && (*env)->GetObjectHashCode(env, loader, &l)) l = 0;
    const uint64_t h = hash(hash(0xcbf29ce484222325ull, name, n), &l, sizeof l) & ~(uint64_t)STATES;
    return h ? h : 1ull << STATE_BITS;
}

// Where the key is, or the free slot for it. There is always one.
static uint64_t *slot_of(uint64_t *in, uint32_t n, uint64_t key) {
    uint32_t i = (uint32_t)(key >> 32) & (n - 1);
    while (in[i] && (in[i] ^ key) >> STATE_BITS) i = (i + 1) & (n - 1);
    return &in[i];
}

// Moves to a table of that size what has a state. false: no memory.
static bool resize(uint32_t n) {
    uint64_t *to = calloc(n, sizeof *to);
    if (!to) return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < size; i++) {
        if (!(slots[i] & STATES)) continue;
        *slot_of(to, n, slots[i]) = slots[i];
        kept++;
    }
    free(slots);
    slots = to, size = n, used = kept;
    return true;
}

static bool has_room(void) {
    if (size && used < size / 2) return true;
    return size < MOST && resize(size ? 2 * size : FEWEST);
}

void changed_begin(void) {
    os_lock(&lock);
    full = false;
    if (size) (void)resize(size); // without what was given back
    os_unlock(&lock);
}

static void set(uint64_t key, enum state s) {
    os_lock(&lock);
    uint64_t *at = key && size ? slot_of(slots, size, key) : NULL;
    if (key && (!at || !*at)) {
        at = has_room() ? slot_of(slots, size, key) : NULL;
        used += at != NULL;
    }
    if (at)
        *at = key | s;
    else
        full |= s == CHANGED;
    os_unlock(&lock);
}

static enum state state_of(uint64_t key) {
    os_lock(&lock);
    uint64_t *at = key && size ? slot_of(slots, size, key) : NULL;
    const enum state s = at ? *at & STATES : UNKNOWN;
    os_unlock(&lock);
    return s;
}

void changed_note(jvmtiEnv *env, jobject loader, const char *name, bool change) {
    set(name ? key_of(env, loader, name, strlen(name)) : 0, change ? CHANGED : STAYS);
}

// 0: it has no name.
static uint64_t key_of_class(JNIEnv *jni, jclass k) {
    char *name = NULL;
    jobject loader = NULL;
    uint64_t key = 0;
    if ((*jvmti)->GetClassSignature(jvmti, k, &name, NULL)) return 0;
    const size_t n = strlen(name);
    if (n > 2 && !(*jvmti)->GetClassLoader(jvmti, k, &loader)) key = key_of(jvmti, loader, name + 1, n - 2);
    (*jni)->DeleteLocalRef(jni, loader);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    return key;
}

// ---- loading anew --------------------------------------------------------------------------------
// Classes that are loaded in one stop of the JVM, which takes about as long for one as for all of these; references
// that JNI has room for, as many as HotSpot takes.
enum { BATCH = 512, MOST_REFERENCES = 4096, KEPT_OF_CLASS = 12 << 10 };

// What is not linked yet has no methods that run. To link it may call the application's class loaders, and may fail.
// Classes that the JVM itself loads are linked by this: many have come with the JDK's archive.
static bool is_linked(JNIEnv *jni, jclass k) {
    jint status = 0;
    jobject loader = NULL;
    if ((*jvmti)->GetClassStatus(jvmti, k, &status)) return false;
    if (status & JVMTI_CLASS_STATUS_PREPARED) return true;
    const bool ok = !(*jvmti)->GetClassLoader(jvmti, k, &loader) && !loader;
    (*jni)->DeleteLocalRef(jni, loader);
    return ok && !(status & JVMTI_CLASS_STATUS_ERROR);
}

static bool may_be_changed(JNIEnv *jni, jclass k) {
    jboolean may = JNI_FALSE, array = JNI_TRUE;
    return !(*jvmti)->IsArrayClass(jvmti, k, &array) && !array && !(*jvmti)->IsModifiableClass(jvmti, k, &may) &&
           may && is_linked(jni, k);
}

static bool is_one(jclass k, changed_may *may) {
    char *name = NULL;
    if (!may) return true;
    if ((*jvmti)->GetClassSignature(jvmti, k, &name, NULL)) return false;
    const size_t n = strlen(name);
    const bool ok = n > 2 && may(name + 1, n - 2);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    return ok;
}

static bool wanted(JNIEnv *jni, jclass k, bool back, changed_may *may) {
    if (!may_be_changed(jni, k) || !is_one(k, may)) return false;
    const uint64_t key = key_of_class(jni, k);
    const enum state s = state_of(key);
    if (!back) return s != STAYS;
    if (s == CHANGED) set(key, UNKNOWN);
    return s == CHANGED || (s == UNKNOWN && full);
}

// A class that the JVM does not take leaves its batch, and stays as it is. Gives how many.
static uint64_t load_anew(JNIEnv *jni, const jclass *some, jint n) {
    if (!n || (*jvmti)->RetransformClasses(jvmti, n, some) == JVMTI_ERROR_NONE) return 0;
    if (n > 1) return load_anew(jni, some, n / 2) + load_anew(jni, some + n / 2, n - n / 2);
    set(key_of_class(jni, *some), STAYS);
    return 1;
}

void changed_show(void) {
    atomic_store_explicit(ring64(HC_RING_OFF_HEARTBEAT), now_ns(), memory_order_relaxed);
    if (!atomic_load(&gave_up)) ring_exchange();
}

uint64_t changed_memory(JNIEnv *jni) {
    jclass *all = NULL;
    jint n = 0;
    if ((*jni)->PushLocalFrame(jni, MOST_REFERENCES)) return (*jni)->ExceptionClear(jni), 0;
    if ((*jvmti)->GetLoadedClasses(jvmti, &n, &all)) n = 0, all = NULL;
    (*jni)->PopLocalFrame(jni, NULL);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)all);
    return (uint64_t)n * KEPT_OF_CLASS;
}

static uint64_t load_wanted(JNIEnv *jni, bool back, changed_may *may) {
    uint64_t refused = 0;
    jclass *all = NULL;
    jint n = 0, k = 0;
    const bool framed = !(*jni)->PushLocalFrame(jni, MOST_REFERENCES);
    if (!framed) (*jni)->ExceptionClear(jni);
    if ((*jvmti)->GetLoadedClasses(jvmti, &n, &all)) n = 0, all = NULL;
    for (jint i = 0; i < n; i++) {
        if (!wanted(jni, all[i], back, may)) continue;
        const jclass one = all[i];
        all[i] = all[k], all[k++] = one;
    }
    for (jint i = 0; i < k; i += BATCH) {
        atomic_store(ring64(HC_RING_OFF_CLASSES_LEFT), (uint64_t)(k - i));
        if (back) changed_show();
        refused += load_anew(jni, &all[i], k - i < BATCH ? k - i : BATCH);
    }
    atomic_store(ring64(HC_RING_OFF_CLASSES_LEFT), 0);
    for (jint i = 0; i < n && !framed; i++) (*jni)->DeleteLocalRef(jni, all[i]);
    if (framed) (*jni)->PopLocalFrame(jni, NULL);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)all);
    return refused;
}

uint64_t changed_ask(JNIEnv *jni, changed_may *may) { return load_wanted(jni, false, may); }
uint64_t changed_give_back(JNIEnv *jni) { return load_wanted(jni, true, NULL); }
