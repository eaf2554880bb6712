// probe.h: the parts of the probe and who may call them.
//
//   agent.c    entry points, JVMTI events, control thread            any thread
//   oracle.c   the walk against JVMTI's heap iteration (test mode)   control thread
//   epoch.c    what happens at the start and finish of a pause       VM thread, world stopped
//   walk.c     linear walks and their tokens                         VM thread, world stopped
//   marks.c    dead objects that G1 leaves in place                  VM thread, world stopped
//   classes.c  class word -> type, census counters                   VM thread writes, control thread looks up
//   samples.c  sampled allocations, stacks, weak references          application threads, lock-free towards the VM
//   thread ring.c     the shared ring and the definition logs               the holder of the writer lock recording.c
//   memory and variables of one recording                whoever begins it, control thread spool.c    a ring where no
//   agent reaches this process            control thread vm.c       what is known of the JVM; vmtable.c reads and
//   checks  the thread that begins, and then read only os.h       what differs between operating systems os_posix.c,
//   os_windows.c
//
// Invariants: (1) the VM thread never waits, allocates, or makes a system call but clock_gettime and sigaction (and,
// with -Xcheck:jni, process_vm_readv); (2) every raw read of heap, metadata or the shared ring happens between
// guard_arm and guard_disarm or through a system call that fails instead of faulting; (3) nothing is visible to the
// agent before ring_commit stores head.
#ifndef HEAPCAM_PROBE_H
#define HEAPCAM_PROBE_H

#include <jvmti.h>
#include <stdatomic.h>

#include "heapcam_abi.h"
#include "os.h"
#include "vm.h"

#ifndef HC_PROBE_VERSION
#define HC_PROBE_VERSION "0.1.0-dev"
#endif

struct options {
    char dir[256], spool[256]; // where the ring is made; spool: for an agent elsewhere, and nowhere else
    int depth, stack;
    uint64_t interval, ring;
    uint32_t slots, frames;
    bool allow_untested, oracle;
    bool unmirrored;             // a test's: as where the data cannot be mapped twice
    int untested;                // a test's: 1 take this JDK for one that nobody tested, 2 and let the self-check fail
    uint64_t fault_at, max_sync; // ns that a listing may take; 0: any
    uint32_t first_type;         // a test's: ids of types begin behind it
    enum { NAMES_FOLDED, NAMES_OFF, NAMES_FULL } names; // of threads
    char disabled[256];                                 // while a file of this name is there nothing is recorded
};
extern struct options opt;
extern jvmtiEnv *jvmti;         // one for all recordings
extern uint64_t probe_epoch_ns; // CLOCK_MONOTONIC at start

