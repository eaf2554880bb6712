//go:build ignore

// samples.c: samples.h.
#include "samples.h"

#include <string.h>

#include "classtable.h"
#include "classtags.h"
#include "classwords.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "object.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "ring.h"
#include "sites.h"
#include "stacks.h"
#include "uses.h"
#include "vmstructs.h"
#include "watch.h"

PER_RECORDING _Atomic uint64_t interval_now;

// A sampled object that lives, found through a weak global. Written by the sampling thread until NEW, then by the
// writer-lock holder (SENT) and the VM thread (RESOLVED, DEAD); freed by the control thread.
enum { FREE, CLAIMED, NEW, SENT, RESOLVED, DEAD };
struct slot {
    _Atomic uint32_t state;
    uint32_t frame, thread;
    uint64_t id, interval, size, birth, addr;
    jweak w; // NULL: a humongous object of G1, which stays at addr until its region is freed
};
static PER_RECORDING struct slot *slots;
static PER_RECORDING _Atomic uint32_t high, hint;
static PER_RECORDING _Atomic uint64_t next_id;

// Side buffer: many producers, one consumer (whoever holds the writer lock). A cell's turn says who may touch it.
struct rec {
    _Atomic uint64_t turn;
    uint64_t id, time, word, size, interval;
    uint32_t thread, frame, slot;
    uint32_t type; // in place of word, once it is known
    int32_t watch;
};
enum { SIDE = 1 << 14, WAITING = 4096 }; // WAITING: so many at most wait for a type
static PER_RECORDING struct rec *side;
static PER_RECORDING _Atomic uint64_t put_at;
static PER_RECORDING _Atomic uint64_t take_at;
// Taken out of the side buffer, by the same consumer.
static PER_RECORDING struct rec *pending; // WAITING + SIDE
static PER_RECORDING _Atomic uint32_t npending;
static PER_RECORDING _Atomic bool in_hand; // from samples_gather to samples_committed

static PER_RECORDING uint32_t nthreads = 1; // under site_lock
static PER_RECORDING _Atomic int virtual_defined;
static __thread struct {
    uint64_t prev; // interval at the last draw, + 1
    uint32_t id, random;
    uint32_t recording; // for which this stands
} me;

bool samples_init(void) {
    if (vm_has_no_addresses()) opt.slots = 1; // watch.c has them
    slots = memory(opt.slots * sizeof *slots);
    side = memory(SIDE * sizeof *side);
    pending = memory((WAITING + SIDE) * sizeof *pending);
    if (!sites_init() || !stacks_init() || !classwords_init() || !pending || !slots || !side) return false;
    for (uint64_t i = 0; i < SIDE; i++) side[i].turn = i;
    return true;
}

static void define_thread(uint32_t id, uint32_t flags, const char *name) {
    uint8_t buf[1200];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    put8(&e, HC_EV_THREAD);
    put_u(&e, id);
    put_u(&e, flags);
    size_t n = name ? strlen(name) : 0;
    put_str(&e, name ? name : "", n > 1000 ? 1000 : n);
    os_lock(&site_lock);
    site_define(buf, &e);
    os_unlock(&site_lock);
}

static bool is_virtual(JNIEnv *jni, jthread t) {
    // JNI 21 has IsVirtualThread as entry 234 of the function table; the header of 17 does not know it.
    static _Atomic int has = -1;
    if (has < 0) has = (*jni)->GetVersion(jni) >= 0x00150000;
    return has && ((jboolean(JNICALL *)(JNIEnv *, jobject))((void **)*jni)[234])(jni, t);
}

// A thread's name may hold what belongs to a user, most of all numbers: each run of digits becomes one #. In place.
static const char *allowed_name(char *s) {
    if (!s || opt.names == NAMES_OFF) return "";
    if (opt.names == NAMES_FULL) return s;
    char *to = s;
    for (char *p = s; *p;) {
        if (*p < '0' || *p > '9') {
            *to++ = *p++;
            continue;
        }
        while (*p >= '0' && *p <= '9') p++;
        *to++ = '#';
    }
    *to = 0;
    return s;
}

