//go:build ignore

// cycles.c: cycles.h.
#include "cycles.h"

#include <stdatomic.h>
#include <string.h>

#include "encode.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "jvm.h"
#include "meta.h"
#include "os.h"
#include "perfmemory.h"
#include "recording.h"
#include "ring.h"
#include "samples.h"
#include "spool.h"
#include "switch.h"
#include "vmstructs.h"
#include "watch.h"

// ---- pauses: the VM thread notes them, the control thread takes them -------------------------------
struct note {
    uint64_t begin, end, used; // ns since the probe's start; bytes, at the end
    uint64_t cost;             // ns, the probe's part
    uint32_t gc;               // of GC(gc) in the JVM's log; UINT32_MAX: not known
    bool minor;
    char cause[PERF_TEXT];
};
enum { NOTES = 1 << 10 };
static PER_RECORDING struct note *notes;
static PER_RECORDING _Atomic uint64_t put_at, take_at;
static PER_RECORDING _Atomic uint64_t notes_lost;
static PER_RECORDING uint64_t pause_began, begin_cost; // the VM thread's, as are the next two
static PER_RECORDING int nesting;
static PER_RECORDING uint64_t minors;

// ---- cycles: the control thread's, and under the lock ------------------------------------------------
enum { OPEN = 4, ENDED = 64, STOPS = 32 };
struct stop {
    uint64_t begin, ns;
};
struct cycle {
    uint64_t begin, end, last; // last: end of its last pause
    uint64_t pauses, total, longest, cost;
    uint64_t before, after; // bytes in use
    uint32_t gc, nstops;
    bool minor, whole; // whole: its end was seen
    int kind;
    struct stop stops[STOPS];
    char cause[PERF_TEXT];
};
static PER_RECORDING os_mutex lock = OS_MUTEX_INITIALIZER; // the JVM's last thread records what is left
static PER_RECORDING struct cycle *open_ones, *ended;
static PER_RECORDING uint32_t nopen, nended, first_ended; // ended is a circle
static PER_RECORDING uint64_t last_epoch_end, looked, read_at;
static PER_RECORDING int want = HC_SYNC_FIRST; // a sync point, for this reason; 0: none
static PER_RECORDING uint64_t answered;
static PER_RECORDING bool over; // all is recorded
static PER_RECORDING _Atomic uint64_t epoch_no;

bool cycles_init(void) {
    notes = memory(NOTES * sizeof *notes);
    open_ones = memory(OPEN * sizeof *open_ones);
    ended = memory(ENDED * sizeof *ended);
    return notes && open_ones && ended;
}

uint64_t cycles_number(void) { return atomic_load_explicit(&epoch_no, memory_order_relaxed); }
void cycles_want_sync(int reason) { want = want ? want : reason; }

// Inside the guard.
static void look_at_pause(void *arg) {
    struct note *n = arg;
    n->minor = vm.perf_inv[0] && rd64(vm.perf_inv[0]) != minors && vm_has_generations_without_addresses();
    n->gc = vm_gc_of_thread();
    for (int i = 0; i < 2; i++)
        if (vm.perf_used[i]) n->used += rd64(vm.perf_used[i]);
    memcpy(n->cause, vm.perf_cause, PERF_TEXT);
}

static void look_before_pause(void *unused) {
    (void)unused;
    minors = vm.perf_inv[0] ? rd64(vm.perf_inv[0]) : 0;
}

void cycles_pause_begin(void) {
    if (nesting++) return;
    pause_began = now_ns();
    if (atomic_load(&gave_up)) return;
    (void)guarded(look_before_pause, NULL);
    begin_cost = now_ns() - pause_began;
}

void cycles_pause_end(void) {
    if (!nesting || --nesting || atomic_load(&gave_up) || is_off()) return; // 0: loaded in the middle of a pause
    uint64_t now = now_ns(), at = atomic_load_explicit(&put_at, memory_order_relaxed);
    if (at - atomic_load_explicit(&take_at, memory_order_acquire) == NOTES) {
        atomic_fetch_add_explicit(&notes_lost, 1, memory_order_relaxed);
        return;
    }
    struct note *n = &notes[at % NOTES];
    *n = (struct note){.begin = pause_began - probe_epoch_ns, .end = now - probe_epoch_ns, .gc = UINT32_MAX};
    (void)guarded(look_at_pause, n);
    n->cause[PERF_TEXT - 1] = 0;
    const uint64_t cost = n->cost = begin_cost + (now_ns() - now);
    atomic_store_explicit(&put_at, at + 1, memory_order_release);
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_PAUSE_NS), now - pause_began, memory_order_relaxed);
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_PROBE_NS), cost, memory_order_relaxed);
}

// ---- cycles ---------------------------------------------------------------------------------------
static uint64_t since_begin(uint64_t now) { return now - probe_epoch_ns; }

