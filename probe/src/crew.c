//go:build ignore

// crew.c: crew.h. The VM thread goes up from the first range, the crew down from the last one. Who has a range is in
// its state: FREE -> MAIN or CREW; CREW -> DONE by the crew, or MAIN by the VM thread, which does not wait. One atomic
// exchange decides.
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

enum { FREE, MAIN, CREW, DONE };
static struct mate mates[POOL_MOST];
enum { BUFFER = 16 << 20, KEPT = 1 << 20, TABLE = HOTS * sizeof(struct hot) };

// Of the job that is open. Written by the VM thread while all of the crew sleep.
static struct unit *units;
static uint32_t nunits, most_units, taken; // taken: by crew_took or crew_walked
static _Atomic int64_t top;                // the crew takes the range below it
static const struct heapmap *after;        // with MOVES: the pause

// A test's (option crew): how many ranges were used, and how many were not what the VM thread would have written.
static PER_RECORDING uint64_t used_units, own_units, differ;
// With TEST_TURNS: the shortest listing without a crew and with one, ns.
static PER_RECORDING uint64_t began, shortest[2] = {UINT64_MAX, UINT64_MAX};
static PER_RECORDING bool with;
// With TEST_EDEN: what walks of eden took without a crew and with one, ns, and of how many bytes.
static PER_RECORDING uint64_t eden_ns[2], eden_bytes[2], walked_bytes;

enum { TEST_COMPARE = 2, TEST_FAULT, TEST_LATE, TEST_STRAGGLE, TEST_HANG, TEST_DIE, TEST_TURNS, TEST_EDEN };

