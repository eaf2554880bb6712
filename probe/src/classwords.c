//go:build ignore

// classwords.c: classwords.h.
//
// A class is compared by its address, which both references hold. They are the JVM's own memory and not the heap, so
// nothing is read that a collection moves or gives back, and a reference of the probe stays until the recording ends. A
// collection between the two reads shows in its counter.
#include "classwords.h"

#include "os.h"
#include "recording.h"
#include "vmstructs.h"

enum { CLASSES = 1 << 11, ADDRESSES = 1 << 12 };
// Written under the lock, the word last.
static PER_RECORDING struct known {
    _Atomic uint64_t word; // 0: free
    jweak class;           // of a class that was unloaded: NULL is in it
} *classes;
static PER_RECORDING uint32_t nclasses; // under the lock
// By the address that a class had when it was kept: place among the classes + 1. Two for each address.
static PER_RECORDING _Atomic uint32_t *addresses;
static PER_RECORDING os_mutex lock = OS_MUTEX_INITIALIZER;

bool classwords_init(void) {
    if (vm_has_no_addresses()) return true;
    classes = memory(CLASSES * sizeof *classes);
    addresses = memory(ADDRESSES * sizeof *addresses);
    return classes && addresses;
}

static bool same(jobject a, jobject b) {
    const uint64_t c = atomic_load_explicit(&gc_counter, memory_order_acquire);
    if (c & 1) return false;
    const uint64_t x = rd64((void *)((uintptr_t)a & ~7ull)), y = rd64((void *)((uintptr_t)b & ~7ull));
    atomic_thread_fence(memory_order_acquire);
    return x && x == y && atomic_load_explicit(&gc_counter, memory_order_relaxed) == c;
}

// At the address of a class that was unloaded another one may lie, with the same word.
static uint32_t place_of(jclass k, uint64_t word) {
    for (uint32_t i = 0; i < CLASSES; i++) {
        const uint32_t at = (uint32_t)((word * 0x9e3779b97f4a7c15ull >> 40) + i) % CLASSES;
        const uint64_t w = atomic_load_explicit(&classes[at].word, memory_order_acquire);
        if (!w || (w == word && same(classes[at].class, k))) return at;
    }
    return CLASSES;
}

// A collection may move it: then it is not found, or another class, which is compared.
static _Atomic uint32_t *by_address(jclass k) {
    return &addresses[(rd64((void *)((uintptr_t)k & ~7ull)) * 0x9e3779b97f4a7c15ull >> 52) & ~1ull];
}

uint64_t classwords_find(jclass k) {
    _Atomic uint32_t *a = by_address(k);
    for (int i = 0; i < 2; i++) {
        const uint32_t at = atomic_load_explicit(&a[i], memory_order_acquire);
        const struct known *c = &classes[at ? at - 1 : 0];
        if (at && same(c->class, k)) return atomic_load_explicit(&c->word, memory_order_relaxed);
    }
    return 0;
}

void classwords_keep(JNIEnv *jni, jclass k, uint64_t word) {
    uint32_t at = place_of(k, word);
    if (at == CLASSES) return;
    if (!atomic_load_explicit(&classes[at].word, memory_order_acquire)) {
        jweak class = (*jni)->NewWeakGlobalRef(jni, k);
        os_lock(&lock);
        at = place_of(k, word);
        if (class && at < CLASSES && !classes[at].word && nclasses < CLASSES / 2) {
            nclasses++;
            classes[at].class = class, class = NULL;
            atomic_store_explicit(&classes[at].word, word, memory_order_release);
        }
        const bool there = at < CLASSES && classes[at].word;
        os_unlock(&lock);
        if (class) (*jni)->DeleteWeakGlobalRef(jni, class);
        if (!there) return;
    }
    _Atomic uint32_t *a = by_address(k);
    atomic_store_explicit(&a[1], atomic_load_explicit(&a[0], memory_order_relaxed), memory_order_release);
    atomic_store_explicit(&a[0], at + 1, memory_order_release);
}

void classwords_forget(JNIEnv *jni) {
    for (uint32_t i = 0; classes && i < CLASSES; i++)
        if (classes[i].class) (*jni)->DeleteWeakGlobalRef(jni, classes[i].class);
}