uint32_t samples_define_thread(jvmtiEnv *env, JNIEnv *jni, jthread t) {
    jvmtiThreadInfo info = {0};
    (*env)->GetThreadInfo(env, t, &info);
    os_lock(&site_lock);
    const uint32_t id = ++nthreads;
    os_unlock(&site_lock);
    define_thread(id, 0, allowed_name(info.name));
    if (info.name) (*env)->Deallocate(env, (unsigned char *)info.name);
    if (info.thread_group) (*jni)->DeleteLocalRef(jni, info.thread_group);
    if (info.context_class_loader) (*jni)->DeleteLocalRef(jni, info.context_class_loader);
    return id;
}

static uint32_t thread_id(jvmtiEnv *env, JNIEnv *jni, jthread t, bool virtual) {
    if (virtual) {
        if (!atomic_exchange(&virtual_defined, 1)) define_thread(1, HC_THREAD_VIRTUAL, "(virtual threads)");
        return 1;
    }
    if (!me.id) me.id = samples_define_thread(env, jni, t);
    return me.id;
}

// The class word of an object that may move at any moment: read between two looks at the collection counter, never
// dereferenced directly.
static uint64_t class_word(jvmtiEnv *env, jobject o) {
    for (int i = 0; i < 8; i++) {
        uint64_t c = atomic_load_explicit(&gc_counter, memory_order_acquire), h[2];
        if (!(c & 1) && safe_read(h, rd64((void *)((uintptr_t)o & ~7ull)), sizeof h)) {
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&gc_counter, memory_order_relaxed) == c)
                return vm.compact_headers ? h[0] >> vm.klass_shift : vm.compressed_class ? (uint32_t)h[1] : h[1];
        }
        jlong size; // a call into the VM: it waits until the collection is over
        (*env)->GetObjectSize(env, o, &size);
    }
    return 0;
}

static uint32_t claim(void) {
    uint32_t h = atomic_load_explicit(&hint, memory_order_relaxed);
    for (uint32_t n = 0; n < 4096 && n < opt.slots; n++) {
        uint32_t i = (h + n) % opt.slots, f = FREE;
        if (atomic_load_explicit(&slots[i].state, memory_order_relaxed) == FREE &&
            atomic_compare_exchange_strong(&slots[i].state, &f, CLAIMED)) {
            atomic_store_explicit(&hint, (i + 1) % opt.slots, memory_order_relaxed);
            uint32_t hi = atomic_load(&high);
            while (hi <= i && !atomic_compare_exchange_weak(&high, &hi, i + 1)) {
            }
            return i;
        }
    }
    atomic_store_explicit(&hint, (h + 4096) % opt.slots, memory_order_relaxed);
    return UINT32_MAX;
}

static bool push(const struct rec *r) {
    uint64_t at = atomic_load_explicit(&put_at, memory_order_relaxed);
    for (;;) {
        struct rec *c = &side[at & (SIDE - 1)];
        uint64_t turn = atomic_load_explicit(&c->turn, memory_order_acquire);
        if (turn == at) {
            if (!atomic_compare_exchange_weak_explicit(&put_at, &at, at + 1, memory_order_relaxed,
                                                       memory_order_relaxed))
                continue;
            c->id = r->id, c->time = r->time, c->word = r->word, c->size = r->size, c->interval = r->interval;
            c->thread = r->thread, c->frame = r->frame, c->slot = r->slot, c->type = r->type, c->watch = r->watch;
            atomic_store_explicit(&c->turn, at + 1, memory_order_release); // pairs with pop
            return true;
        }
        if (turn < at) return false; // full
        at = atomic_load_explicit(&put_at, memory_order_relaxed);
    }
}

static bool pop(struct rec *out) {
    const uint64_t at = atomic_load_explicit(&take_at, memory_order_relaxed);
    struct rec *c = &side[at & (SIDE - 1)];
    if (atomic_load_explicit(&c->turn, memory_order_acquire) != at + 1) return false;
    out->id = c->id, out->time = c->time, out->word = c->word, out->size = c->size, out->interval = c->interval;
    out->thread = c->thread, out->frame = c->frame, out->slot = c->slot, out->type = c->type, out->watch = c->watch;
    atomic_store_explicit(&c->turn, at + SIDE, memory_order_release);
    atomic_store_explicit(&take_at, at + 1, memory_order_release); // pairs with samples_sent
    return true;
}

static void drop(uint64_t n) {
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_SAMPLES_DROPPED), n, memory_order_relaxed);
}