// ---- the crew's side -----------------------------------------------------------------------------
static void test_at_work(uint64_t bad) {
    if (opt.crew == TEST_FAULT) (void)rd64((void *)(uintptr_t)bad);
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
            if (!pool_works(job) && opt.crew != TEST_STRAGGLE) return false;
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

static uint64_t most_of(uint64_t now, uint64_t before) {
    enum { PAGE = 4096 };
    now = (now + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    before -= (before >> 3) & ~(uint64_t)(PAGE - 1);
    return now > before ? now : before;
}

static void work(unsigned who) {
    const uint32_t job = atomic_load(&pool_job);
    struct mate *m = &mates[who];
    if (!job) return;
    m->used = 0, m->most = BUFFER;
    memset(m->hots, 0, TABLE); // classes may have gone since the last job
    memset(m->counts, 0, COUNTS * sizeof *m->counts);
    m->ntouched = 0;
    const bool moves = nunits && units[0].how == MOVES;
    for (int64_t i; pool_works(job) && (i = atomic_fetch_sub(&top, 1) - 1) >= 0;) {
        struct unit *u = &units[i];
        uint32_t none = FREE;
        if (!atomic_compare_exchange_strong(&u->state, &none, CREW)) return; // the VM thread has all that is below
        if (opt.crew > TEST_COMPARE) test_at_work(u->lo & 0xff8);
#define ANY(lay) list_unit(lay, ALL, m, u, job)
#define KNOWN(lay) list_unit(lay, GRAVES, m, u, job)
#define ASKED(lay) list_unit(lay, MARKS, m, u, job)
        (void)(u->how == MOVES    ? crewmoves_walk(m, u, after, job)
               : u->how == MARKS  ? FOR_LAYOUT(ASKED)
               : u->how == GRAVES ? FOR_LAYOUT(KNOWN)
                                  : FOR_LAYOUT(ANY));
#undef ANY
#undef KNOWN
#undef ASKED
    }
    if (!moves) return;
    m->low = most_of(m->used, m->low);
    m->high = most_of(BUFFER - m->most, m->high);
}

// Between jobs: what a large listing took is given back, with what a range that was not finished and graves have. Eden
// is walked in each pause, where new pages would take as long as the walk: what it needed of late stays.
static void rest(unsigned who) {
    struct mate *m = &mates[who];
    uint64_t low = m->low > KEPT ? m->low : KEPT;
    if (low + m->high < BUFFER) os_give_back(m->buffer + low, BUFFER - low - m->high);
    m->used = 0;
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

// A thread that wakes up takes 50 to 100 us to do so, and what it wrote is copied: below some 2 ms that is no gain.
enum { WORTH = 16 << 20 }; // bytes

bool crew_call(uint64_t bytes) {
    nunits = taken = 0;
    cmp.u = NULL;
    began = bytes >= 8 * (uint64_t)WORTH && opt.crew == TEST_TURNS ? now_ns() : 0;
    if (began && (with = !with)) return false;
    return (bytes >= WORTH || opt.crew >= TEST_COMPARE) && pool_ready() && units;
}

static void add(uint64_t lo, uint64_t hi, uint32_t how) {
    if (lo == hi || nunits == most_units) return;
    struct unit *u = &units[nunits++];
    u->lo = lo, u->hi = hi, u->seen = lo, u->bits = NULL;
    u->how = how;
    if (u->how == MARKS) u->bits = marks_of(lo, hi, &u->seen);
    atomic_store_explicit(&u->state, FREE, memory_order_relaxed);
}

void crew_add(uint64_t lo, uint64_t hi) { add(lo, hi, graves_ask(lo) ? MARKS : graves_at(lo) ? GRAVES : ALL); }

bool crew_add_eden(void *unused, uint64_t lo, uint64_t hi) {
    (void)unused;
    add(lo, hi, MOVES);
    return true;
}

// Shorter walks than those of listings are worth it, since no other work needs the memory meanwhile.
enum { WORTH_EDEN = 8 << 20 }; // bytes
bool crew_call_eden(uint64_t bytes, const struct heapmap *finish) {
    nunits = taken = 0;
    cmp.u = NULL;
    began = 0;
    after = finish;
    walked_bytes = bytes;
    if (bytes < WORTH_EDEN && (opt.crew < TEST_COMPARE || opt.crew == TEST_EDEN)) return false;
    if (opt.crew == TEST_EDEN) began = now_ns();
    if (began && (with = !with)) return false;
    return pool_ready() && units;
}

void crew_start(void) {
    atomic_store_explicit(&top, nunits, memory_order_relaxed);
    if (nunits > 1) pool_open();
}

void crew_stop(void) {
    compare();
    pool_close();
    uint64_t took = began ? now_ns() - began : 0;
    if (opt.crew == TEST_EDEN && began)
        eden_ns[with] += took, eden_bytes[with] += walked_bytes;
    else if (began && took < shortest[with])
        shortest[with] = took;
    nunits = 0;
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

bool crew_took(struct walker *w, uint64_t lo, uint64_t hi, uint64_t *objects, uint64_t *bytes) {
    compare();
    uint32_t was;
    struct unit *u = take(lo, hi, &was);
    if (!u) return false;
    if (was == DONE && opt.crew == TEST_COMPARE) {
        cmp.u = u, cmp.e = w->e, cmp.from = w->e->p;
        cmp.sum[0] = objects, cmp.sum[1] = bytes;
        cmp.was[0] = *objects, cmp.was[1] = *bytes;
        return used_units++, false;
    }
    if (was != DONE || !adopt(w, u)) return own_units++, false;
    used_units++;
    *objects += u->objects;
    *bytes += u->bytes;
    return true;
}

// ---- begin and end -------------------------------------------------------------------------------
static bool get_memory(unsigned n) {
    most_units = heapmap()->areas();
    if (most_units < STARTS + 1) most_units = STARTS + 1; // eden in parts
    units = os_sparse(most_units * sizeof *units);
    bool ok = units;
    for (unsigned i = 0; i < n; i++) {
        mates[i].buffer = os_sparse(BUFFER);
        mates[i].hots = os_memory(TABLE);
        mates[i].counts = os_memory(COUNTS * (sizeof(struct count) + sizeof(uint32_t)));
        mates[i].touched = (uint32_t *)(void *)(mates[i].counts + COUNTS);
        ok = ok && mates[i].buffer && mates[i].hots && mates[i].counts;
    }
    return ok;
}

static void give_memory_back(void) {
    for (unsigned i = 0; i < POOL_MOST; i++) {
        if (mates[i].buffer) os_release(mates[i].buffer, BUFFER);
        if (mates[i].hots) os_release(mates[i].hots, TABLE);
        if (mates[i].counts) os_release(mates[i].counts, COUNTS * (sizeof(struct count) + sizeof(uint32_t)));
        mates[i] = (struct mate){.buffer = NULL};
    }
    if (units) os_release(units, most_units * sizeof *units);
    units = NULL;
}

void crew_begin(bool full) {
    static PER_RECORDING bool tried;
    if (tried || !(full || vm_has_regions())) return; // nothing else of Serial and Parallel has parts
    tried = true;
    unsigned n = os_cpus();
    n = n > POOL_MOST ? POOL_MOST : n ? n - 1 : 0;
    if (!n && opt.crew > 1) n = 1;
    if (units || !opt.crew || !n || guard_without_handler) return;
    if (!get_memory(n) || !pool_begin(n, work, rest)) give_memory_back();
}

static double eden_ms(int i) { return (double)eden_ns[i] / 1e6 / ((double)(eden_bytes[i] | 1) / (1 << 20)); }

bool crew_is_there(void) { return units; }

void crew_report(void) {
    if (opt.crew > 1 && units)
        log_line("walks: %llu ranges by helper threads, %llu by the VM thread, %llu differ; shortest: %llu us, alone "
                 "%llu us",
                 (unsigned long long)used_units, (unsigned long long)own_units, (unsigned long long)differ,
                 (unsigned long long)shortest[0] / 1000, (unsigned long long)shortest[1] / 1000);
    if (opt.crew == TEST_EDEN)
        log_line("walks of eden: %.2f ms a MiB, alone %.2f", eden_ms(0), eden_ms(1));
}

void crew_end(void) {
    crew_report();
    if (!pool_end()) return; // one of the crew has not ended: what it may read stays
    guard_put_back();
    give_memory_back();
}
