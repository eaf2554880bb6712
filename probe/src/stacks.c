//go:build ignore

// stacks.c: stacks.h.
#include "stacks.h"

#include "compose.h"
#include "log.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "sites.h"
#include "vmstructs.h"

// Two words as in sites.c: the second is folded into the first, so that a torn pair is a miss. Two places for each key,
// in one line of the cache.
enum { STACKS = 1 << 15, CHECK = 64, CHECK_FIRST = 16, PER_DIFFERENCE = 10000 };
static PER_RECORDING struct place { _Atomic uint64_t a, b; } * places;
static PER_RECORDING _Atomic bool known; // frames_init succeeded, and too few differed
static PER_RECORDING _Atomic uint32_t freed;
static PER_RECORDING _Atomic uint64_t found, missed, unkeyed, checked, differed;
static PER_RECORDING bool said;

bool stacks_init(void) {
    known = opt.ask != 1 && frames_init();
    return !known || ((places = memory_ready(STACKS * sizeof *places)) && compose_init());
}

void stacks_methods_freed(void) { atomic_fetch_add_explicit(&freed, 1, memory_order_relaxed); }

static void place_of(const struct frames_key *k, struct place **first, struct place **second) {
    const uint64_t i = k->a >> 49;
    *first = &places[i], *second = &places[i ^ 1];
}

static uint32_t frame_at(const struct place *p, const struct frames_key *k) {
    const uint64_t b = atomic_load_explicit(&p->b, memory_order_relaxed);
    const bool is = (atomic_load_explicit(&p->a, memory_order_relaxed) ^ b) == k->a && b >> 32 == k->b >> 32;
    return is ? (uint32_t)b : 0;
}

static void count(_Atomic uint64_t *n) { atomic_fetch_add_explicit(n, 1, memory_order_relaxed); }

bool stacks_check(uint32_t random) {
    return random % CHECK == 0 || opt.ask || atomic_load_explicit(&checked, memory_order_relaxed) < CHECK_FIRST;
}

static void keep(const struct frames_key *k, uint32_t frame) {
    struct place *p, *q;
    place_of(k, &p, &q);
    // Which of the two is older is not known: the number decides.
    const bool taken = atomic_load_explicit(&p->b, memory_order_relaxed);
    if (taken && (k->b & 1 || !atomic_load_explicit(&q->b, memory_order_relaxed))) p = q;
    const uint64_t b = (k->b & ~0xffffffffull) | frame;
    atomic_store_explicit(&p->b, b, memory_order_release); // the definition of the frame comes before
    atomic_store_explicit(&p->a, k->a ^ b, memory_order_release);
}

static void compose_end(struct stack_found *s) {
    s->frame = stack_id(s->composed.frame, s->composed.n);
    if (s->frame && !sites_are_full()) keep(&s->key, s->frame);
}

void stacks_find(struct stack_found *s) {
    s->frame = 0;
    s->keyed = s->partly = false;
    if (!atomic_load_explicit(&known, memory_order_relaxed)) return;
    // Before the walk: what is freed later is not on this stack.
    const uint64_t since = s->since = atomic_load_explicit(&freed, memory_order_relaxed);
    const uint64_t ids = atomic_load_explicit(&sites_rooms, memory_order_relaxed);
    // Where objects have no addresses, methods are freed while the application runs.
    s->keyed = frames_key(&s->key, &s->list, opt.stack) && !(s->key.interpreted && vm_has_no_addresses());
    if (!s->keyed) {
        count(&unkeyed);
        return;
    }
    s->key.a += ids * 0x9e3779b97f4a7c15ull, s->key.b ^= ids;
    if (s->key.interpreted) s->key.a ^= since * 0xc2b2ae3d27d4eb4full, s->key.b += since << 40;
    struct place *p, *q;
    place_of(&s->key, &p, &q);
    s->frame = frame_at(p, &s->key);
    if (!s->frame) s->frame = frame_at(q, &s->key);
    count(s->frame ? &found : &missed);
    if (s->frame) return;
    struct composed *c = &s->composed;
    if (!compose(&s->list, s->since, c)) return;
    s->partly = c->low < c->high;
    if (!s->partly) compose_end(s);
}

static void compare(uint32_t frame, uint32_t is) {
    const uint64_t n = atomic_fetch_add_explicit(&checked, 1, memory_order_relaxed) + 1;
    if (frame == is) return;
    const uint64_t d = atomic_fetch_add_explicit(&differed, 1, memory_order_relaxed) + 1;
    if (d > 1 && d * PER_DIFFERENCE > n) atomic_store_explicit(&known, false, memory_order_relaxed);
}

static int ask(jvmtiEnv *env, JNIEnv *jni, int from, int most, struct site_frame *is) {
    jvmtiFrameInfo fr[SITES_STACK];
    jint n = 0;
    if ((*env)->GetStackTrace(env, NULL, from, most, fr, &n) != JVMTI_ERROR_NONE) n = 0;
    for (jint i = 0; i < n; i++)
        is[i] = (struct site_frame){sites_method(env, jni, fr[i].method), (int32_t)fr[i].location};
    return n;
}

uint32_t stacks_read(jvmtiEnv *env, JNIEnv *jni, struct stack_found *s, bool check) {
    struct site_frame is[SITES_STACK];
    if (s->keyed && s->partly) {
        struct composed *c = &s->composed;
        const int some = ask(env, jni, c->low, c->high - c->low, is);
        if (compose_complete(&s->list, s->since, c, is, some)) compose_end(s);
        if (s->frame && !check) return s->frame;
    }
    const int n = ask(env, jni, 0, opt.stack, is);
    const uint32_t frame = stack_id(is, n);
    if (s->keyed && n) compose_learn(&s->list, s->since, is, n);
    // What is cut because a table is full would not be found again when there is room.
    if (!s->keyed || !frame || sites_are_full()) return frame;
    if (s->frame) compare(s->frame, frame);
    if (s->frame != frame) keep(&s->key, frame);
    return frame;
}

void stacks_report(void) {
    compose_report();
    if (said || !places || atomic_load_explicit(&known, memory_order_relaxed)) return;
    said = true;
    log_line("sampled stacks: %llu of %llu that were compared differed from the JVM's; it is asked for all from now on",
             (unsigned long long)differed, (unsigned long long)checked);
}

void stacks_report_end(void) {
    if (opt.ask != 2) return;
    compose_report_end();
    log_line("sampled stacks: %llu known, %llu new, %llu not read here; compared %llu, differed %llu",
             (unsigned long long)found, (unsigned long long)missed, (unsigned long long)unkeyed,
             (unsigned long long)checked, (unsigned long long)differed);
}