void lock_writer(void); // only for threads that may wait
void oracle(JNIEnv *jni);
bool guarded(void (*f)(void *), void *arg); // false: f was left by a fault or by violation
bool is_off(void);                          // paused, by the agent's word or by the host's switch: only a flag is read
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// ---- encoder: never writes past end; over tells that something did not fit
// -------------------------------------------------------
struct enc {
    uint8_t *p, *base, *end;
    bool over;
};
static inline bool room(struct enc *e, size_t n) {
    if ((size_t)(e->end - e->p) >= n) return true;
    e->over = true;
    return false;
}
static inline void put8(struct enc *e, uint8_t v) {
    if (room(e, 1)) *e->p++ = v;
}
static inline void put_u(struct enc *e, uint64_t v) {
    if (!room(e, 10)) return;
    while (v >= 0x80) *e->p++ = (uint8_t)(v | 0x80), v >>= 7;
    *e->p++ = (uint8_t)v;
}
static inline void put_s(struct enc *e, int64_t v) { put_u(e, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }
void put_str(struct enc *e, const char *s, size_t n);
uint8_t *blob_begin(struct enc *e, int tag);
void blob_end(struct enc *e, uint8_t *at);

// ---- recording.c
// -----------------------------------------------------------------------------------------------------------------------
// PER_RECORDING (os.h) variables begin each recording with the value that stands in the code. Memory is given back when
// it ends.
void *memory(size_t n); // zero; NULL: none. Not for the VM thread
void *memory_sparse(size_t n);
void memory_give_back(void *p);
// Callbacks of the JVM run between these two: what they touch stays as long as one runs. False: there is no recording.
bool enter(void);
void leave(void);
bool enter_pause(void); // the same for those of the VM thread
void leave_pause(void);
void wait_for_pause(void);            // until no callback of the VM thread runs
bool recording_begin(void);           // false: there is one
void recording_open(void);            // callbacks may come
void recording_close(void);           // none comes any more, and none runs
void recording_end(void);             // closed, and all that it had is given back
extern _Atomic uint32_t recording_no; // 1, 2, …

// ---- ring.c
// ------------------------------------------------------------------------------------------------------------------------
enum { HC_RING_WORDS = HC_RING_OFF_NAME + HC_RING_LEN_NAME };
#define RETRY_GROWTH_NS 10000000000ull
extern uint8_t ring[]; // the header's words: our own copy
extern bool ring_made;
extern _Atomic uint64_t largest_epoch; // bytes; the VM thread's
static inline _Atomic uint64_t *ring64(int off) { return (_Atomic uint64_t *)(ring + off); }
static inline _Atomic uint32_t *ring32(int off) { return (_Atomic uint32_t *)(ring + off); }
bool ring_create(uint64_t used, char why[HC_MAX_REASON]);
void ring_show(void);
void ring_state(uint32_t state, const char *reason);
void ring_lost(void);
void ring_exchange(void);
bool ring_publish(void);
bool ring_there(void);
void ring_broken(void);
void ring_refresh_in_pause(void); // these two inside the guard
void ring_publish_in_pause(void);
bool ring_faulted(void);
uint64_t ring_tail(void); // as it is in the file now; this and the next for spool.c
bool ring_set_tail(uint64_t tail);
void ring_grow(uint64_t now, bool read, bool overflowed);
void ring_close(void);
bool ring_try(void);
void ring_unlock(void);
// In a pause these four run inside the guard.
uint64_t ring_room_in_pause(void);             // bytes
void ring_begin(struct enc *e, bool in_pause); // caller holds the lock; e writes behind head
bool ring_commit(struct enc *e, bool in_pause);
bool reserve_flush(bool in_pause); // caller holds the lock
uint8_t *block_begin(struct enc *e, int kind);
void block_end(struct enc *e, uint8_t *at);
void reserve_begin(struct enc *e); // when the lock is taken: the VM thread's private reserve
bool reserve_commit(struct enc *e);
void reserve_drop(void); // caller holds the lock
extern _Atomic uint64_t reserve_len;

// ---- spool.c
// -----------------------------------------------------------------------------------------------------------------------
int spool_open(uint64_t size, uint64_t ticks, uint32_t *flags,
               char *why);            // the ring's file, size bytes of it allocated; -1: why
void spool_name(const char *command); // tells what runs here, from sun.java.command
bool spool_turn(uint64_t now);        // control thread; true: a new segment is to begin, with META and all definitions
void spool_mark(uint64_t at);         // and it begins here
extern _Atomic bool spool_waits;      // nothing is recorded until then

// Definition logs: append-only, readers take [sent, len) without a lock. What has gone leaves the type log by a second
// one that takes its place (ring.c).
struct deflog {
    uint8_t *mem;
    size_t cap;
    _Atomic size_t len;
    _Atomic size_t sent;
    size_t pending; // sent once the commit in the making succeeds
    size_t last_mark;
    uint32_t *marks; // where events begin, every DEFS_CHUNK bytes or so
    _Atomic uint32_t nmarks;
};
extern struct deflog type_log, site_log; // type_log: VM thread appends; site_log: under site_lock
bool deflog_append(struct deflog *l, const uint8_t *b, size_t n);
void put_defs(struct enc *e, bool locked); // locked: the caller has the writer lock, and defs_committed follows
// One part of all definitions so far; *at counts the parts and starts at 0. False when there is none left.
bool put_defs_again(struct enc *e, uint32_t *at);
void defs_committed(bool ok); // caller holds the lock
void types_tidy(void);        // these two: control thread
void types_keep(void);        // the type log stays as it is until types_tidy
void types_swap(void);        // VM thread in a pause, with the lock
bool next_def(const uint8_t **p, uint64_t f[6], const char **name,
              uint64_t *len); // of the type log; f[0] is the tag, f[5] a type's loader

// ---- classes.c
// -----------------------------------------------------------------------------------------------------------------------
// TF_SLOW: its size is not told by the layout helper alone (mirrors), or the word has named more than one class.
// Ids of types are never given twice, up to MAX_TYPE_IDS (heap.denseTypes; in a walk token they have 25 bits). At a
// time there are less than MAX_TYPES, each in the place TSLOT(id) of the tables.
enum {
    MAX_TYPES = 1 << 20,
    MAX_TYPE_IDS = 1 << 22,
    TF_DEAD = 1 << 31,
    TF_REUSED = 1 << 30,
    TF_VARIABLE = 1 << 29,
    TYPE_MASK = (1 << 28) - 1,
    BUCKETS = 6
};
#define TSLOT(id) ((uint32_t)(id) & (MAX_TYPES - 1))
#define TF_SLOW ((uint32_t)TF_DEAD | TF_REUSED | TF_VARIABLE)
struct centry {
    uint64_t word;
    uint32_t type; // TF_* | id
    int32_t lh;
};
struct tinfo {
    uint32_t id; // 0: the place is free
    int32_t lh;
    uint32_t scan;
    uint32_t held; // objects of the dead class in the side table
    uint8_t flags; // HC_TF_*, TI_CHUNK
};
enum { TI_ARCHIVED = 64, TI_CHUNK = 128 }; // a virtual thread's stack: its size hangs on a field of its own
extern struct centry *ctab;
extern uint64_t ctab_mask;
extern int ctab_shift;
extern struct tinfo *tinfo;
extern uint32_t ntypes;
bool classes_init(void);
void classes_scan_new(void); // classes loaded since the last scan
bool classes_scan_all(void); // all; true: some died
bool classes_dying(void);    // some died and have not gone
void classes_measured(void); // of what died then every object that is left is in the side table, but for eden
void classes_unseen(void);   // what survived the last collection is not known: classes that died may have objects
void classes_forget(bool eden_emptied, bool all); // those that are not named any more
struct centry *classes_learn(uint64_t word);      // a class of the CDS archive that nobody loaded yet
void side_clear(void);
void side_add(uint64_t addr, uint32_t type);
uint32_t side_get(uint64_t addr);
void side_drop(bool (*freed)(uint64_t addr));
void side_met(uint64_t addr);
void side_end(bool (*walked)(uint64_t addr)); // what was not met since classes_scan_all is dropped where walked says so

static inline struct centry *class_lookup(uint64_t word) {
    uint64_t i = (word * 0x9e3779b97f4a7c15ull) >> ctab_shift;
    for (;; i = (i + 1) & ctab_mask) {
        struct centry *c = &ctab[i];
        uint64_t w = atomic_load_explicit((_Atomic uint64_t *)&c->word, memory_order_acquire);
        if (w == word) return c;
        if (!w) return NULL;
    }
}

// One cache line holds what a birth or a promotion counts.
struct crow {
    uint32_t stamp, type, bucket, pad;
    struct {
        uint64_t n, b;
    } cell[5];
    uint64_t pad2[4];
};
extern struct crow *crows;
extern uint32_t cstamp, *ctouched, nctouched;
static inline void census(uint32_t type, uint32_t bucket, int cell, uint64_t bytes) {
    uint32_t i = TSLOT(type) * BUCKETS + bucket;
    struct crow *r = &crows[i];
    if (r->stamp != cstamp) {
        *r = (struct crow){.stamp = cstamp, .type = type, .bucket = bucket};
        ctouched[nctouched++] = i;
    }
    r->cell[cell].n++;
    r->cell[cell].b += bytes;
}
void census_put(struct enc *e);
void census_reset(void);

// ---- guard (os.h)
// --------------------------------------------------------------------------------------------------------------------
// A self-check failed: leaves the walk like a fault does. Only between guard_arm and guard_disarm.
_Noreturn void violation(const char *what, uint64_t where);
extern const char *violated;
extern uint64_t violated_at;

// ---- walk.c
// --------------------------------------------------------------------------------------------------------------------------
struct obj {
    uint32_t type, len; // len: elements, or words for types of variable size; only with has_len
    uint64_t bytes;
    uint32_t has_len, reused; // 0, 1
};
bool obj_at(uint64_t a, uint64_t mark, struct obj *o); // false: unknown class
struct walker {
    struct enc *e;
    uint64_t prev_end, prev_dst, lane[4];
    int k;
    bool open;
};
struct hole {
    uint64_t lo, hi;
};
extern struct hole *holes;
extern uint32_t nholes;
void tlab_holes(void);
enum { SRC_FROM, SRC_OLD, SRC_EDEN };
// fates of an evacuated range; source says what a death counts as; eden lists dead objects too and skips holes. Returns
// false on self-forwarding.
bool walk_moves(struct walker *w, uint64_t lo, uint64_t hi, int source);
// objects of [lo, hi) that are no destinations; returns where it had to stop (hi when all was understood).
uint64_t walk_births(struct walker *w, uint64_t lo, uint64_t hi, bool young, bool all);
extern uint64_t list_until; // now_ns() at which a listing is broken off (over); 0: never
uint64_t walk_list(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes);
uint64_t walk_list_living(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects,
                          uint64_t *bytes); // a region of G1, without what is known to be dead
void walk_forget_classes(void);             // a class word may mean another class from now on
void walk_dead(uint64_t lo, uint64_t hi);   // counts deaths of a freed range
bool walk_stale(uint64_t lo, uint64_t hi);  // notes objects of classes that died; false: not all
void dest_reset(void);
uint64_t walk_ndest(void); // words of destinations that no walk of a target range has met
bool dest_init(void);
bool is_old(uint64_t a);        // epoch.c: is this address in old space after the pause
extern uint64_t old_lo, old_hi; // the same for collectors with one old space

// ---- marks.c
// -------------------------------------------------------------------------------------------------------------------------
bool marks_init(uint32_t regions);
bool marks_there(void); // false: this JVM shows none, or has shown that they are not what they seem
void marks_distrust(void);
const uint64_t *marks_of(uint64_t bottom, uint64_t top, uint64_t *seen); // of a region; or violation
extern uint32_t mark_shift;
uint64_t marks_in(const uint64_t *bits, uint64_t lo, uint64_t hi);
static inline bool is_marked(const uint64_t *bits, uint64_t a) {
    uint64_t i = (a - (uint64_t)vm.heap_base) >> mark_shift;
    return bits[i >> 6] >> (i & 63) & 1;
}
// The first marked object from a on; hi: none before that.
static inline uint64_t marked_from(const uint64_t *bits, uint64_t a, uint64_t hi) {
    if (a >= hi) return hi;
    uint64_t i = (a - (uint64_t)vm.heap_base) >> mark_shift, end = (hi - (uint64_t)vm.heap_base) >> mark_shift;
    for (uint64_t w = rd64(&bits[i >> 6]) >> (i & 63);; w = rd64(&bits[i >> 6])) {
        if (w) {
            i += (uint64_t)__builtin_ctzll(w);
            break;
        }
        i = (i | 63) + 1;
        if (i >= end) break;
    }
    return i < end ? (uint64_t)vm.heap_base + (i << mark_shift) : hi;
}
extern bool marks_clean;  // a full collection has just made them: there is none inside of an object, as there is after
                          // an evacuation failure
extern uint64_t *graves;  // one bit a word of heap: of an object that no listing counts
extern uint8_t *grave_in; // regions that have any
extern bool
    graves_known; // no dead object is listed, but those that died since the newest marking of which a listing was made
void grave_dig(uint64_t lo, uint64_t hi);
uint64_t grave_words(uint64_t a, uint64_t hi); // from a on, which is one
void graves_drop(uint32_t region);
bool graves_at(uint64_t bottom); // of a region
static inline bool is_grave(uint64_t a) {
    uint64_t w = (a - (uint64_t)vm.heap_base) >> 3;
    return graves[w >> 6] >> (w & 63) & 1;
}

// ---- epoch.c
// -------------------------------------------------------------------------------------------------------------------------
bool epoch_init(void);
void epoch_start(void);
void epoch_finish(void);
void epoch_walk(int reason); // inside a stop without collection
uint64_t oracle_tally(uint64_t *objects,
                      uint64_t *bytes); // inside a stop: raw walk of everything, into the census counters
extern _Atomic uint64_t gc_counter;     // odd while a collection runs
extern uint64_t epoch_no;
extern _Atomic bool gave_up, listing_did_not_fit;
void epoch_want_sync(int reason); // any thread

// ---- samples.c
// -----------------------------------------------------------------------------------------------------------------------
extern _Atomic uint64_t interval_now;
extern _Atomic uint64_t sites_cut, sites_folded;
void sites_make_room(uint64_t now); // control thread
enum { HC_MAX_FRAMES = 1 << 18 };   // of all stacks together
bool samples_init(void);
void JNICALL on_sample(jvmtiEnv *, JNIEnv *, jthread, jobject, jclass, jlong);
void samples_put(struct enc *e, bool at_pause);
void samples_resolve(struct enc *e);
void samples_live(struct enc *e);
void samples_reap(JNIEnv *jni); // control thread: deletes weak references of the dead
bool samples_waiting(void);
bool samples_told(void); // none waits; with the writer lock
void samples_forget(JNIEnv *jni);

#endif