// Of an object that has no address: its type is that of its class, and a random part is watched.
static void take_without_address(JNIEnv *jni, const struct sampled *s, struct rec *r) {
    r->slot = UINT32_MAX;
    r->type = classtags_type(jni, s->class, s->size);
    struct watched w = {.id = r->id, .time = r->time, .size = r->size, .interval = r->interval, .birth = s->epoch,
                        .frame = r->frame, .thread = r->thread, .type = r->type};
    r->watch = watch_take(jni, s->object, &w);
    if (push(r)) return;
    watch_back(r->watch);
    drop(1);
}

static void take_with_address(jvmtiEnv *env, JNIEnv *jni, const struct sampled *s, struct rec *r) {
    if (s->class) r->word = classwords_find(s->class);
    if (!r->word && (r->word = class_word(env, s->object)) && s->class)
        classwords_keep(jni, s->class, r->word);
    r->slot = claim();
    if (r->slot == UINT32_MAX) {
        drop(1);
        return;
    }
    struct slot *t = &slots[r->slot];
    // A weak global would keep G1 from freeing a humongous object in young collections: it takes every referent
    // outside the collection set for live. Such objects do not move, so their address is enough.
    bool humongous = vm_has_regions() && r->size > vm.region_bytes / 2;
    t->addr = humongous ? rd64((void *)((uintptr_t)s->object & ~7ull)) : 0;
    t->w = humongous ? NULL : (*jni)->NewWeakGlobalRef(jni, s->object);
    t->id = r->id, t->frame = r->frame, t->thread = r->thread, t->interval = r->interval, t->size = r->size;
    t->birth = s->epoch;
    atomic_store_explicit(&t->state, t->w || t->addr ? NEW : DEAD, memory_order_release);
    if (push(r)) return;
    atomic_store_explicit(&t->state, DEAD, memory_order_release);
    drop(1);
}

static uint32_t draw(void) { // xorshift32, a sequence of each thread's own
    uint32_t x = me.random ? me.random : (uint32_t)((uintptr_t)&me >> 4 ^ now_ns()) | 1;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return me.random = x;
}

void samples_take(jvmtiEnv *env, JNIEnv *jni, const struct sampled *s) {
    uint32_t no = atomic_load_explicit(&recording_no, memory_order_relaxed);
    if (me.recording != no)
        me.recording = no, me.prev = me.id = 0; // what this thread kept is of a recording that has ended
    // The clock is a call into the system, which may take as long as the rest: one in TIMED counts for all, save where
    // the JVM is asked for the stack, which takes most and is measured each time.
    enum { TIMED = 16 };
    const uint32_t random = draw();
    uint64_t times = random >> 8 & (TIMED - 1) ? 0 : TIMED, begin = times ? cpu_ns() : 0;
    const uint64_t iv = atomic_load_explicit(&interval_now, memory_order_relaxed);
    struct rec r = {
        .interval = me.prev ? me.prev - 1 : iv, .size = (uint64_t)s->size, .time = now_ns() - probe_epoch_ns,
        .watch = WATCH_NONE};
    me.prev = iv + 1;
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_SAMPLES), 1, memory_order_relaxed);
    const bool virtual = is_virtual(jni, s->thread);
    struct stack_found st;
    st.frame = 0, st.keyed = st.partly = false;
    if (!virtual) stacks_find(&st); // a virtual thread's frames may lie elsewhere
    r.frame = st.frame;
    const bool check = stacks_check(random);
    if (!st.frame || check) {
        if (!times) begin = cpu_ns();
        times = 1;
        r.frame = stacks_read(env, jni, &st, check);
    }
    stack_used(r.frame);
    r.thread = thread_id(env, jni, s->thread, virtual);
    r.id = atomic_fetch_add(&next_id, 1) + 1;
    if (vm_has_no_addresses())
        take_without_address(jni, s, &r);
    else
        take_with_address(env, jni, s, &r);
    if (times)
        atomic_fetch_add_explicit(ring64(HC_RING_OFF_SAMPLE_NS), times * (cpu_ns() - begin), memory_order_relaxed);
}

bool samples_waiting(void) { return atomic_load_explicit(&put_at, memory_order_relaxed) - take_at > SIDE / 4; }

// in_hand last: who takes out the last one has set it before.
bool samples_sent(void) {
    const uint64_t taken = atomic_load_explicit(&take_at, memory_order_acquire);
    return atomic_load(&put_at) == taken && !atomic_load(&npending) && !atomic_load(&in_hand);
}

