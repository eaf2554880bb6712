//go:build ignore

// ring.c: the shared ring (docs/format/shared-ring.md), blocks, and the definition logs.
#define _GNU_SOURCE
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// For who looks into the file: the version that stands in every ring of this probe.
__attribute__((used)) static const char version_mark[] = "heapcam-probe-version=" HC_PROBE_VERSION;

uint8_t *ring;
static uint8_t *data; // mapped twice in a row: a write may run over the end
static uint8_t *staging; // where that is not to be had: what is in the making, copied when it is committed
static uint64_t capacity, seq;
static atomic_flag writer = ATOMIC_FLAG_INIT;
static uint8_t *reserve;
enum { RESERVE = 8 << 20 };
_Atomic uint64_t reserve_len;
struct deflog type_log, site_log;

void put_str(struct enc *e, const char *s, size_t n) {
    put_u(e, n);
    if (!room(e, n)) return;
    memcpy(e->p, s, n);
    e->p += n;
}

uint8_t *blob_begin(struct enc *e, int tag) {
    put8(e, (uint8_t)tag);
    uint8_t *at = e->p;
    if (room(e, 4)) e->p += 4;
    return at;
}

void blob_end(struct enc *e, uint8_t *at) {
    if (e->over) return;
    uint32_t n = (uint32_t)(e->p - at - 4);
    memcpy(at, &n, 4);
}

uint8_t *block_begin(struct enc *e, int kind) {
    while ((e->p - e->base) & 7) put8(e, 0);
    uint8_t *at = e->p;
    if (!room(e, HC_BLOCK_HEADER_SIZE)) return at;
    memset(at, 0, HC_BLOCK_HEADER_SIZE);
    at[0] = (uint8_t)kind;
    at[1] = HC_FORMAT_VERSION;
    e->p += HC_BLOCK_HEADER_SIZE;
    return at;
}

void block_end(struct enc *e, uint8_t *at) {
    if (e->over) return;
    uint32_t n = (uint32_t)(e->p - at - HC_BLOCK_HEADER_SIZE);
    uint64_t s = ++seq;
    memcpy(at + HC_BLOCK_OFF_LENGTH, &n, 4);
    memcpy(at + HC_BLOCK_OFF_SEQ, &s, 8);
    while ((e->p - e->base) & 7) put8(e, 0);
}

// What is told again after a reader came back goes in parts: all at once might never fit.
enum { DEFS_CHUNK = 256 << 10 };

static bool log_init(struct deflog *l, size_t cap) {
    l->mem = os_memory(cap);
    l->marks = calloc(cap / DEFS_CHUNK + 1, sizeof *l->marks);
    l->cap = cap;
    return l->mem && l->marks;
}

// The ring must hold a listing of the heap at about two bytes an object, at depth full a whole eden's tokens beside it; it is memory taken
// from the application: 16 to 64 MiB, and never more than a twentieth of what its cgroup has left.
static uint64_t default_ring(void) {
    uint64_t want = vm.max_heap / (opt.depth == HC_DEPTH_FULL ? 8 : 24), n = 16 << 20;
    while (n < want && n < 64 << 20) n *= 2;
    uint64_t left = os_memory_left() / 20;
    while (n > left && n > 4 << 20) n /= 2;
    return n;
}

bool ring_create(char why[HC_MAX_REASON]) {
    if (!opt.ring) opt.ring = default_ring();
    capacity = HC_RING_MIN_CAPACITY;
    while (capacity < opt.ring && capacity < HC_RING_MAX_CAPACITY) capacity *= 2;
    uint64_t ticks = os_start_ticks();
    uint32_t flags = 0;
    uint8_t *m = os_ring(opt.dir, ticks, HC_RING_HEADER_SIZE, capacity, &flags, why);
    if (!m) return false;
    if (!OS_MIRRORED) staging = os_memory(capacity);
    reserve = os_memory(RESERVE);
    if (!log_init(&type_log, 64 << 20) || !log_init(&site_log, 64 << 20) || !reserve || (!OS_MIRRORED && !staging)) {
        snprintf(why, HC_MAX_REASON, "no memory for the shared ring's logs");
        return false;
    }
    ring = m;
    data = m + HC_RING_HEADER_SIZE;
    *(uint32_t *)(ring + HC_RING_OFF_ABI) = HC_ABI_VERSION;
    *(uint32_t *)(ring + HC_RING_OFF_HEADER_SIZE) = HC_RING_HEADER_SIZE;
    *(uint64_t *)(ring + HC_RING_OFF_CAPACITY) = capacity;
    *(uint32_t *)(ring + HC_RING_OFF_PID) = os_pid();
    *(uint32_t *)(ring + HC_RING_OFF_FLAGS) = flags;
    *(uint64_t *)(ring + HC_RING_OFF_START_TICKS) = ticks;
    *(uint64_t *)(ring + HC_RING_OFF_PIDNS) = os_pid_namespace();
    uint8_t rnd[16] = {0}, none[16] = {0};
    os_random(rnd);
    if (!memcmp(rnd, none, sizeof rnd)) memcpy(rnd, &ticks, 8);
    for (int i = 0; i < 16; i++) snprintf((char *)ring + HC_RING_OFF_SESSION + 2 * i, 3, "%02x", rnd[i]);
    memset(ring + HC_RING_OFF_PROBE_VERSION, 0, HC_RING_LEN_PROBE_VERSION);
    snprintf((char *)ring + HC_RING_OFF_PROBE_VERSION, HC_RING_LEN_PROBE_VERSION, "%s", HC_PROBE_VERSION);
    *ring32(HC_RING_OFF_DEPTH_NOW) = (uint32_t)opt.depth;
    return true;
}

