//go:build ignore

// crew.c: crew.h. The VM thread goes up from the first range, the crew down from the last one; in a slice both go up.
// Who has a range is in its state: FREE -> MAIN or CREW; CREW -> DONE, or FREE again, by the crew, or MAIN by the VM
// thread, which does not wait. One atomic exchange decides.
#include "crew.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "crewmates.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "log.h"
#include "marks.h"
#include "options.h"
#include "os.h"
#include "pool.h"
#include "recording.h"
#include "ring.h"

static struct mate mates[POOL_MOST];
enum { BUFFER = 16 << 20, KEPT = 1 << 20, TABLE = HOTS * sizeof(struct hot),
       ROWS_BYTES = ROWS * (sizeof(struct crow) + sizeof(uint32_t)) };

// Of the job that is open: one a pause, in phases. Ranges are added behind those of earlier phases, which one of the
// crew may still be at.
static struct unit *units;
static uint32_t nunits, most_units, first, taken; // first: of this phase; taken: by crew_took or crew_walked
static _Atomic uint64_t window;                   // what the crew may take: WINDOW
static uint64_t nphase;
static const struct heapmap *after; // the pause
static PER_RECORDING _Atomic uint64_t helped; // CPU time of the crew, ns
static PER_RECORDING _Atomic bool upwards;        // from which end of it
#define WINDOW(no, lo, hi) ((no) << 48 | (uint64_t)(lo) << 24 | (hi))
enum { UNITS = (1 << 24) - 1 };

// A test's (option crew): how many ranges were used, and how many were not what the VM thread would have written.
static PER_RECORDING uint64_t used_units, own_units, differ;
// With TEST_TURNS: what each phase took with a crew and without one, ns, and of how many bytes.
static PER_RECORDING uint64_t began, phase_bytes, turn_ns[CREW_PHASES][2], turn_bytes[CREW_PHASES][2];
static PER_RECORDING bool without[CREW_PHASES];
static PER_RECORDING int what;

// ---- the crew's side -----------------------------------------------------------------------------
static void test_at_work(uint64_t bad, bool some) {
    if (opt.crew == TEST_FAULT || (opt.crew == TEST_SOME && some)) (void)rd64((void *)(uintptr_t)bad);
    if (opt.crew == TEST_LATE || opt.crew == TEST_STRAGGLE) os_sleep_us(30000);
    while (opt.crew == TEST_HANG) os_sleep_us(10000);
    if (opt.crew == TEST_DIE) pool_die();
}

bool crew_finished(struct unit *u) {
    uint32_t mine = CREW;
    return atomic_compare_exchange_strong(&u->state, &mine, DONE);
}

// Like list of walk_list.c. False: the VM thread has to do it.
HOT bool list_unit(int lay, int how, struct mate *m, struct unit *u, uint32_t job) {
    enum { LOOKS = 512 }; // objects between two looks at the job
    const uint64_t round = ~(vm.align - 1), hi = u->hi, seen = u->seen, *bits = u->bits;
    uint8_t *const begin = m->buffer + m->used, *p = begin;
    struct grave *const last = (struct grave *)(void *)(m->buffer + m->most), *g = last;
    struct hot spare;
    uint64_t a = u->lo, n = 0, dead = 0;
    uint32_t look = LOOKS;
    while (a < hi) {
        uint32_t len;
        uint64_t size;
        __builtin_prefetch((void *)(a + AHEAD));
        if (!LIKELY((uint8_t *)g - p > 2 * TOKEN + (int64_t)sizeof *g)) return false;
        if (!LIKELY(--look)) {
            if (!is_wanted(u, job) && opt.crew != TEST_STRAGGLE) return false;
            if (m->until && now_ns() > m->until) return false;
            look = LOOKS;
        }
        if ((how == GRAVES && is_grave(a)) || (how == MARKS && a < seen && !LIKELY(is_marked(bits, a)))) {
            uint64_t next = how == GRAVES ? a + 8 * grave_words(a, hi) : marked_from(bits, a, seen);
            if (how == MARKS) *--g = (struct grave){a, next};
            *p++ = HC_LIST_SKIP;
            p = leb_long(p, (next - a) >> 3);
            dead += next - a;
            a = next;
            if (a == hi) break;
        }
        const struct hot *o = object_in(m->hots, lay, a, rd64((void *)a), round, &spare, &len, &size);
        if (!LIKELY(o && size <= hi - a)) return false;
        p = put4(p, o->list, o->nlist);
        p = put_len(p, o, len);
        a += size;
        n++;
    }
    *p++ = HC_LIST_END;
    if (how == MARKS && marks_clean && seen == hi && marks_in(bits, u->lo, hi) != n) return false;
    u->tokens = begin, u->n = (uint64_t)(p - begin);
    u->graves = g, u->ngraves = (uint64_t)(last - g);
    u->objects = n, u->bytes = hi - u->lo - dead;
    if (!crew_finished(u)) return false;
    m->used = (uint64_t)(p - m->buffer);
    m->most = (uint64_t)((uint8_t *)g - m->buffer);
    return true;
}