static void put_sample(struct enc *e, const struct rec *r, uint32_t type, uint64_t *id, uint64_t *time) {
    put8(e, HC_EV_SAMPLE);
    put_s(e, (int64_t)(r->id - *id));
    put_s(e, (int64_t)(r->time - *time));
    put_u(e, r->thread);
    put_u(e, type);
    put_u(e, r->size);
    put_u(e, r->interval);
    put_u(e, r->frame);
    *id = r->id, *time = r->time;
    uint32_t st = NEW;
    if (r->slot != UINT32_MAX) atomic_compare_exchange_strong(&slots[r->slot].state, &st, SENT);
}

static PER_RECORDING uint64_t uncommitted; // samples in blocks that are not in the ring yet

void samples_committed(bool ok) {
    if (!ok) atomic_fetch_add_explicit(ring64(HC_RING_OFF_SAMPLES_DROPPED), uncommitted, memory_order_relaxed);
    uncommitted = 0;
    atomic_store(&in_hand, false);
}

void samples_gather(void) {
    atomic_store(&in_hand, true);
    uint32_t n = npending;
    while (n < WAITING + SIDE && pop(&pending[n])) n++;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t type = pending[i].word ? class_type_at(pending[i].word, pending[i].time) : 0;
        if (type) pending[i].type = type, pending[i].word = 0;
    }
    npending = n;
}

// A class that was loaded after the last scan has no type yet: such samples wait for the pause.
void samples_put(struct enc *e, bool at_pause) {
    struct rec r;
    uint8_t *at = NULL;
    uint64_t id = 0, time = 0;
    uint32_t keep = 0;
    for (uint32_t i = 0; i < npending; i++) {
        r = pending[i];
        if (r.word && !at_pause && keep < WAITING) { // keep <= i: what it overwrites has been read
            pending[keep++] = r;
            continue;
        }
        if (!at) {
            at = block_begin(e, HC_KIND_SAMPLES);
            put8(e, HC_EV_SAMPLEBASE);
            put_u(e, r.time);
            put_u(e, r.id);
            id = r.id, time = r.time;
        }
        put_sample(e, &r, r.type, &id, &time);
        watch_sent(r.watch);
        uncommitted++;
    }
    npending = keep;
    if (!at) return;
    if (vm_has_no_addresses()) watch_put_sent(e);
    block_end(e, at);
}

// Where the object is now; 0: it died. In a pause.
static uint64_t where(const struct slot *s, const struct heapmap *m) {
    if (s->w) return rd64((void *)((uintptr_t)s->w & ~7ull));
    return s->addr && humongous_at(m, s->addr) ? s->addr : 0;
}

static void put_uses(struct enc *e, bool full) {
    struct uses_turn t;
    const uint32_t hi = atomic_load(&high);
    uses_begin(&t, e, full);
    for (uint32_t i = 0; i < hi && i < USES - 1; i++) {
        const bool live = atomic_load_explicit(&slots[i].state, memory_order_acquire) == RESOLVED;
        uses_of(&t, i + 1, live ? slots[i].id : 0, live ? slots[i].addr : 0);
    }
    uses_end(&t);
}

void samples_resolve(struct enc *e, const struct heapmap *at_finish, bool full) {
    uint32_t hi = atomic_load(&high);
    uint64_t id = 0, addr = 0;
    uint8_t *at = NULL;
    // Two passes: the events are one blob each.
    for (uint32_t i = 0; i < hi; i++) {
        struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != SENT) continue;
        uint64_t a = where(s, at_finish);
        if (!a) {
            atomic_store_explicit(&s->state, DEAD, memory_order_release);
            continue;
        }
        s->addr = a;
        if (!heapmap()->in_state(at_finish, a)) continue;
        if (!at) at = blob_begin(e, HC_EV_RESOLVED);
        uint64_t w = (a - (uint64_t)vm.heap_base) >> 3;
        put_s(e, (int64_t)(s->id - id));
        put_s(e, (int64_t)(w - addr));
        id = s->id, addr = w;
        atomic_store_explicit(&s->state, RESOLVED, memory_order_release);
    }
    if (at) blob_end(e, at);
    at = NULL;
    id = 0;
    for (uint32_t i = 0; i < hi; i++) {
        struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != RESOLVED) continue;
        s->addr = where(s, at_finish);
        if (s->addr) continue;
        if (!at) at = blob_begin(e, HC_EV_SAMPLEDEAD);
        put_s(e, (int64_t)(s->id - id));
        id = s->id;
        atomic_store_explicit(&s->state, DEAD, memory_order_release);
    }
    if (at) blob_end(e, at);
    if (uses_are_on()) put_uses(e, full);
}

