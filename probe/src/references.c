//go:build ignore

// references.c: references.h.
#include "references.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classtable.h"
#include "epoch.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "jvm.h"
#include "marks.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "refnames.h"
#include "refroots.h"
#include "refsend.h"
#include "refwalk.h"
#include "ring.h"
#include "samples.h"
#include "switch.h"
#include "vmstructs.h"

static PER_RECORDING uint32_t answered;
static PER_RECORDING bool began;
// What the last listing took, for the next one: heap in use, bytes of tokens, slots, ns.
static PER_RECORDING struct {
    uint64_t used, tokens, slots, ns;
} last;
// What the newest that did not fit had room for; 0: the newest fitted.
static PER_RECORDING struct {
    uint64_t tokens, slots;
} lacked;
static PER_RECORDING struct area *areas;

enum { DEFAULT_MS = 250, PAGE = 4096 };
enum { FIRST_RATE = 250 }; // ns per KiB of heap in use, until one was taken
// One was taken of a heap of much less: its figures say nothing.
static bool known(uint64_t used) { return last.used && last.used > used / 8 && last.used > 1 << 20; }

void references_begin(void) {
    began = !vm_has_no_addresses();
    *ring32(HC_RING_OFF_REFERENCES_STATE) = HC_REFERENCES_IDLE;
}

bool references_busy(void) { return refsend_busy(); }

void references_end(void) { refsend_end(); }

// ---- memory -------------------------------------------------------------------------------------
static uint64_t paged(uint64_t n) { return (n + PAGE - 1) / PAGE * PAGE; }

// Takes the next n bytes of what is mapped. populate: each page is written now, and none of them in the stop.
static void *carve(uint8_t **at, uint64_t n, uint64_t populate) {
    uint8_t *p = *at;
    for (uint64_t i = 0; i < n && i < populate; i += PAGE) ((volatile uint8_t *)p)[i] = 0;
    *at += paged(n);
    return p;
}

struct sizes {
    uint64_t tokens, slots, samples, parts, all, populated;
};

// The first time: what objects of 32 bytes with references in most of their words take. Later: as much more as there is
// more in use, and never less. What was in use before may have been garbage with few references.
static struct sizes sizes_for(uint64_t used) {
    struct sizes z;
    const bool k = known(used);
    uint64_t grown = k ? used / (last.used >> 10) + 256 : 0; // in 1/1024, a quarter more
    if (grown < 1024 + 256) grown = 1024 + 256;
    z.tokens = (k ? (last.tokens >> 10) * grown : used / 12) + (1 << 20);
    z.slots = (k ? (last.slots >> 10) * grown : used / 9) + (1 << 20);
    const uint64_t most = vm.max_heap / 4 + (1 << 20); // a heap has no more: it lacked something else
    if (z.tokens < 2 * lacked.tokens) z.tokens = 2 * lacked.tokens < most ? 2 * lacked.tokens : most;
    if (z.slots < 2 * lacked.slots) z.slots = 2 * lacked.slots < most ? 2 * lacked.slots : most;
    z.tokens = paged(z.tokens), z.slots = paged(4 * z.slots) / 4;
    z.parts = heapmap()->areas() + z.tokens / REF_PART_TOKENS + z.slots / REF_PART_SLOTS + 1024;
    z.samples = samples_most() + 1024u; // a few more may come until the stop
    z.populated = z.tokens + 4 * z.slots + REF_ROOTS * sizeof(struct refroot) +
                  z.samples * sizeof(struct refsample) + (8 << 20);
    z.all = z.tokens + 4 * z.slots + paged(z.parts * sizeof(struct refpart)) + paged(REF_CLASSES * 8) +
            MAX_TYPES * (sizeof(struct refmap) + sizeof(struct reftype)) +
            REF_CLASSES * (sizeof(struct refclass) + 2 * 4) + 2 * REF_BLOCKS * 4 +
            REF_EXTRA * sizeof(struct refextra) + paged(REF_ROOTS * sizeof(struct refroot)) +
            paged(z.samples * sizeof(struct refsample)) + paged(REF_REPEATS * 8) + (REF_MAYBES + REF_SEEN) * 4 +
            16 * PAGE;
    return z;
}

static struct refs *make(const struct sizes *z, void **map) {
    struct refs *r = calloc(1, sizeof *r);
    uint8_t *at = *map = r ? memory_sparse(z->all) : NULL;
    if (!areas) areas = memory(heapmap()->areas() * sizeof *areas);
    if (!at || !areas) {
        memory_give_back(at);
        free(r);
        return NULL;
    }
    const uint64_t all = UINT64_MAX, some = 1 << 20;
    r->heap.area = areas;
    r->token = carve(&at, z->tokens, all), r->token_end = r->token + z->tokens;
    r->slot = carve(&at, 4 * z->slots, all), r->slot_end = r->slot + z->slots;
    r->part = carve(&at, z->parts * sizeof *r->part, all), r->part_end = r->part + z->parts;
    r->root = carve(&at, REF_ROOTS * sizeof *r->root, all);
    r->sample = carve(&at, z->samples * sizeof *r->sample, all);
    r->samples_most = (uint32_t)z->samples;
    r->repeats = carve(&at, REF_REPEATS * 8, all);
    r->maybe = carve(&at, REF_MAYBES * 4, all);
    r->seen = carve(&at, REF_SEEN * 4, all);
    r->raw = carve(&at, REF_CLASSES * 8, some), r->raw_end = r->raw + REF_CLASSES;
    r->map = carve(&at, MAX_TYPES * sizeof *r->map, some);
    r->type = carve(&at, MAX_TYPES * sizeof *r->type, some);
    r->class = carve(&at, REF_CLASSES * sizeof *r->class, some);
    r->class_at = carve(&at, 2 * REF_CLASSES * 4, 0);
    r->block = carve(&at, 2 * REF_BLOCKS * 4, some);
    r->extra = carve(&at, REF_EXTRA * sizeof *r->extra, some);
    return r;
}

