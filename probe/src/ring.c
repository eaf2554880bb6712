//go:build ignore

// ring.c: ring.h.
#include "ring.h"

#include <stdio.h>
#include <string.h>

#include "deflog.h"
#include "guard.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "version.h"
#include "vmstructs.h"

// For who looks into the file: the version, which is in every ring of this probe.
__attribute__((used)) static const char version_mark[] = "heapcam-probe-version=" HC_PROBE_VERSION;

// The header's words as this process has them, and as every thread of it reads and writes them. The file's own belong
// to others as well: the VM thread and the control thread carry the agent's words in and the probe's out.
PER_RECORDING _Alignas(8) uint8_t ring[HC_RING_WORDS];
PER_RECORDING bool ring_made;
static PER_RECORDING struct os_ring files[2];
static PER_RECORDING struct os_ring *_Atomic now; // the one that is written
// Private: what is in the making and is copied when it is committed. The control thread's always; the VM thread's where
// it cannot write to the mapping as to memory (not mirrored; -Xcheck:jni, which has no guard).
static PER_RECORDING uint8_t *staging;
static PER_RECORDING uint64_t capacity;
PER_RECORDING _Atomic uint64_t largest_epoch; // bytes, without a listing
static PER_RECORDING bool fixed_size;
static PER_RECORDING uint64_t refused_until;
static PER_RECORDING atomic_flag writer = ATOMIC_FLAG_INIT;
static PER_RECORDING uint8_t *reserve;
enum { RESERVE = 8 << 20, FIRST_CAPACITY = 4 << 20, MOST_CAPACITY = 64 << 20 };
PER_RECORDING _Atomic uint64_t reserve_len;

// ---- size ---------------------------------------------------------------------------------------
// The ring must hold a listing of the heap, of about two bytes for each object of 48, and the largest epoch beside what
// the agent has not read.
static uint64_t capacity_for(uint64_t heap, uint64_t epoch) {
    uint64_t want = heap / 24 + 2 * epoch, n = FIRST_CAPACITY;
    while (n < want && n < MOST_CAPACITY) n *= 2;
    return n;
}

// It is memory taken from the application: no more than a twentieth of what is left.
static uint64_t affordable(uint64_t n) {
    uint64_t left = os_memory_left() / 20;
    while (n > left && n > FIRST_CAPACITY) n /= 2;
    return n;
}

// used: bytes of the heap that are in use now. A ring that cannot grow is made for the largest heap.
static uint64_t first_capacity(uint64_t used) {
    uint64_t n = capacity_for(OS_RING_GROWS && !opt.spool[0] ? used : vm.max_heap, 0);
    // At depth full each epoch lists a whole eden, and the one before may not be read yet.
    const uint64_t most = 32 << 20, eden = vm.max_heap / 8 < most ? vm.max_heap / 8 : most;
    while (opt.depth == HC_DEPTH_FULL && n < eden) n *= 2;
    return affordable(n);
}

// ---- the file -----------------------------------------------------------------------------------
// What is not to be read again: a ring that takes over gets the other words by ring_publish.
static void describe(const struct os_ring *r, uint64_t ticks) {
    memset(ring, 0, HC_RING_OFF_SESSION);
    *(uint32_t *)(ring + HC_RING_OFF_ABI) = HC_ABI_VERSION;
    *(uint32_t *)(ring + HC_RING_OFF_HEADER_SIZE) = HC_RING_HEADER_SIZE;
    *(uint64_t *)(ring + HC_RING_OFF_CAPACITY) = r->capacity;
    *(uint32_t *)(ring + HC_RING_OFF_PID) = os_pid();
    *(uint32_t *)(ring + HC_RING_OFF_FLAGS) = r->flags;
    *(uint64_t *)(ring + HC_RING_OFF_START_TICKS) = ticks;
    *(uint64_t *)(ring + HC_RING_OFF_PIDNS) = os_pid_namespace();
}

