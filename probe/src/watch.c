//go:build ignore

// watch.c: watch.h.
#include "watch.h"

#include <stdatomic.h>

#include "heapcam_abi.h"
#include "os.h"
#include "recording.h"
#include "vmstructs.h"

// The sampling thread writes a place until NEW, the holder of the writer lock until TOLD, then the thread that watches.
enum { FREE, CLAIMED, NEW, TELLING, TOLD };
static PER_RECORDING struct place {
    _Atomic uint32_t state;
    struct watched s;
    uint64_t chances;
    jweak w;
    uint32_t rounds;     // decisive cycles that it has outlived, of those that began after its allocation
    bool dead, survived; // survived: and this was recorded
    bool says, leaves;   // to be recorded: that it survived, that it is given up
} *places;
static PER_RECORDING _Atomic uint32_t high, hint, used;
static PER_RECORDING bool thinning;

// How often sites were sampled of late, by a hash: each second the half counts. Of a site that was sampled n times, one
// in n·share/SHARE samples is chosen, and all if that is less than 1. share follows the number of sites.
enum { SITES = 1 << 12, SHARE = 256, BURST = 2 * WATCH_RATE, MOST_CHANCES = 1 << 20 };
static PER_RECORDING _Atomic uint32_t *sampled;
// Of each site the sum of the probabilities so far, in units of 2^-32, from a random beginning on. The sample at which
// it comes to a whole is chosen. So each is chosen with its probability, and those between two that are chosen are
// about as many as the chances say: single draws would be right on average only, and often far off.
static PER_RECORDING _Atomic uint32_t *phase;
static PER_RECORDING _Atomic uint32_t share = SHARE;
static PER_RECORDING _Atomic uint32_t taken; // in this second
static PER_RECORDING uint64_t second_began;
static PER_RECORDING uint32_t undecided; // at least so many may be garbage
static __thread uint64_t dice;

static uint64_t next_random(const void *seed) {
    if (!dice) dice = now_ns() ^ (uintptr_t)seed * 0x9e3779b97f4a7c15ull ^ (uintptr_t)&dice;
    uint64_t x = dice ? dice : 1;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (dice = x) * 0x2545f4914f6cdd1dull >> 16;
}

bool watch_init(void) {
    places = memory(WATCH_MOST * sizeof *places);
    sampled = memory(SITES * sizeof *sampled);
    phase = memory(SITES * sizeof *phase);
    if (!places || !sampled || !phase) return false;
    for (uint32_t i = 0; i < SITES; i++) phase[i] = (uint32_t)next_random(places);
    return true;
}

// The chances of a sample depend on those before it alone, never on itself.
static uint32_t chances_of(const struct watched *s) {
    uint32_t i = (uint32_t)((s->frame * 0x9e3779b97f4a7c15ull + s->type * 0xc2b2ae3d27d4eb4full) >> 52);
    uint32_t f = atomic_load_explicit(&share, memory_order_relaxed);
    uint64_t n = (uint64_t)atomic_fetch_add_explicit(&sampled[i], 1, memory_order_relaxed) * f / SHARE;
    if (n < 1) n = 1;
    if (n > MOST_CHANCES) n = MOST_CHANCES;
    const uint32_t step = (uint32_t)((1ull << 32) / n); // 0: n is 1
    if (step && atomic_fetch_add_explicit(&phase[i], step, memory_order_relaxed) <= UINT32_MAX - step) return 0;
    uint32_t t = atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed) + 1;
    if (t >= BURST && t % WATCH_RATE == 0 && f < SHARE << 20)
        atomic_compare_exchange_strong(&share, &f, 2 * f);
    return (uint32_t)n;
}