// ---- one listing --------------------------------------------------------------------------------
static uint64_t mib(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

// How long the stop is expected to take.
static uint64_t expected(uint64_t used) {
    return known(used) ? last.ns / (last.used >> 10) * (used >> 10) : (used >> 10) * FIRST_RATE;
}

// Whether it may be tried at all.
static bool may_take(uint64_t used, uint64_t most, const struct sizes *z, char why[HC_MAX_REASON]) {
    const uint64_t ns = expected(used);
    const uint64_t left = os_memory_left();
    why[0] = 0;
    if (!began)
        snprintf(why, HC_MAX_REASON, "with this collector objects have no address");
    else if (atomic_load(&gave_up) || is_off())
        snprintf(why, HC_MAX_REASON, "recording is paused");
    else if (!vm_late(why) || !refwalk_ready(why))
        return false;
    else if (ns > most)
        snprintf(why, HC_MAX_REASON, "it is expected to stop the JVM for %llu ms; the limit is %llu ms",
                 (unsigned long long)ns / 1000000, (unsigned long long)most / 1000000);
    else if (z->populated > left / 2)
        snprintf(why, HC_MAX_REASON, "it needs %llu MiB of memory, and the cgroup of this JVM has %llu MiB left",
                 (unsigned long long)mib(z->populated), (unsigned long long)mib(left));
    return !why[0];
}

static void explain(const struct refs *r, const struct refstop *s, uint64_t most, char why[HC_MAX_REASON]) {
    if (!s->walked)
        snprintf(why, HC_MAX_REASON, "the JVM did not stop for it");
    else if (s->no_room)
        snprintf(why, HC_MAX_REASON, "full collections follow each other, and recording has taken what it may of ten "
                                     "seconds");
    else if (!s->understood)
        snprintf(why, HC_MAX_REASON, "%s (at %#llx)", s->what ? s->what : "?", (unsigned long long)s->where);
    else if (r->late)
        snprintf(why, HC_MAX_REASON, "it was aborted after %llu ms, the longest that it may stop the JVM",
                 (unsigned long long)most / 1000000);
    else if (r->far)
        snprintf(why, HC_MAX_REASON, "objects of the heap are more than 32 GiB apart");
    else if (r->full)
        snprintf(why, HC_MAX_REASON, "the heap has more references than expected; the next try has more memory");
}

static void take(JNIEnv *jni, uint32_t ticket, uint64_t most) {
    char why[HC_MAX_REASON];
    const uint64_t used = heap_in_use(jni);
    const struct sizes z = sizes_for(used);
    struct refsend_about about = {.ticket = ticket, .epoch = epoch_number(), .begin = now_ns()};
    struct refs *r = NULL;
    void *map = NULL;
    bool ok = may_take(used, most, &z, why);
    if (ok && !(r = make(&z, &map))) ok = false, snprintf(why, HC_MAX_REASON, "not enough memory for it");
    if (ok) {
        const bool kinds = refwalk_know_references(jni);
        struct refstop s = {.refs = r, .most = most, .expected = expected(used)};
        refroots_stop(jni, &s);
        explain(r, &s, most, why);
        ok = !why[0];
        if (r->full || ok) lacked.tokens = ok ? 0 : z.tokens, lacked.slots = ok ? 0 : z.slots;
        about.epoch = s.epoch, about.begin = s.begin, about.walk = s.walk, about.all = s.all;
        if (ok) {
            last.used = used, last.tokens = r->tokens, last.slots = r->slots, last.ns = s.all;
            refroots_missing(&s, kinds, about.missing, sizeof about.missing);
        }
    }
    if (!ok) {
        memory_give_back(map);
        free(r);
        r = NULL, map = NULL;
        snprintf(about.refused, sizeof about.refused, "%s", why);
    }
    refsend_begin(jni, r, map, &about);
}

void references_turn(JNIEnv *jni, uint64_t now) {
    if (refsend_busy()) {
        refsend_turn(now);
        if (refsend_busy()) return;
        *ring32(HC_RING_OFF_REFERENCES_STATE) = HC_REFERENCES_IDLE;
        atomic_store_explicit(ring64(HC_RING_OFF_REFERENCES_DONE), answered, memory_order_release);
        return;
    }
    const uint64_t asked = atomic_load_explicit(ring64(HC_RING_OFF_REFERENCES), memory_order_acquire);
    if ((uint32_t)asked == answered) return;
    answered = (uint32_t)asked;
    const uint64_t ms = asked >> 32;
    *ring32(HC_RING_OFF_REFERENCES_STATE) = HC_REFERENCES_TAKING;
    (void)ring_publish();
    take(jni, answered, (ms ? ms : DEFAULT_MS) * 1000000);
    *ring32(HC_RING_OFF_REFERENCES_STATE) = HC_REFERENCES_SENDING;
}