bool ring_create(uint64_t used, ring_opener *open_file, char why[HC_MAX_REASON]) {
    fixed_size = opt.ring != 0 || !OS_RING_GROWS || opt.spool[0];
    uint64_t want = opt.ring ? opt.ring : first_capacity(used), ticks = os_start_ticks();
    if (!ticks) { // the agent would take this process for another one
        snprintf(why, HC_MAX_REASON, "cannot read when this process started (Linux: /proc/self/stat)");
        return false;
    }
    capacity = HC_RING_MIN_CAPACITY;
    while (capacity < want && capacity < HC_RING_MAX_CAPACITY) capacity *= 2;
    struct os_ring *r = &files[0];
    if (!os_ring_make(r, NULL, open_file, opt.dir, ticks, capacity, why)) return false;
    fixed_size |= !r->path[0];
    staging = memory_sparse(capacity);
    reserve = memory(RESERVE);
    if (!deflogs_init() || !reserve || !staging) {
        snprintf(why, HC_MAX_REASON, "not enough memory for the shared ring's logs");
        os_ring_drop(r, NULL);
        return false;
    }
    describe(r, ticks);
    uint8_t rnd[16] = {0}, none[16] = {0};
    os_random(rnd);
    if (!memcmp(rnd, none, sizeof rnd)) memcpy(rnd, &ticks, 8);
    char hex[33];
    for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", rnd[i]);
    memcpy(ring + HC_RING_OFF_SESSION, hex, HC_RING_LEN_SESSION);
    snprintf((char *)ring + HC_RING_OFF_PROBE_VERSION, HC_RING_LEN_PROBE_VERSION, "%s", HC_PROBE_VERSION);
    *ring32(HC_RING_OFF_DEPTH_NOW) = (uint32_t)opt.depth;
    atomic_store(&now, r);
    ring_made = true;
    return true;
}

// Lets agents see the ring: the magic comes last.
void ring_show(void) {
    struct os_ring *r = atomic_load(&now);
    bool ok = os_ring_write(r, HC_RING_OFF_ABI, ring + HC_RING_OFF_ABI, HC_RING_WORDS - HC_RING_OFF_ABI) &&
              os_ring_write(r, 0, HC_RING_MAGIC, 8);
    if (!ok) ring_lost();
}

void ring_state(uint32_t state, const char *reason) {
    if (!ring_made) return;
    if (reason) snprintf((char *)ring + HC_RING_OFF_REASON, HC_RING_LEN_REASON, "%s", reason);
    atomic_store_explicit(ring32(HC_RING_OFF_STATE), state, memory_order_release);
}

// The file was truncated, or a hole of it could not be filled. Nothing is written any more; the control thread ends the
// recording.
static void ring_end(const char *why) {
    if (atomic_load(&gave_up)) return;
    ring_state(HC_STATE_GAVE_UP, why);
    atomic_store(&gave_up, true);
}

void ring_lost(void) {
    ring_end("the shared ring was truncated, or there is no memory left for it");
}

// The VM thread's: after a write to the ring that the guard broke off, or that it did not let begin.
void ring_broken(void) {
    if (ring_faulted() || !violated)
        ring_lost();
    else
        ring_end(violated);
}

// What is the probe's of the header.
static const struct stretch {
    int from, to;
} probes[] = {{HC_RING_OFF_EXHAUSTED, HC_RING_WORDS},
              {HC_RING_OFF_STATE, HC_RING_OFF_TAIL}}; // texts before the state that they explain

enum { AGENTS = (HC_RING_OFF_EXHAUSTED - HC_RING_OFF_TAIL) / 8 };

// The last word first: who sees the counter of emergencies has the method, which stands behind it.
static void take(const uint64_t w[AGENTS], int first) {
    for (int i = AGENTS - 1; i >= first; i--)
        atomic_store_explicit(ring64(HC_RING_OFF_TAIL + 8 * i), w[i], memory_order_release);
}

