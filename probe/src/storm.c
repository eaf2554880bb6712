//go:build ignore

// storm.c: storm.h.
#include "storm.h"

#include "budget.h"
#include "heapcam_abi.h"
#include "options.h"
#include "os.h"
#include "ramp.h"
#include "ring.h"

// What the pauses of the last ten seconds took, by tenths of a second, and what sampling took beside them.
enum { STORM_STEP = 100000000, STORM_STEPS = 100, STORM_LEAST = 3 };
#define STORM_SPAN ((uint64_t)STORM_STEPS * STORM_STEP)
static PER_RECORDING uint64_t spent[STORM_STEPS], spent_sum, spent_at; // spent_at: the newest step
static PER_RECORDING uint64_t sampled;                                // SAMPLE_NS as counted last
static PER_RECORDING uint64_t full_at[STORM_LEAST], full_n, left_out_at, listed_at;
static PER_RECORDING uint64_t storm_began_n, listed_n; // full_n when the storm began, and at the newest listing

// Full collections in a row that came while a listing was due or under way. After so many one is made in one piece.
enum { UNLISTED_MOST = 2 };
static PER_RECORDING uint32_t unlisted;

// When a listing was tried last though the budget was spent, and when that had to end.
static PER_RECORDING uint64_t rare_at, rare_until;

static PER_RECORDING _Atomic uint64_t stopped; // of storm_stopped, what no pause has counted

// Forgets what was spent more than a span ago.
static void forget_spent(uint64_t now) {
    uint64_t step = now / STORM_STEP;
    if (step > spent_at + STORM_STEPS) spent_at = step - STORM_STEPS;
    for (; spent_at < step; spent_at++) {
        uint64_t *s = &spent[(spent_at + 1) % STORM_STEPS];
        spent_sum -= *s;
        *s = 0;
    }
}

// When the storm of now ends, if nothing more comes; before that: there is none.
static uint64_t storm_until(void) {
    uint64_t first = full_at[full_n % STORM_LEAST]; // the oldest of them
    uint64_t until = full_n >= STORM_LEAST ? first + STORM_SPAN : 0;
    return left_out_at && left_out_at + STORM_SPAN > until ? left_out_at + STORM_SPAN : until;
}

void storm_full_collection(uint64_t now, bool due) {
    if (now >= storm_until()) storm_began_n = full_n;
    full_at[full_n++ % STORM_LEAST] = now;
    unlisted = due ? unlisted + 1 : 0;
}

bool storm_now(uint64_t now) { return opt.storm && now < storm_until(); }
void storm_left_out(uint64_t now) { left_out_at = now; }

// Tells the agent of the storm, too.
void storm_spent(uint64_t now, uint64_t ns, bool with_listing) {
    uint64_t all = atomic_load_explicit(ring64(HC_RING_OFF_SAMPLE_NS), memory_order_relaxed);
    forget_spent(now);
    ns += atomic_exchange(&stopped, 0);
    if (all > sampled) ns += all - sampled;
    sampled = all;
    spent[spent_at % STORM_STEPS] += ns;
    spent_sum += ns;
    if (with_listing) listed_at = now, listed_n = full_n;
    if (storm_now(now)) atomic_store_explicit(ring64(HC_RING_OFF_STORM), storm_until(), memory_order_relaxed);
}

static uint64_t storm_most(void) { return STORM_SPAN / 1000 * opt.storm; } // of a span, ns

// Half of a span's budget may be spent at once. From there on each listing waits for fifty times what it takes, so that
// those of a long storm come evenly; a tenth of the budget is kept for what a guess is wrong by. Most collections of a
// storm are without one for another reason, too: the JVM counts a listing as time of the program. It gives up, with an
// OutOfMemoryError, if the program had less than 2 % of the time in five collections in a row (GCTimeLimit; G1 from
// JDK 25 on looks at the last ten pauses). With listings more often it would never come to that, and collect on.
enum { STORM_WAIT = 50, STORM_EVERY = 40 };
static bool storm_allows(uint64_t now, uint64_t ns) {
    forget_spent(now);
    uint64_t most = storm_most(), sum = spent_sum + atomic_load(&stopped) + ns;
    return sum <= most / 2 || (sum <= most / 10 * 9 && now - listed_at >= STORM_WAIT * ns);
}

// However much all else takes, as samples at short intervals may: without any listing nothing of a storm could be read,
// and no file could begin. It adds a 200th of the time.
enum { STORM_RARELY = 200 };
static bool rarely(uint64_t now, uint64_t ns) {
    const uint64_t last = listed_at > rare_at ? listed_at : rare_at;
    return ns && ns <= storm_most() / 10 && now - last >= STORM_RARELY * ns;
}

bool storm_has_room(uint64_t now, uint64_t ns) { return !storm_now(now) || storm_allows(now, ns); }
void storm_stopped(uint64_t ns) { atomic_fetch_add(&stopped, ns); }

uint64_t storm_ends(uint64_t now) {
    if (!opt.storm) return 0;
    forget_spent(now);
    uint64_t most = storm_most(), until = now + (most > spent_sum ? most - spent_sum : 1);
    return until < rare_until ? rare_until : until;
}

bool storm_in_one_piece(const struct storm_pause *p, uint64_t ns) {
    if (opt.max_sync && ns > budget_whole()) return false;
    return p->now < storm_until() || (unlisted >= UNLISTED_MOST && ns <= p->now - p->start);
}

// What the listing that is due in a pause, or its part, is expected to take.
static uint64_t expected(const struct storm_pause *p) {
    uint64_t ns = budget_expect(p->list_bytes);
    if (!ramp_allowed() || storm_in_one_piece(p, ns)) return ns;
    uint64_t part = budget_slice(p->now - p->start);
    return part && part < ns ? part : ns;
}

bool storm_leaves_out(const struct storm_pause *p) {
    bool soon = p->due && full_n - listed_n < STORM_EVERY && full_n - storm_began_n >= STORM_EVERY;
    if (!storm_now(p->now)) return false;
    const uint64_t ns = p->due ? expected(p) : 0;
    if (!soon && storm_allows(p->now, ns)) return false;
    if (!soon && rarely(p->now, ns)) {
        rare_at = p->now, rare_until = p->now + storm_most() / 5;
        return false;
    }
    storm_left_out(p->now);
    return true;
}