// Takes a range: from the end of the phase downwards, or from its begin upwards.
static struct unit *claim(struct mate *m) {
    for (uint64_t w = atomic_load(&window); (w & UNITS) > (w >> 24 & UNITS);) {
        const bool up = atomic_load_explicit(&upwards, memory_order_relaxed);
        if (!atomic_compare_exchange_weak(&window, &w, up ? w + (1 << 24) : w - 1)) continue;
        if (w >> 48 != m->phase) m->phase = w >> 48, m->used = 0, m->most = BUFFER; // the VM thread has read the rest
        struct unit *u = &units[up ? w >> 24 & UNITS : (w & UNITS) - 1];
        uint32_t none = FREE;
        if (atomic_compare_exchange_strong(&u->state, &none, CREW)) return u;
        w = atomic_load(&window);
    }
    return NULL;
}

static void walk(struct mate *m, struct unit *u, uint32_t job) {
#define ANY(lay) list_unit(lay, ALL, m, u, job)
#define KNOWN(lay) list_unit(lay, GRAVES, m, u, job)
#define ASKED(lay) list_unit(lay, MARKS, m, u, job)
    (void)(u->how == MOVES    ? crewmoves_walk(m, u, after, job)
           : u->how == BIRTHS ? crewmoves_look(m, u, job)
           : u->how == MARKS  ? FOR_LAYOUT(ASKED)
           : u->how == GRAVES ? FOR_LAYOUT(KNOWN)
                              : FOR_LAYOUT(ANY));
#undef ANY
#undef KNOWN
#undef ASKED
}

// A range that was not finished: the VM thread need not think that somebody is at it.
static void leave_unit(struct unit *u) {
    uint32_t mine = CREW;
    (void)atomic_compare_exchange_strong(&u->state, &mine, FREE);
}