// Not for the VM thread.
void ring_exchange(void) {
    struct os_ring *r = atomic_load(&now);
    uint64_t w[AGENTS];
    bool ok = os_ring_read(r, HC_RING_OFF_TAIL, w, sizeof w);
    // One copy takes its bytes in any order: where the counter of emergencies has moved, a second one has the method.
    if (ok && w[(HC_RING_OFF_EMERGENCY - HC_RING_OFF_TAIL) / 8] != *ring64(HC_RING_OFF_EMERGENCY))
        ok = os_ring_read(r, HC_RING_OFF_TAIL, w, sizeof w);
    if (ok) take(w, 0);
    ok = ok && ring_publish();
    if (!ok) ring_lost();
}

// Not for the VM thread. False: the file is not what it was.
bool ring_publish(void) {
    struct os_ring *r = atomic_load(&now);
    for (size_t i = 0; i < 2; i++)
        if (!os_ring_write(r, (size_t)probes[i].from, ring + probes[i].from, (size_t)(probes[i].to - probes[i].from)))
            return false;
    return true;
}

bool ring_abandoned(void) {
    uint64_t beat = atomic_load_explicit(ring64(HC_RING_OFF_AGENT_HEARTBEAT), memory_order_relaxed);
    return beat && !opt.spool[0] && now_ns() > beat + (uint64_t)HC_RING_AGENT_STALE_NS * 12;
}

// Not for the VM thread. Whether the file can be read still.
bool ring_there(void) {
    uint64_t w;
    return os_ring_read(atomic_load(&now), HC_RING_OFF_HEAD, &w, sizeof w);
}

// The VM thread's, inside the guard. -Xcheck:jni has none for what faults: there the kernel is asked.
static void map_put(struct os_ring *r, size_t off, const void *from, size_t n) {
    if (!vm.check_jni)
        memcpy(r->map + off, from, n);
    else if (!safe_write((uint64_t)(r->map + off), from, n))
        violation("the shared ring cannot be written", (uint64_t)(r->map + off));
}

static uint64_t map_word(struct os_ring *r, int off) {
    uint64_t v;
    if (!vm.check_jni) return atomic_load_explicit((_Atomic uint64_t *)(r->map + off), memory_order_acquire);
    if (!safe_read(&v, (uint64_t)(r->map + off), sizeof v))
        violation("the shared ring cannot be read", (uint64_t)(r->map + off));
    atomic_thread_fence(memory_order_acquire);
    return v;
}

static void map_set_word(struct os_ring *r, int off, uint64_t v) {
    if (!vm.check_jni) {
        atomic_store_explicit((_Atomic uint64_t *)(r->map + off), v, memory_order_release);
        return;
    }
    atomic_thread_fence(memory_order_release);
    map_put(r, (size_t)off, &v, sizeof v);
}

void ring_refresh_in_pause(void) {
    struct os_ring *r = atomic_load(&now);
    uint64_t w[AGENTS];
    for (int i = 1; i < AGENTS; i++) w[i] = map_word(r, HC_RING_OFF_TAIL + 8 * i);
    take(w, 1); // tail is read where a commit begins
}

void ring_publish_in_pause(void) {
    struct os_ring *r = atomic_load(&now);
    for (size_t i = 0; i < 2; i++)
        for (int off = probes[i].from; off < (probes[i].to < HC_RING_OFF_JVM ? probes[i].to : HC_RING_OFF_JVM);
             off += 8)
            map_set_word(r, off, atomic_load_explicit(ring64(off), memory_order_relaxed));
}

// Whether the fault that the guard caught was in the ring's file.
bool ring_faulted(void) {
    struct os_ring *r = atomic_load(&now);
    return violated_at >= (uint64_t)r->map && violated_at < (uint64_t)(r->map + r->mapped);
}

// ---- commits ------------------------------------------------------------------------------------
bool ring_try(void) { return !atomic_flag_test_and_set_explicit(&writer, memory_order_acquire); }
void ring_unlock(void) { atomic_flag_clear_explicit(&writer, memory_order_release); }