static void drop_epoch(void) {
    atomic_fetch_add_explicit(&epoch_no, 1, memory_order_relaxed);
    atomic_store_explicit(ring64(HC_RING_OFF_EPOCHS), cycles_number(), memory_order_relaxed);
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_DROPPED), 1, memory_order_relaxed);
    cycles_want_sync(HC_SYNC_LOST);
}

static void end_cycle(uint32_t i, uint64_t at, bool whole) {
    struct cycle *c = &open_ones[i];
    c->end = at;
    c->whole = whole;
    c->kind = c->minor ? HC_PAUSE_MINOR : HC_PAUSE_MAJOR;
    if (nended == ENDED) { // the ring has had no room for long
        first_ended++, nended--;
        drop_epoch();
    }
    ended[(first_ended + nended++) % ENDED] = *c;
    if (i < --nopen) *c = open_ones[nopen];
}

static struct cycle *cycle_of(const struct note *n) {
    for (uint32_t i = 0; i < nopen; i++)
        if (open_ones[i].gc == n->gc) return &open_ones[i];
    // Of one kind there is one at a time: where another begins, the one before has ended.
    for (uint32_t i = 0; i < nopen;)
        if (open_ones[i].minor == n->minor || nopen == OPEN)
            end_cycle(i, n->begin, true);
        else
            i++;
    struct cycle *c = &open_ones[nopen++];
    *c = (struct cycle){.begin = n->begin, .gc = n->gc, .minor = n->minor, .before = n->used};
    memcpy(c->cause, n->cause, sizeof c->cause);
    return c;
}

static void take_note(const struct note *n) {
    for (uint32_t i = 0; i < nopen; i++) // what was in use when this pause began
        if (n->gc != open_ones[i].gc && n->used < open_ones[i].after) open_ones[i].after = n->used;
    struct cycle *c = cycle_of(n);
    const uint64_t ns = n->end - n->begin;
    c->last = n->end;
    c->after = n->used;
    c->pauses++;
    c->total += ns;
    c->cost += n->cost;
    if (ns > c->longest) c->longest = ns;
    if (c->nstops < STOPS) c->stops[c->nstops++] = (struct stop){n->begin, ns};
}

static void take_notes(void) {
    uint64_t at = atomic_load_explicit(&take_at, memory_order_relaxed);
    for (; at != atomic_load_explicit(&put_at, memory_order_acquire); at++) {
        take_note(&notes[at % NOTES]);
        atomic_store_explicit(&take_at, at + 1, memory_order_release);
    }
}

static bool no_cycle_runs(void) {
    char cause[PERF_TEXT];
    return safe_read(cause, (uint64_t)vm.perf_cause, sizeof cause) && !strncmp(cause, "No GC", 5);
}

static void note_used(JNIEnv *jni) {
    uint64_t used = heap_in_use(jni);
    if (!used) return;
    for (uint32_t i = 0; i < nopen; i++)
        if (used < open_ones[i].after) open_ones[i].after = used;
}

// Cycles that had begun before it was seen that none runs, have ended.
static void end_cycles(uint64_t idle_at) {
    for (uint32_t i = 0; i < nopen;)
        if (open_ones[i].begin < idle_at)
            end_cycle(i, idle_at, true);
        else
            i++;
}

// ---- epochs ---------------------------------------------------------------------------------------
// What fill writes; static, since it is given to a function without arguments.
static PER_RECORDING const struct cycle *filled;
static PER_RECORDING uint64_t fill_began, wanted;
static PER_RECORDING bool fill_thin;

static void put_pause(struct enc *e, const struct cycle *c, uint32_t flags) {
    put8(e, HC_EV_PAUSE);
    put_u(e, cycles_number() + 1);
    put_u(e, (uint64_t)c->kind);
    put_u(e, flags);
    put_u(e, HC_DEPTH_SAMPLES);
    put_u(e, c->begin);
    put_u(e, c->total);
    put_u(e, c->cost);
    put_u(e, c->gc == UINT32_MAX ? 0 : c->gc);
    put_u(e, last_epoch_end);
    put_str(e, c->cause, strnlen(c->cause, PERF_TEXT));
    put_u(e, atomic_load_explicit(&interval_now, memory_order_relaxed));
}

static void put_cycle(struct enc *e, const struct cycle *c) {
    put8(e, HC_EV_SPACE);
    put_u(e, HC_SPACE_HEAP);
    for (int i = 0; i < 3; i++) put_u(e, 0);
    put_u(e, c->before);
    put_u(e, c->after);
    put8(e, HC_EV_CYCLE);
    put_u(e, c->begin);
    put_u(e, c->end);
    put_u(e, c->whole ? 0 : HC_CF_OPEN);
    put_u(e, c->pauses);
    put_u(e, c->longest);
    if (!c->nstops) return;
    uint8_t *at = blob_begin(e, HC_EV_STOPS);
    uint64_t before = 0;
    for (uint32_t i = 0; i < c->nstops; i++) {
        put_s(e, (int64_t)(c->stops[i].begin - before));
        put_u(e, c->stops[i].ns);
        before = c->stops[i].begin;
    }
    blob_end(e, at);
}