void ring_state(uint32_t state, const char *reason) {
    if (!ring) return;
    if (reason) snprintf((char *)ring + HC_RING_OFF_REASON, HC_RING_LEN_REASON, "%s", reason);
    atomic_store_explicit(ring32(HC_RING_OFF_STATE), state, memory_order_release);
}

bool ring_try(void) { return !atomic_flag_test_and_set_explicit(&writer, memory_order_acquire); }
void ring_unlock(void) { atomic_flag_clear_explicit(&writer, memory_order_release); }

void ring_begin(struct enc *e) {
    uint64_t head = atomic_load_explicit(ring64(HC_RING_OFF_HEAD), memory_order_relaxed);
    // Pairs with the agent's store of tail after it has persisted what it read. The word is the agent's: do not trust it.
    uint64_t tail = atomic_load_explicit(ring64(HC_RING_OFF_TAIL), memory_order_acquire);
    uint64_t used = head - tail;
    if (tail > head || used > capacity) used = capacity;
    e->base = e->p = OS_MIRRORED ? data + (head & (capacity - 1)) : staging;
    e->end = e->base + (capacity - used);
    e->over = false;
}

bool ring_commit(struct enc *e) {
    if (e->over) return false;
    uint64_t head = atomic_load_explicit(ring64(HC_RING_OFF_HEAD), memory_order_relaxed);
    uint64_t n = (uint64_t)(e->p - e->base);
    if (!OS_MIRRORED) {
        uint64_t at = head & (capacity - 1), first = n < capacity - at ? n : capacity - at;
        memcpy(data + at, staging, first);
        memcpy(data, staging + first, n - first);
    }
    atomic_store_explicit(ring64(HC_RING_OFF_HEAD), head + n, memory_order_release);
    return true;
}

void reserve_begin(struct enc *e) {
    e->base = e->p = reserve;
    // An epoch that waits for the writer stays whole: who does not fit beside it must not write at all, since what is over still writes while there
    // is room.
    e->over = atomic_load_explicit(&reserve_len, memory_order_acquire) != 0;
    e->end = reserve + (e->over ? 0 : RESERVE);
}

bool reserve_commit(struct enc *e) {
    if (e->over) return false;
    atomic_store_explicit(&reserve_len, (uint64_t)(e->p - e->base), memory_order_release);
    return true;
}

bool reserve_flush(void) {
    uint64_t n = atomic_load_explicit(&reserve_len, memory_order_acquire);
    if (!n) return true;
    struct enc e;
    ring_begin(&e);
    bool ok = room(&e, n);
    if (ok) {
        memcpy(e.p, reserve, n);
        e.p += n;
        ring_commit(&e);
    }
    atomic_store_explicit(&reserve_len, 0, memory_order_release);
    return ok;
}

bool deflog_append(struct deflog *l, const uint8_t *b, size_t n) {
    size_t len = atomic_load_explicit(&l->len, memory_order_relaxed);
    if (n > l->cap - len) return false;
    if (len - l->last_mark >= DEFS_CHUNK) {
        uint32_t m = atomic_load_explicit(&l->nmarks, memory_order_relaxed);
        l->marks[m] = (uint32_t)len;
        l->last_mark = len;
        atomic_store_explicit(&l->nmarks, m + 1, memory_order_release);
    }
    memcpy(l->mem + len, b, n);
    atomic_store_explicit(&l->len, len + n, memory_order_release);
    return true;
}

static void put_defs_of(struct enc *e, struct deflog *l, size_t from, size_t to) {
    if (from == to) return;
    uint8_t *at = block_begin(e, HC_KIND_DEFS);
    if (room(e, to - from)) {
        memcpy(e->p, l->mem + from, to - from);
        e->p += to - from;
    }
    block_end(e, at);
}

static struct deflog *const logs[] = {&type_log, &site_log};

void put_defs(struct enc *e) {
    for (int i = 0; i < 2; i++) {
        logs[i]->pending = atomic_load_explicit(&logs[i]->len, memory_order_acquire);
        put_defs_of(e, logs[i], logs[i]->sent, logs[i]->pending);
    }
}

bool put_defs_again(struct enc *e, uint32_t *at) {
    put_defs(e); // what is new keeps its order
    uint32_t n = *at;
    for (int i = 0; i < 2; i++) {
        struct deflog *l = logs[i];
        uint32_t marks = atomic_load_explicit(&l->nmarks, memory_order_acquire);
        if (n <= marks) {
            put_defs_of(e, l, n ? l->marks[n - 1] : 0, n < marks ? l->marks[n] : l->pending);
            ++*at;
            return true;
        }
        n -= marks + 1;
    }
    return false;
}

void defs_committed(bool ok) {
    if (!ok) return;
    type_log.sent = type_log.pending;
    site_log.sent = site_log.pending;
}