void lock_writer(void) {
    while (!ring_try()) os_sleep_us(200);
}

static bool stages(struct os_ring *r, bool in_pause) { return !in_pause || !r->mirrored || vm.check_jni; }

uint64_t ring_room_in_pause(void) {
    uint64_t head = *ring64(HC_RING_OFF_HEAD), tail = map_word(atomic_load(&now), HC_RING_OFF_TAIL);
    return tail > head || head - tail > capacity ? 0 : capacity - (head - tail);
}

void ring_begin(struct enc *e, bool in_pause) {
    struct os_ring *r = atomic_load(&now);
    uint64_t head = *ring64(HC_RING_OFF_HEAD), tail;
    // Pairs with the agent's store of tail after it has persisted what it read. The word is the agent's: do not trust
    // it.
    if (in_pause)
        *ring64(HC_RING_OFF_TAIL) = tail = map_word(r, HC_RING_OFF_TAIL);
    else if (os_ring_read(r, HC_RING_OFF_TAIL, &tail, sizeof tail))
        *ring64(HC_RING_OFF_TAIL) = tail;
    else
        tail = head - capacity, ring_lost();
    uint64_t used = head - tail;
    if (tail > head || used > capacity) used = capacity;
    e->base = e->p = stages(r, in_pause) ? staging : r->map + HC_RING_HEADER_SIZE + (head & (capacity - 1));
    e->end = e->base + (capacity - used);
    e->over = false;
}

static bool copy_out(struct os_ring *r, uint64_t head, uint64_t n, bool in_pause) {
    uint64_t at = head & (capacity - 1), first = n < capacity - at ? n : capacity - at;
    if (in_pause) {
        map_put(r, HC_RING_HEADER_SIZE + at, staging, first);
        map_put(r, HC_RING_HEADER_SIZE, staging + first, n - first);
        return true;
    }
    return os_ring_write(r, HC_RING_HEADER_SIZE + at, staging, first) &&
           os_ring_write(r, HC_RING_HEADER_SIZE, staging + first, n - first);
}

bool ring_commit(struct enc *e, bool in_pause) {
    if (e->over) return false;
    struct os_ring *r = atomic_load(&now);
    uint64_t head = *ring64(HC_RING_OFF_HEAD), n = (uint64_t)(e->p - e->base);
    if (!n) return true;
    bool ok = !stages(r, in_pause) || copy_out(r, head, n, in_pause);
    head += n;
    atomic_thread_fence(memory_order_release); // the data before the word that makes it count
    if (in_pause)
        map_set_word(r, HC_RING_OFF_HEAD, head);
    else
        ok = ok && os_ring_write(r, HC_RING_OFF_HEAD, &head, sizeof head);
    if (!ok) return ring_lost(), false;
    *ring64(HC_RING_OFF_HEAD) = head;
    if (!in_pause && n > 1 << 20) os_give_back(staging, capacity);
    return true;
}