static void put_sync(struct enc *e, int reason) {
    uint8_t *block = block_begin(e, HC_KIND_SYNC);
    put8(e, HC_EV_SYNCPOINT);
    put_u(e, cycles_number() + 1);
    put_u(e, (uint64_t)reason);
    put_u(e, cycles_number() ? 0 : HC_SF_FIRST);
    put_u(e, since_begin(now_ns()));
    put_u(e, now_ns() - fill_began);
    watch_list(e);
    put8(e, HC_EV_TOTAL);
    put_u(e, 0);
    put_u(e, 0);
    block_end(e, block);
}

static int sync_reason(void) {
    wanted = atomic_load_explicit(ring64(HC_RING_OFF_SYNC_WANTED), memory_order_acquire);
    return want ? want : wanted != answered ? HC_SYNC_ROTATION : 0;
}

static void fill(struct enc *e) {
    meta_fill_samples(e);
    const int reason = sync_reason();
    uint8_t *block = block_begin(e, HC_KIND_EPOCH);
    put_cycle(e, filled);
    watch_put(e, fill_thin);
    put_pause(e, filled, reason ? HC_PF_SYNC_FOLLOWS : 0);
    block_end(e, block);
    if (reason) put_sync(e, reason);
}

// Records one epoch. false: there is no room in the ring now; it is tried again.
static bool record(JNIEnv *jni, const struct cycle *c) {
    fill_began = now_ns();
    const bool decisive = c->kind == HC_PAUSE_MAJOR && c->whole;
    // Looking takes up to a third of a microsecond for each: not after each of many cycles a second.
    if (decisive || c->kind == HC_PAUSE_READING || fill_began - looked > 500000000u) {
        looked = fill_began;
        watch_look(jni, decisive, c->begin);
    }
    filled = c;
    fill_thin = watch_crowded();
    const int reason = sync_reason();
    if (!meta_commit(fill)) return false;
    watch_committed(jni);
    last_epoch_end = c->end;
    atomic_fetch_add_explicit(&epoch_no, 1, memory_order_relaxed);
    atomic_store_explicit(ring64(HC_RING_OFF_EPOCHS), cycles_number(), memory_order_relaxed);
    if (reason) {
        want = 0;
        answered = wanted;
        atomic_store_explicit(ring64(HC_RING_OFF_SYNC_DONE), wanted, memory_order_release);
    }
    return true;
}

static bool record_reading(JNIEnv *jni, uint64_t now) {
    uint64_t used = heap_in_use(jni);
    struct cycle c = {.begin = since_begin(now), .end = since_begin(now), .before = used, .after = used,
                      .kind = HC_PAUSE_READING, .whole = true, .gc = UINT32_MAX};
    read_at = now;
    return record(jni, &c);
}

static void record_ended(JNIEnv *jni) {
    while (nended && record(jni, &ended[first_ended % ENDED])) first_ended++, nended--;
}

// How often the counters are read where no cycle ends: Epsilon has none, and an agent may wait for a sync point.
enum { READ_S = 10, WAIT_MS = 500 };
static bool reading_due(uint64_t now) {
    if (nended) return false;
    const bool asked = sync_reason() || watch_crowded();
    return now - read_at > (asked ? WAIT_MS * 1000000ull : READ_S * 1000000000ull) &&
           (asked || vm.collector == HC_COLLECTOR_EPSILON);
}

static void turn(JNIEnv *jni, uint64_t now) {
    const uint64_t idle_at = no_cycle_runs() ? since_begin(now) : 0;
    take_notes();
    if (nopen) note_used(jni);
    if (idle_at) end_cycles(idle_at);
    for (uint64_t n = atomic_exchange(&notes_lost, 0); n; n = 0) drop_epoch(); // pauses of a cycle, or all of it
    if (ring_abandoned() || atomic_load(&spool_waits)) {
        for (; nended; nended--) drop_epoch();
        return;
    }
    record_ended(jni);
    if (reading_due(now)) (void)record_reading(jni, now);
}

void cycles_turn(JNIEnv *jni, uint64_t now) {
    os_lock(&lock);
    watch_turn(now);
    if (is_off()) { // what comes after it is known anew
        nopen = nended = 0;
        atomic_store(&take_at, atomic_load(&put_at));
        want = HC_SYNC_LOST;
    } else if (!over && !atomic_load(&gave_up))
        turn(jni, now);
    os_unlock(&lock);
}

void cycles_last(JNIEnv *jni) {
    os_lock(&lock);
    if (!over && !is_off()) {
        const uint64_t now = now_ns();
        turn(jni, now);
        while (nopen) end_cycle(0, since_begin(now), false);
        record_ended(jni);
        if (!nended) (void)record_reading(jni, now);
    }
    over = true;
    os_unlock(&lock);
}
