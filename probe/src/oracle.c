//go:build ignore

// oracle.c: oracle.h.
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"
#include "deflog.h"
#include "epoch.h"
#include "jvm.h"
#include "log.h"
#include "ring.h"
#include "tlabs.h"
#include "vmstructs.h"

static PER_RECORDING uint64_t *o_count, *o_bytes, o_n;
static PER_RECORDING struct tally raw;
static PER_RECORDING bool o_walked;
static PER_RECORDING uint32_t o_holes, o_stamp;
static jint JNICALL each_object(jlong class_tag, jlong size, jlong *tag, jint len, void *user) {
    (void)tag, (void)len, (void)user;
    if (!o_walked) {
        o_walked = true;
        epoch_tally(&raw);
        o_holes = nholes, o_stamp = cstamp; // the next pause counts anew
    }
    uint64_t i = class_tag > 0 && (uint64_t)class_tag <= o_n ? (uint64_t)class_tag : 0;
    o_count[i]++;
    o_bytes[i] += (uint64_t)size;
    return JVMTI_VISIT_OBJECTS;
}

struct named {
    char *sig;
    uint64_t n, b, rn, rb;
};
static int by_sig(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->sig, ((const struct named *)b)->sig);
}

// Types by signature from the definition log, so that both sides are compared by name, summed over loaders.
static void raw_by_name(struct named *t, uint64_t n) {
    const uint8_t *p = type_log.mem, *end = p + type_log.len;
    uint64_t f[6], len;
    const char *name;
    while (p < end && next_def(&p, f, &name, &len)) {
        if (f[0] != HC_EV_TYPE) continue;
        char key[2200];
        if (f[1] <= ntypes) {
            if (f[2] & HC_TF_ARRAY)
                snprintf(key, sizeof key, "%.*s", (int)len, name);
            else
                snprintf(key, sizeof key, "L%.*s;", (int)len, name);
            // Hidden classes: JVMTI writes the last separator as '.'
            for (char *c = key; *c; c++)
                if (*c == '+' || *c == '.') *c = '/';
            struct named want = {.sig = key}, *r = bsearch(&want, t, n, sizeof *t, by_sig);
            uint64_t cn = 0, cb = 0;
            for (uint32_t b = 0; b < BUCKETS; b++) {
                struct crow *row = &crows[TSLOT(f[1]) * BUCKETS + b];
                if (row->stamp == cstamp && row->type == f[1]) cn += row->cell[0].n, cb += row->cell[0].b;
            }
            if (r)
                r->rn += cn, r->rb += cb;
            else if (cn)
                log_line("oracle: class only in the walk: %s objects=%llu", key, (unsigned long long)cn);
        }
    }
}

// JVMTI adds a hash to the name of an anonymous class: Outer$$Lambda$1/1355531311.
static void cut_hash(char *sig) {
    char *slash = strrchr(sig, '/');
    size_t n = slash ? strspn(slash + 1, "0123456789") : 0;
    if (n && !strcmp(slash + 1 + n, ";")) memcpy(slash, ";", 2);
}

static uint64_t tag_classes(struct named *t, const jclass *ks, jint n) {
    for (jint i = 0; i < n; i++) {
        (*jvmti)->SetTag(jvmti, ks[i], i + 1);
        (*jvmti)->GetClassSignature(jvmti, ks[i], &t[i].sig, NULL);
        for (char *c = t[i].sig; c && *c; c++)
            if (*c == '.' || *c == '+') *c = '/';
        if (t[i].sig && vm_has_anonymous_classes()) cut_hash(t[i].sig);
    }
    return (uint64_t)n;
}

// One name, several loaders: one row. Returns how many rows there are.
static uint64_t merge_names(struct named *t, uint64_t n) {
    uint64_t m = 0;
    qsort(t, n, sizeof *t, by_sig);
    for (uint64_t i = 0; i < n; i++) {
        if (m && !strcmp(t[m - 1].sig, t[i].sig))
            t[m - 1].n += t[i].n, t[m - 1].b += t[i].b;
        else
            t[m++] = t[i];
    }
    return m;
}

// False: there is nothing any more to compare with.
static bool compare(struct named *t, uint64_t n) {
    uint64_t objects = o_count[0], bytes = o_bytes[0], bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        t[i].n = o_count[i + 1], t[i].b = o_bytes[i + 1];
        objects += t[i].n, bytes += t[i].b;
    }
    const uint64_t m = merge_names(t, n);
    raw_by_name(t, m);
    if (*(volatile uint32_t *)&cstamp != o_stamp) return false; // a collection came, and counted anew
    for (uint64_t i = 0; i < m; i++)
        if (t[i].n != t[i].rn || t[i].b != t[i].rb) {
            bad++;
            log_line("oracle: differs %s jvmti=%llu/%llu walk=%llu/%llu", t[i].sig, (unsigned long long)t[i].n,
                     (unsigned long long)t[i].b, (unsigned long long)t[i].rn, (unsigned long long)t[i].rb);
        }
    log_line("oracle: objects=%llu bytes=%llu jvmti_objects=%llu jvmti_bytes=%llu classes=%llu differ=%llu "
             "unknown=%llu untagged=%llu holes=%u",
             (unsigned long long)raw.objects, (unsigned long long)raw.bytes, (unsigned long long)objects,
             (unsigned long long)bytes, (unsigned long long)m, (unsigned long long)bad, (unsigned long long)raw.unknown,
             (unsigned long long)o_count[0], o_holes);
    return true;
}

static void iterate(void) {
    jvmtiHeapCallbacks cb;
    memset(&cb, 0, sizeof cb);
    cb.heap_iteration_callback = each_object;
    o_walked = false;
    types_keep();
    lock_writer();
    (*jvmti)->IterateThroughHeap(jvmti, 0, NULL, &cb, NULL);
    ring_unlock();
}

static bool answer(JNIEnv *jni) {
    bool done = true;
    jint n = 0;
    jclass *ks = NULL;
    jvmtiError r = (*jvmti)->GetLoadedClasses(jvmti, &n, &ks);
    if (r) {
        log_line("oracle: no answer: JVMTI error %d", (int)r);
        return true;
    }
    o_count = calloc((size_t)n + 1, 8), o_bytes = calloc((size_t)n + 1, 8);
    struct named *t = calloc((size_t)n + 1, sizeof *t);
    if (o_count && o_bytes && t) {
        o_n = tag_classes(t, ks, n);
        iterate();
        done = compare(t, o_n);
        for (jint i = 0; i < n; i++) (*jvmti)->SetTag(jvmti, ks[i], 0), (*jni)->DeleteLocalRef(jni, ks[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)ks);
    free(o_count), free(o_bytes), free(t);
    return done;
}

void oracle(JNIEnv *jni) {
    char why[HC_MAX_REASON];
    if (!vm_late(why)) { // no collection may have come yet: the walk needs the reserve behind a TLAB
        log_line("oracle: no answer: %s", why);
        return;
    }
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++)
        if (answer(jni)) return;
    log_line("oracle: no answer: a collection came in between each time");
}
