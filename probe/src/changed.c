//go:build ignore

// changed.c: changed.h.
#include "changed.h"

#include <stdlib.h>
#include <string.h>

#include "jvm.h"
#include "os.h"

// A slot: the upper bits of a hash, and the state below. The table outlives recordings, as the classes do.
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
    const uint64_t h = hash(hash(0xcbf29ce484222325ull, name, n), &l, sizeof l) & ~((1ull << STATE_BITS) - 1);
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
        if (!(slots[i] & ((1u << STATE_BITS) - 1))) continue;
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

void changed_note(jvmtiEnv *env, jobject loader, const char *name, enum changed_state s) {
    const uint64_t key = name ? key_of(env, loader, name, strlen(name)) : 0;
    os_lock(&lock);
    uint64_t *at = key && size ? slot_of(slots, size, key) : NULL;
    if (key && (!at || !*at)) {
        at = has_room() ? slot_of(slots, size, key) : NULL;
        used += at != NULL;
    }
    if (at)
        *at = key | s;
    else
        full |= s == CHANGED_YES;
    os_unlock(&lock);
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

static uint64_t state_of(uint64_t key, bool take) {
    os_lock(&lock);
    uint64_t *at = key && size ? slot_of(slots, size, key) : NULL;
    const uint64_t state = at ? *at & ((1u << STATE_BITS) - 1) : 0;
    if (take && state == CHANGED_YES) *at = key;
    os_unlock(&lock);
    return state;
}

bool changed_may(JNIEnv *jni, jclass k) { return state_of(key_of_class(jni, k), false) != CHANGED_NO; }

bool changed_taken(JNIEnv *jni, jclass k) {
    const uint64_t state = state_of(key_of_class(jni, k), true);
    return state == CHANGED_YES || (!state && full);
}