static int32_t claim(void) {
    uint32_t h = atomic_load_explicit(&hint, memory_order_relaxed);
    for (uint32_t n = 0; n < WATCH_MOST; n++) {
        uint32_t i = (h + n) % WATCH_MOST, f = FREE;
        if (atomic_load_explicit(&places[i].state, memory_order_relaxed) != FREE ||
            !atomic_compare_exchange_strong(&places[i].state, &f, CLAIMED))
            continue;
        atomic_store_explicit(&hint, (i + 1) % WATCH_MOST, memory_order_relaxed);
        atomic_fetch_add_explicit(&used, 1, memory_order_relaxed);
        uint32_t hi = atomic_load(&high);
        while (hi <= i && !atomic_compare_exchange_weak(&high, &hi, i + 1)) {
        }
        return (int32_t)i;
    }
    return WATCH_NONE;
}

static void give_back(struct place *p) {
    p->w = NULL;
    atomic_fetch_sub_explicit(&used, 1, memory_order_relaxed);
    atomic_store_explicit(&p->state, FREE, memory_order_release);
}

int32_t watch_take(JNIEnv *jni, jobject o, const struct watched *s) {
    uint32_t n = chances_of(s);
    int32_t at = n ? claim() : WATCH_NONE;
    if (at == WATCH_NONE) return at;
    struct place *p = &places[at];
    p->s = *s;
    p->chances = n;
    p->rounds = 0;
    p->dead = p->survived = p->says = p->leaves = false;
    // Nothing is collected where nothing can die, and nothing needs to be asked.
    p->w = vm.collector == HC_COLLECTOR_EPSILON ? NULL : (*jni)->NewWeakGlobalRef(jni, o);
    if (p->w || vm.collector == HC_COLLECTOR_EPSILON) {
        atomic_store_explicit(&p->state, NEW, memory_order_release);
        return at;
    }
    give_back(p);
    return WATCH_NONE;
}

// The sample was dropped: it is recorded nowhere. Its weak global is deleted with those of the dead.
void watch_back(int32_t at) {
    if (at == WATCH_NONE) return;
    places[at].dead = true;
    atomic_store_explicit(&places[at].state, TOLD, memory_order_release);
}

void watch_sent(int32_t at) {
    if (at != WATCH_NONE) atomic_store_explicit(&places[at].state, TELLING, memory_order_release);
}

void watch_put_sent(struct enc *e) {
    uint8_t *at = NULL;
    uint64_t id = 0;
    for (uint32_t i = 0; i < atomic_load(&high); i++) {
        struct place *p = &places[i];
        if (atomic_load_explicit(&p->state, memory_order_acquire) != TELLING) continue;
        if (!at) at = blob_begin(e, HC_EV_WATCHED);
        put_s(e, (int64_t)(p->s.id - id));
        put_u(e, p->chances);
        id = p->s.id;
        atomic_store_explicit(&p->state, TOLD, memory_order_release);
    }
    if (at) blob_end(e, at);
}

// ---- the thread that watches ---------------------------------------------------------------------
void watch_turn(uint64_t now) {
    if (now - second_began < 1000000000u) return;
    const uint32_t n = atomic_exchange(&taken, 0), was = atomic_load(&share);
    undecided += n;
    uint64_t f = n > WATCH_RATE ? (uint64_t)was * n / WATCH_RATE : n < WATCH_RATE / 2 ? was / 4 * 3 : was;
    if (undecided > WATCH_UNDECIDED) f = 2ull * was;
    if (f > 2ull * was) f = 2ull * was;
    atomic_store(&share, f < 1 ? 1 : f > SHARE << 20 ? SHARE << 20 : (uint32_t)f);
    for (uint32_t i = 0; i < SITES; i++) {
        uint32_t c = atomic_load_explicit(&sampled[i], memory_order_relaxed);
        if (c) atomic_fetch_sub_explicit(&sampled[i], c - c / 2, memory_order_relaxed);
    }
    second_began = now;
}

static struct place *sent(uint32_t i) {
    return atomic_load_explicit(&places[i].state, memory_order_acquire) == TOLD ? &places[i] : NULL;
}

// Generational ZGC clears the weak global of an object that was young when a major cycle began in the next one.
static uint32_t rounds_needed(void) {
    return vm.collector == HC_COLLECTOR_EPSILON ? 0 : vm_has_generations_without_addresses() ? 2 : 1;
}

