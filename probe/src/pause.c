//go:build ignore

// pause.c: pause.h.
#include "pause.h"

#include <string.h>

#include "os.h"
#include "perfmemory.h"

static PER_RECORDING int64_t inv[3]; // the counters at the start of this pause
// Young and full collections that events have announced, or that ended before the probe began.
static PER_RECORDING int64_t counted[2];
static PER_RECORDING unsigned last_total;
static PER_RECORDING uint32_t missed; // collections without events that no epoch has reported yet
static PER_RECORDING bool stale;      // the heap has counted a collection since the last finish
static PER_RECORDING bool cleanup_next;
static PER_RECORDING uint64_t remarked; // number of the last concurrent cycle that ended its marking

bool pause_counters_there(void) { return vm.perf_inv[0] != NULL; }

void pause_counters_at_start(void) {
    for (int i = 0; i < 3; i++) inv[i] = vm.perf_inv[i] ? (int64_t)rd64(vm.perf_inv[i]) : 0;
}

void pause_count_collections(void) {
    for (int i = 0; i < 2; i++) counted[i] = (int64_t)rd64(vm.perf_inv[i]);
}

// On 17 and 21, jcmd GC.class_histogram and GC.heap_dump make Serial and Parallel collect without events: a full
// collection each time, with Parallel a young one before it in the same pause. The JVM's counters show them.
// CollectedHeap::_total_collections does not: one that escalates counts once there.
void pause_count_missed(void) {
    int64_t young = (int64_t)rd64(vm.perf_inv[0]) - counted[0], full = (int64_t)rd64(vm.perf_inv[1]) - counted[1];
    int64_t n = missed + (young > full ? young : full);
    if (n > missed) missed = n > HC_PF_MISSED_MAX ? HC_PF_MISSED_MAX : (uint32_t)n;
    pause_count_collections();
}

void pause_look_stale(bool have_last) { stale = have_last && last_total != *vm.total_collections; }
void pause_note_finish(void) { last_total = *vm.total_collections; }
void pause_clear_missed(void) { missed = 0; }
bool pause_missed(void) { return missed || stale; }
uint32_t pause_missed_flags(void) { return missed || stale ? HC_PF_MISSED | missed << HC_PF_MISSED_SHIFT : 0; }

int pause_kind(const struct heapmaps *m) {
    int64_t d[3];
    for (int i = 0; i < 3; i++) d[i] = vm.perf_inv[i] ? (int64_t)rd64(vm.perf_inv[i]) - inv[i] : 0;
    if (d[1] > 0) {
        cleanup_next = false;
        return HC_PAUSE_FULL;
    }
    if (d[0] > 0) {
        for (uint32_t i = 0; vm_has_regions() && i < regions_in_both(m); i++)
            if (m->start.area[i].kind == HC_SPACE_OLD && m->finish.area[i].kind != HC_SPACE_OLD) return HC_PAUSE_MIXED;
        return HC_PAUSE_YOUNG;
    }
    if (!vm_has_concurrent_cycles()) return HC_PAUSE_UNKNOWN;
    // The second pause of a concurrent cycle is its cleanup; many a cycle ends before it.
    uint64_t cycle = vm_gc_number(true);
    cleanup_next = cycle == UINT64_MAX ? !cleanup_next : cycle != remarked;
    remarked = cycle;
    return cleanup_next ? HC_PAUSE_REMARK : HC_PAUSE_CLEANUP;
}

uint64_t pause_jvm_gc(int kind) {
    uint64_t n = vm_gc_number(kind == HC_PAUSE_REMARK || kind == HC_PAUSE_CLEANUP);
    return n == UINT64_MAX ? vm_gc_number(false) : n;
}

static const char *cause(int kind, size_t *n) {
    // The finish comes inside the scope of the current cause (G1, and all of 25) or after it, when the current one is
    // "No GC" again.
    const char *c = vm.perf_cause;
    if (!c || !*c || !strncmp(c, "No GC", 5)) c = vm.perf_last_cause;
    if (kind == HC_PAUSE_WALK) c = "heapcam walk";
    if (!c) c = "";
    *n = strnlen(c, PERF_TEXT);
    return c;
}

void pause_put(struct enc *e, const struct pause_event *p) {
    size_t n;
    const char *c = cause(p->kind, &n);
    put8(e, HC_EV_PAUSE);
    put_u(e, p->epoch);
    put_u(e, (uint64_t)p->kind);
    put_u(e, p->flags);
    put_u(e, p->depth);
    put_u(e, p->start);
    put_u(e, p->duration);
    put_u(e, p->cost);
    put_u(e, p->jvm_gc);
    put_u(e, p->last_finish);
    put_str(e, c, n);
    put_u(e, p->interval);
}