void samples_live(struct enc *e, const struct heapmap *at_finish) {
    uint32_t hi = atomic_load(&high);
    uint64_t id = 0, addr = 0;
    uint8_t *at = NULL;
    for (uint32_t i = 0; i < hi; i++) {
        struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != RESOLVED) continue;
        // Not s->addr: an epoch that goes into the reserve has not resolved the samples.
        uint64_t a = where(s, at_finish);
        if (!a) continue;
        if (!at) at = blob_begin(e, HC_EV_LIVESAMPLES);
        uint64_t w = (a - (uint64_t)vm.heap_base) >> 3;
        put_s(e, (int64_t)(s->id - id));
        put_s(e, (int64_t)(w - addr));
        put_u(e, s->frame);
        put_u(e, s->thread);
        put_u(e, s->birth);
        put_u(e, s->interval);
        put_u(e, s->size);
        id = s->id, addr = w;
    }
    if (at) blob_end(e, at);
}

uint32_t samples_starts(uint64_t lo, uint64_t hi, bool settled, uint64_t to[STARTS]) {
    enum { LOOKED = 1 << 14, ASKED = 2048 }; // ASKED: weak references, each is a cache miss
    uint64_t first[STARTS] = {0}, part = (hi - lo) / STARTS + 1;
    uint32_t n = 0, most = atomic_load(&high);
    if (settled && most > LOOKED) most = LOOKED; // the newest are behind them
    for (uint32_t i = 0, asked = 0; i < most && asked < ASKED; i++) {
        const struct slot *s = &slots[i];
        const uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
        const bool is = settled ? state == RESOLVED && s->addr > lo && s->addr < hi : state == NEW || state == SENT;
        if (!is || !s->w) continue;
        const uint64_t a = rd64((void *)((uintptr_t)s->w & ~7ull)); // not s->addr, which a lost epoch has not set
        asked++;
        if (a <= lo || a >= hi) continue;
        uint64_t *f = &first[(a - lo) / part];
        if (!*f || a < *f) *f = a;
    }
    for (int i = 0; i < STARTS; i++)
        if (first[i]) to[n++] = first[i];
    return n;
}

uint32_t samples_most(void) { return atomic_load(&high); }

void samples_each(const struct heapmap *at, void (*f)(void *arg, uint64_t id, uint64_t addr), void *arg) {
    const uint32_t hi = atomic_load(&high);
    for (uint32_t i = 0; i < hi; i++) {
        const struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != RESOLVED) continue;
        const uint64_t a = where(s, at);
        if (a) f(arg, s->id, a);
    }
}

void samples_live_typed(struct enc *e, const struct heapmap *at_finish) {
    samples_live(e, at_finish);
    uint32_t hi = atomic_load(&high);
    uint8_t *at = NULL;
    for (uint32_t i = 0; i < hi; i++) {
        struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != RESOLVED) continue;
        uint64_t a = where(s, at_finish);
        if (!a) continue;
        if (!at) at = blob_begin(e, HC_EV_SAMPLETYPES);
        struct obj o;
        put_u(e, obj_at(a, rd64((void *)a), &o) ? o.type : 0);
    }
    if (at) blob_end(e, at);
}

void samples_reap(JNIEnv *jni) {
    uint32_t hi = atomic_load(&high), low = UINT32_MAX;
    for (uint32_t i = 0; i < hi; i++) {
        if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != DEAD) continue;
        if (slots[i].w) (*jni)->DeleteWeakGlobalRef(jni, slots[i].w);
        slots[i].w = NULL;
        atomic_store_explicit(&slots[i].state, FREE, memory_order_release);
        if (low == UINT32_MAX) low = i;
    }
    // Low slots first: what a pause looks through stays short.
    if (low != UINT32_MAX) atomic_store_explicit(&hint, low, memory_order_relaxed);
}

void samples_forget(JNIEnv *jni) {
    watch_forget(jni);
    classwords_forget(jni);
    stacks_report_end();
    uint32_t hi = atomic_load(&high);
    for (uint32_t i = 0; i < hi; i++) {
        uint32_t st = atomic_load_explicit(&slots[i].state, memory_order_acquire);
        if (st >= NEW) atomic_store_explicit(&slots[i].state, DEAD, memory_order_release);
    }
    samples_reap(jni);
}