void watch_look(JNIEnv *jni, bool decisive, uint64_t began) {
    const uint32_t need = rounds_needed();
    undecided = 0;
    for (uint32_t i = 0; i < atomic_load(&high); i++) {
        struct place *p = sent(i);
        if (!p || p->dead) continue;
        p->dead = p->w && (*jni)->IsSameObject(jni, p->w, NULL);
        if (!p->dead && decisive && p->s.time < began) p->rounds++;
        p->says = !p->dead && !p->survived && p->rounds >= need;
        undecided += !p->dead && p->rounds < need;
    }
}

bool watch_crowded(void) { return atomic_load(&used) > WATCH_MOST / 4 * 3; }

static void put_ids(struct enc *e, int tag, bool (*is)(const struct place *)) {
    uint8_t *at = NULL;
    uint64_t id = 0;
    for (uint32_t i = 0; i < atomic_load(&high); i++) {
        const struct place *p = sent(i);
        if (!p || !is(p)) continue;
        if (!at) at = blob_begin(e, tag);
        put_s(e, (int64_t)(p->s.id - id));
        id = p->s.id;
    }
    if (at) blob_end(e, at);
}

static bool died(const struct place *p) { return p->dead; }
static bool leaves(const struct place *p) { return p->leaves; }
static bool says(const struct place *p) { return p->says && !p->leaves; }

void watch_put(struct enc *e, bool thin) {
    thinning = thin;
    for (uint32_t i = 0; i < atomic_load(&high); i++) {
        struct place *p = sent(i);
        if (p) p->leaves = thin && !p->dead && next_random(p) & 1;
    }
    put_ids(e, HC_EV_SAMPLEDEAD, died);
    put_ids(e, HC_EV_UNWATCHED, leaves);
    put_ids(e, HC_EV_SURVIVED, says);
}

// After the events of its EPOCH, which watch_put has written.
void watch_list(struct enc *e) {
    uint8_t *at = blob_begin(e, HC_EV_LIVESAMPLES);
    uint64_t id = 0;
    for (uint32_t i = 0; i < atomic_load(&high); i++) {
        const struct place *p = sent(i);
        if (!p || p->dead || p->leaves) continue;
        put_s(e, (int64_t)(p->s.id - id));
        put_s(e, 0);
        put_u(e, p->s.frame);
        put_u(e, p->s.thread);
        put_u(e, p->s.birth);
        put_u(e, p->s.interval);
        put_u(e, p->s.size);
        id = p->s.id;
    }
    blob_end(e, at);
    at = blob_begin(e, HC_EV_WATCHING);
    id = 0;
    for (uint32_t i = 0; i < atomic_load(&high); i++) {
        const struct place *p = sent(i);
        if (!p || p->dead || p->leaves) continue;
        put_s(e, (int64_t)(p->s.id - id));
        put_u(e, p->s.type);
        put_u(e, thinning ? 2 * p->chances : p->chances);
        put_u(e, p->survived || p->says);
        id = p->s.id;
    }
    blob_end(e, at);
}

void watch_committed(JNIEnv *jni) {
    uint32_t low = UINT32_MAX;
    for (uint32_t i = 0; i < atomic_load(&high); i++) {
        struct place *p = sent(i);
        if (!p) continue;
        p->survived |= p->says;
        p->says = false;
        if (p->dead || p->leaves) {
            if (p->w) (*jni)->DeleteWeakGlobalRef(jni, p->w);
            give_back(p);
            if (low == UINT32_MAX) low = i;
        } else if (thinning) {
            p->chances *= 2;
        }
    }
    thinning = false;
    if (low != UINT32_MAX) atomic_store_explicit(&hint, low, memory_order_relaxed);
}

void watch_forget(JNIEnv *jni) {
    for (uint32_t i = 0; places && i < atomic_load(&high); i++) {
        struct place *p = &places[i];
        if (atomic_load_explicit(&p->state, memory_order_acquire) < NEW) continue;
        if (p->w) (*jni)->DeleteWeakGlobalRef(jni, p->w);
        give_back(p);
    }
}