// ---- a larger ring that takes over --------------------------------------------------------------
// Control
// thread. The ring is too small when the next listing may not fit, or when an epoch did not. While nobody reads, a
// larger one would only hold more of what nobody reads.
void ring_grow(uint64_t t, bool read, bool overflowed) {
    uint64_t want = capacity_for(*ring64(HC_RING_OFF_LIVE_BYTES), atomic_load(&largest_epoch));
    if (overflowed && want <= capacity && capacity < MOST_CAPACITY) want = 2 * capacity;
    if (fixed_size || want <= capacity || !read || t < refused_until) return;
    struct os_ring *old = atomic_load(&now), *r = old == &files[0] ? &files[1] : &files[0];
    want = affordable(want);
    uint8_t *room = want > capacity && !os_ring_waits(old) ? memory_sparse(want) : NULL;
    char why[HC_MAX_REASON];
    refused_until = t + RETRY_GROWTH_NS;
    if (!room) return;
    if (!os_ring_make(r, old, NULL, "", 0, want, why)) {
        memory_give_back(room);
        return;
    }
    lock_writer();
    uint64_t head = *ring64(HC_RING_OFF_HEAD), base = *ring64(HC_RING_OFF_BASE), none = 0;
    *ring64(HC_RING_OFF_BASE) = head;
    describe(r, *(uint64_t *)(ring + HC_RING_OFF_START_TICKS));
    bool made = os_ring_write(r, HC_RING_OFF_ABI, ring + HC_RING_OFF_ABI,
                              HC_RING_WORDS - HC_RING_OFF_ABI) && // the agent's words as they were
                os_ring_write(r, HC_RING_OFF_TAIL, &head, sizeof head) &&
                os_ring_write(r, HC_RING_OFF_AGENT_GENERATION, &none, sizeof none) &&
                os_ring_write(r, 0, HC_RING_MAGIC, 8);
    if (!made) {
        describe(old, *(uint64_t *)(ring + HC_RING_OFF_START_TICKS));
        *ring64(HC_RING_OFF_BASE) = base;
        ring_unlock();
        os_ring_drop(r, old);
        memory_give_back(room);
        return;
    }
    uint8_t *was = staging;
    capacity = want;
    staging = room;
    atomic_store(&now, r);
    ring_unlock();
    wait_for_pause(); // which may have begun with the old one, and writes all words
    uint32_t state = HC_STATE_MOVED;
    if (!os_ring_write(old, HC_RING_OFF_STATE, &state, sizeof state)) ring_lost();
    lock_writer(); // the thread that ends the JVM may still use the old one
    os_ring_close(old);
    ring_unlock();
    memory_give_back(was);
    refused_until = t + 1000000000ull; // the agent is still emptying the old one
}

uint64_t ring_tail(void) {
    uint64_t tail;
    if (os_ring_read(atomic_load(&now), HC_RING_OFF_TAIL, &tail, sizeof tail)) *ring64(HC_RING_OFF_TAIL) = tail;
    return *ring64(HC_RING_OFF_TAIL);
}

bool ring_set_tail(uint64_t tail) {
    *ring64(HC_RING_OFF_TAIL) = tail;
    return os_ring_write(atomic_load(&now), HC_RING_OFF_TAIL, &tail, sizeof tail);
}

// The recording ends, and what waits for room in the ring is lost: it is counted. Caller holds the lock.
void reserve_drop(void) {
    if (!atomic_exchange(&reserve_len, 0)) return;
    atomic_fetch_add(ring64(HC_RING_OFF_EPOCHS_DROPPED), 1);
    (void)os_ring_write(atomic_load(&now), HC_RING_OFF_EPOCHS_DROPPED, ring + HC_RING_OFF_EPOCHS_DROPPED, 8);
}

// The file stays: the agent has not read all of it.
void ring_close(void) {
    for (int i = 0; i < 2; i++)
        if (files[i].map) os_ring_close(&files[i]);
}

void reserve_begin(struct enc *e) {
    e->base = e->p = reserve;
    // An epoch that waits for the writer stays whole: who does not fit beside it must not write at all, since what is
    // over still writes while there is room.
    e->over = atomic_load_explicit(&reserve_len, memory_order_acquire) != 0;
    e->end = reserve + (e->over ? 0 : RESERVE);
}

bool reserve_commit(struct enc *e) {
    if (e->over) return false;
    atomic_store_explicit(&reserve_len, (uint64_t)(e->p - e->base), memory_order_release);
    return true;
}

bool reserve_flush(bool in_pause) {
    uint64_t n = atomic_load_explicit(&reserve_len, memory_order_acquire);
    if (!n) return true;
    struct enc e;
    ring_begin(&e, in_pause);
    bool ok = room(&e, n);
    if (!ok && !in_pause) return false; // there may be room in a moment
    if (ok) {
        memcpy(e.p, reserve, n);
        e.p += n;
        ok = ring_commit(&e, in_pause);
    }
    atomic_store_explicit(&reserve_len, 0, memory_order_release);
    return ok;
}