static uint64_t at_least(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Who has nothing to do looks for the next phase for a while: to fall asleep and wake up takes longer.
static void help(unsigned who) {
    enum { PAGE = 4096, IDLE = 100000 }; // ns
    const uint32_t job = atomic_load(&pool_job);
    struct mate *m = &mates[who];
    if (!job) return;
    if (m->job != job) { // else it comes back, and the VM thread may not yet have read what it did
        m->job = job;
        m->phase = UINT64_MAX;
        memset(m->hots, 0, TABLE); // classes may have gone since the last job
        m->low -= (m->low >> 6) & ~(uint64_t)(PAGE - 1);
        m->high -= (m->high >> 6) & ~(uint64_t)(PAGE - 1);
    }
    for (uint64_t idle = 0; pool_works(job);) {
        struct unit *u = claim(m);
        if (!u) {
            const uint64_t now = now_ns();
            if (!idle) idle = now;
            if (now - idle > IDLE) return;
            continue;
        }
        idle = 0;
        if (opt.crew > TEST_COMPARE && opt.crew != TEST_USE) test_at_work(u->lo & 0xff8, (u - units) % 3 == 0);
        walk(m, u, job);
        leave_unit(u);
        if (u->how < MOVES && !atomic_load_explicit(&upwards, memory_order_relaxed)) continue;
        m->low = at_least(m->low, (m->used + PAGE - 1) & ~(uint64_t)(PAGE - 1));
        m->high = at_least(m->high, (BUFFER - m->most + PAGE - 1) & ~(uint64_t)(PAGE - 1));
    }
}

static void work(unsigned who) {
    const uint64_t begin = cpu_ns();
    help(who);
    atomic_fetch_add_explicit(&helped, cpu_ns() - begin, memory_order_relaxed);
}

// Between jobs: what a large listing took is given back, with what a range that was not finished and graves have. Other
// walks and slices are of each pause, and new pages would take as long as they do: what they needed of late stays.
static void rest(unsigned who) {
    const struct mate *m = &mates[who];
    const uint64_t low = at_least(m->low, KEPT);
    if (low + m->high < BUFFER) os_give_back(m->buffer + low, BUFFER - low - m->high);
}

// ---- the VM thread's side ------------------------------------------------------------------------
// A test's: what the VM thread has written instead of u.
static struct {
    const struct unit *u;
    const struct enc *e;
    const uint8_t *from;
    const uint64_t *sum[2];
    uint64_t was[2];
} cmp;

static void compare(void) {
    const struct unit *u = cmp.u;
    cmp.u = NULL;
    if (!u || cmp.e->over) return;
    const uint8_t *p = cmp.from;
    if (p == cmp.e->p) return; // time ended before it was written
    while (*p++ & 0x80) {} // how far away it begins
    uint64_t n = (uint64_t)(cmp.e->p - p); // a humongous object may have followed
    bool same = n >= u->n && !memcmp(p, u->tokens, u->n);
    if (n == u->n)
        same = same && *cmp.sum[0] - cmp.was[0] == u->objects && *cmp.sum[1] - cmp.was[1] == u->bytes;
    differ += !same;
}

// A thread that wakes up takes 50 to 100 us to do so, and what it wrote is copied: less is no gain. Bytes.
static const uint64_t worth[CREW_PHASES] = {[CREW_MOVES] = 3 << 20, [CREW_BIRTHS] = 6 << 20, [CREW_LIST] = 8 << 20};

bool crew_call(int of, uint64_t bytes, const struct heapmap *finish) {
    atomic_store_explicit(&upwards, false, memory_order_relaxed);
    const bool open = atomic_load(&pool_job); // for an earlier phase of this pause
    taken = first = nunits = open ? nunits : 0;
    cmp.u = NULL;
    began = 0;
    what = of, phase_bytes = bytes;
    const bool forced = opt.crew >= TEST_COMPARE && opt.crew != TEST_TURNS;
    if (!units || (bytes < worth[of] && !forced)) return false;
    if (opt.crew == TEST_TURNS) {
        began = now_ns();
        if ((without[of] = !without[of])) return false;
    }
    if (!open && !pool_ready()) return false;
    after = finish;
    return true;
}

static struct unit *add(uint64_t lo, uint64_t hi, uint32_t how) {
    if (lo == hi || nunits == most_units) return NULL;
    struct unit *u = &units[nunits++];
    u->lo = lo, u->hi = hi, u->seen = lo, u->bits = NULL;
    u->how = how;
    if (u->how == MARKS) u->bits = marks_of(lo, hi, &u->seen);
    atomic_store_explicit(&u->state, FREE, memory_order_relaxed);
    return u;
}

void crew_add(uint64_t lo, uint64_t hi) { (void)add(lo, hi, graves_ask(lo) ? MARKS : graves_at(lo) ? GRAVES : ALL); }

void crew_add_moves(uint64_t lo, uint64_t hi, int source, uint64_t uncounted) {
    struct unit *u = add(lo, hi, MOVES);
    if (u) u->source = (uint32_t)source, u->uncounted = uncounted;
}

void crew_add_births(uint64_t lo, uint64_t hi, bool young) {
    struct unit *u = add(lo, hi, BIRTHS);
    if (u) u->young = young;
}

void crew_start(void) {
    if (nunits - first < 2) return;
    atomic_store(&window, WINDOW(++nphase & 0xffff, first, nunits));
    if (atomic_load(&pool_job))
        pool_more();
    else
        pool_open();
}

void crew_stop(void) {
    compare();
    atomic_store(&window, 0);
    if (began) {
        turn_ns[what][without[what]] += now_ns() - began;
        turn_bytes[what][without[what]] += phase_bytes;
    }
    began = 0;
    taken = nunits;
    atomic_store_explicit(ring64(HC_RING_OFF_HELPERS_NS), atomic_load_explicit(&helped, memory_order_relaxed),
                          memory_order_relaxed);
}

bool crew_is_called(void) { return taken < nunits; }

static bool adopt(struct walker *w, const struct unit *u) {
    struct enc *e = w->e;
    if (e->over || (uint64_t)(e->end - e->p) < u->n + (uint64_t)2 * TOKEN || (list_until && now_ns() > list_until))
        return false; // the VM thread's walk says which
    put_s(e, (int64_t)(WORD(u->lo) - w->prev_end));
    memcpy(e->p, u->tokens, u->n);
    e->p += u->n;
    w->prev_end = WORD(u->hi);
    for (uint64_t i = 0; i < u->ngraves; i++) grave_dig(u->graves[i].lo, u->graves[i].hi);
    if (u->how == MARKS) graves_asked(u->lo);
    return true;
}

// The next range, if it is that one. *was: DONE, or the VM thread has it now.
static struct unit *take(uint64_t lo, uint64_t hi, uint32_t *was) {
    if (lo == hi || taken >= nunits) return NULL;
    struct unit *u = &units[taken];
    if (u->lo != lo || u->hi != hi) return NULL;
    taken++;
    *was = atomic_load_explicit(&u->state, memory_order_acquire);
    while (*was != DONE && !atomic_compare_exchange_weak(&u->state, was, MAIN)) {}
    return u;
}

const struct unit *crew_walked(uint64_t lo, uint64_t hi, bool *again) {
    uint32_t was;
    struct unit *u = take(lo, hi, &was);
    if (!u || was != DONE) return own_units += u != NULL, NULL;
    used_units++;
    *again = opt.crew == TEST_COMPARE;
    return u;
}

void crew_differs(bool yes) { differ += yes; }

static void to_compare(const struct walker *w, const struct unit *u, const uint64_t *objects, const uint64_t *bytes) {
    cmp.u = u, cmp.e = w->e, cmp.from = w->e->p;
    cmp.sum[0] = objects, cmp.sum[1] = bytes;
    cmp.was[0] = *objects, cmp.was[1] = *bytes;
}

bool crew_took(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes) {
    compare();
    uint32_t was;
    struct unit *u = take(lo, hi, &was);
    if (!u) return false;
    if (was == DONE && opt.crew == TEST_COMPARE) {
        to_compare(w, u, objects, bytes);
        return used_units++, false;
    }
    if (was != DONE || !adopt(w, u)) return own_units++, false;
    used_units++;
    *objects += u->objects;
    *bytes += u->bytes;
    return true;
}

// ---- a slice -------------------------------------------------------------------------------------
// The VM thread's, who is one of the crew while one of the others is at the range whose turn it is. What it has there
// is in the stream soon, so little memory is enough.
static PER_RECORDING struct mate own;

struct slicing {
    struct walker *w;
    uint64_t *objects, *bytes;
    bool *stopped;
    const struct unit *ahead; // the last one that the VM thread has listed before its turn
    uint32_t nahead;          // so many since there was a turn
    uint64_t slowest;         // ns that the VM thread took for one
};

static void note_pace(struct slicing *x, uint64_t since) { x->slowest = at_least(x->slowest, now_ns() - since); }

// False: it is better to take away the range whose turn it is.
static bool list_ahead(struct slicing *x) {
    enum { MOST = 3 };
    const uint64_t t = now_ns();
    if (x->nahead == MOST || (list_until && t + x->slowest > list_until)) return false;
    struct unit *u = claim(&own);
    if (!u) return false;
    walk(&own, u, atomic_load(&pool_job));
    leave_unit(u);
    x->ahead = u, x->nahead++;
    note_pace(x, t);
    return true;
}

// The range whose turn it is, of which *stopped may leave a part. What is done is only copied, if time has ended, too.
static uint64_t list_next(struct slicing *x, struct unit *u, bool done) {
    const uint64_t t = now_ns(), until = list_until;
    const bool again = done && opt.crew == TEST_COMPARE;
    const bool theirs = done && !(u->tokens >= own.buffer && u->tokens < own.buffer + KEPT);
    list_until = 0;
    const bool copied = done && !again && adopt(x->w, u);
    list_until = until;
    *(theirs && (copied || again) ? &used_units : &own_units) += 1;
    if (copied) {
        *x->objects += u->objects, *x->bytes += u->bytes;
        return u->hi;
    }
    if (again) to_compare(x->w, u, x->objects, x->bytes);
    const uint64_t stop = walk_list_part(x->w, u->lo, u->hi, x->objects, x->bytes, x->stopped);
    if (*x->stopped) cmp.u = NULL;
    compare();
    if (stop != u->hi && !*x->stopped && !x->w->e->over)
        unknown_class("a class word between two objects is unknown", stop);
    note_pace(x, t);
    return stop;
}

uint64_t crew_slice(struct walker *w, uint64_t at, uint64_t *objects, uint64_t *bytes, bool *stopped) {
    struct slicing x = {.w = w, .objects = objects, .bytes = bytes, .stopped = stopped};
    atomic_store_explicit(&upwards, true, memory_order_relaxed);
    crew_start();
    own.hots = hots, own.until = list_until, own.phase = nphase & 0xffff;
    for (; taken < nunits && !*stopped && !w->e->over; taken++, x.nahead = 0) {
        struct unit *u = &units[taken];
        uint32_t was = atomic_load_explicit(&u->state, memory_order_acquire);
        if (!x.ahead || u > x.ahead) own.used = 0, own.most = KEPT; // all of it is in the stream
        while (was == CREW && list_ahead(&x)) was = atomic_load_explicit(&u->state, memory_order_acquire);
        while (was != DONE && !atomic_compare_exchange_weak(&u->state, &was, MAIN)) {}
        at = list_next(&x, u, was == DONE);
    }
    return at;
}

void crew_has_listed(uint64_t bytes) { phase_bytes = bytes; }

// ---- begin and end -------------------------------------------------------------------------------
static bool get_memory(unsigned n) {
    most_units = 3 * (heapmap()->areas() + 2 * STARTS); // of three phases; without regions two spaces are cut at once
    if (most_units > UNITS) most_units = UNITS;
    units = os_sparse(most_units * sizeof *units);
    own.buffer = memory_sparse(KEPT);
    bool ok = units && own.buffer;
    for (unsigned i = 0; i < n; i++) {
        mates[i].buffer = os_sparse(BUFFER);
        mates[i].hots = os_memory(TABLE);
        mates[i].rows = os_memory(ROWS_BYTES);
        mates[i].touched = (uint32_t *)(void *)(mates[i].rows + ROWS);
        ok = ok && mates[i].buffer && mates[i].hots && mates[i].rows;
    }
    return ok;
}

static void give_memory_back(void) {
    for (unsigned i = 0; i < POOL_MOST; i++) {
        if (mates[i].buffer) os_release(mates[i].buffer, BUFFER);
        if (mates[i].hots) os_release(mates[i].hots, TABLE);
        if (mates[i].rows) os_release(mates[i].rows, ROWS_BYTES);
        mates[i] = (struct mate){.buffer = NULL};
    }
    if (units) os_release(units, most_units * sizeof *units);
    units = NULL;
}

void crew_begin(void) {
    unsigned n = os_cpus();
    n = n > POOL_MOST ? POOL_MOST : n ? n - 1 : 0;
    if (!n && opt.crew > 1) n = 1;
    if (units || !opt.crew || !n || guard_without_handler) return;
    if (!get_memory(n) || !pool_begin(n, work, rest)) give_memory_back();
}

bool crew_is_there(void) { return units; }

static double ms_a_mib(int of, bool alone) {
    return (double)turn_ns[of][alone] / 1e6 / ((double)(turn_bytes[of][alone] | 1) / (1 << 20));
}

void crew_report(void) {
    if (opt.crew < TEST_COMPARE || !units) return;
    log_line("walks: %llu ranges by helper threads, %llu by the VM thread, %llu differ",
             (unsigned long long)used_units, (unsigned long long)own_units, (unsigned long long)differ);
    if (opt.crew != TEST_TURNS) return;
    log_line("ms a MiB with helper threads and alone: moves %.3f %.3f, births %.3f %.3f, listings %.3f %.3f",
             ms_a_mib(CREW_MOVES, false), ms_a_mib(CREW_MOVES, true), ms_a_mib(CREW_BIRTHS, false),
             ms_a_mib(CREW_BIRTHS, true), ms_a_mib(CREW_LIST, false), ms_a_mib(CREW_LIST, true));
}

void crew_end(void) {
    crew_report();
    if (!pool_end()) return; // one of the crew has not ended: what it may read stays
    guard_put_back();
    give_memory_back();
}
