//go:build ignore

// budget.c: budget.h.
#include "budget.h"

#include "options.h"
#include "os.h"
#include "ring.h"

// What the walks of a pause take is guessed from what the last ones took. The first guesses are right for objects of 40
// bytes.
static PER_RECORDING uint64_t eden_rate = 150, rest_rate = 400; // ns of CPU time per KiB
// Where others want the CPU too a pause takes longer than that: what pauses took of late by the clock, and of CPU time.
static PER_RECORDING uint64_t wall_sum = 1000000, cpu_sum = 1000000;
// What a listing takes is guessed from what the last one took. The first guess, 0.05 ns a byte, is right for objects of
// 150 bytes.
enum { FIRST_RATE = 50 };
static PER_RECORDING uint64_t list_rate = FIRST_RATE; // ns per KiB
static PER_RECORDING bool too_long;
enum { RETRY_SOON = 2, RETRY_LATE = 600 }; // s
static PER_RECORDING uint64_t retry_at, retry_after = RETRY_SOON * 1000000000ull;
enum { BUDGET_SPAN = 10 }; // s for which a budget is
enum { SLICE_NS = 10000000 }; // what any pause may list, and longer ones a fifth of what they took

static void learn(uint64_t *rate, uint64_t ns, uint64_t bytes) {
    uint64_t now = ns / ((bytes >> 10) + 1);
    if (bytes >= 1 << 20) *rate = now > *rate ? now : *rate - (*rate - now) / 4;
}
void budget_learn_eden(uint64_t ns, uint64_t bytes) { learn(&eden_rate, ns, bytes); }
void budget_learn_rest(uint64_t ns, uint64_t bytes) { learn(&rest_rate, ns, bytes); }

void budget_learn_finish(uint64_t wall, uint64_t cpu) {
    wall_sum += wall, cpu_sum += cpu;
    if (cpu_sum > 20000000) wall_sum /= 2, cpu_sum /= 2;
    if (wall_sum < cpu_sum) wall_sum = cpu_sum;
}

bool budget_too_long(void) { return too_long; }

// It is dared again after a while if the first guess allows it: soon if the last one took long for a cause of its own
// (the thread was preempted), each time later.
bool budget_listing_too_long(bool due, uint64_t bytes) {
    uint64_t now = now_ns();
    if (too_long && now > retry_at && list_rate > FIRST_RATE) {
        list_rate = FIRST_RATE;
        retry_after = retry_after < RETRY_LATE * 1000000000ull ? 2 * retry_after : retry_after;
        retry_at = now + retry_after;
    }
    uint64_t ns = (bytes >> 10) * list_rate;
    atomic_store_explicit(ring64(HC_RING_OFF_SYNC_PREDICTED), ns, memory_order_relaxed);
    if (too_long) {
        too_long = ns > opt.max_sync / 4 * 3;
    } else if (due && opt.max_sync && ns > opt.max_sync) {
        too_long = true;
        retry_at = now + retry_after;
    }
    atomic_store_explicit(ring32(HC_RING_OFF_SYNC_TOO_LONG), too_long, memory_order_relaxed);
    return too_long;
}

uint64_t budget_listing(uint64_t bytes) {
    uint64_t ns = (bytes >> 10) * list_rate;
    atomic_store_explicit(ring64(HC_RING_OFF_SYNC_PREDICTED), ns, memory_order_relaxed);
    too_long = false;
    atomic_store_explicit(ring32(HC_RING_OFF_SYNC_TOO_LONG), 0, memory_order_relaxed);
    return ns;
}

void budget_sliced(uint64_t cpu, uint64_t bytes) {
    if (bytes >= 1 << 20) list_rate = cpu / ((bytes >> 10) + 1);
}

uint64_t budget_slice(uint64_t pause_ns) {
    uint64_t ns = pause_ns / 5 > SLICE_NS ? pause_ns / 5 : SLICE_NS;
    return opt.max_sync < ns ? opt.max_sync : ns;
}

// An aborted listing counts what it took by the clock, whatever took it: it is not dared again at the very next
// pause.
void budget_listed(const struct listing_cost *c) {
    uint64_t rate = c->cpu / ((c->bytes >> 10) + 1);
    if (c->until && c->over && c->ended > c->until && !c->sooner) {
        list_rate = (c->ended - c->began) / ((c->bytes >> 10) + 1);
        if (c->bytes < 1 << 18 || (c->total >> 10) * rate > opt.max_sync / 4 * 3)
            retry_after = RETRY_LATE * 1000000000ull;
    } else if (c->bytes >= 1 << 20) {
        list_rate = rate;
        retry_after = RETRY_SOON * 1000000000ull;
    }
}

void budget_note_walk(struct work walk) {
    uint64_t rest = (walk.rest >> 10) * rest_rate, eden = (walk.eden >> 10) * eden_rate;
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_WALK_SURVIVORS), rest, memory_order_relaxed);
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_WALK_FULL), rest + eden, memory_order_relaxed);
}

// To go up, the listing that it costs and one more epoch like this must fit, else it would be for nothing: both
// together where the next one comes within the stretch for which the budget is, else each.
uint32_t budget_depth(const struct prospect *p) {
    uint64_t eden = (p->walk.eden >> 10) * eden_rate, rest = (p->walk.rest >> 10) * rest_rate;
    uint64_t list = (p->list_bytes >> 10) * list_rate;
    uint64_t may = p->may / (wall_sum / 1000 + 1) * (cpu_sum / 1000 + 1);
    uint32_t depth = p->depth;
    for (; depth > HC_DEPTH_SAMPLES; depth--) {
        uint64_t walk = rest + (depth == HC_DEPTH_FULL ? eden : 0);
        uint64_t need = p->have_last ? walk : 0; // without it, only a listing gives it
        if (depth > p->last_depth) {
            need += list;
            if (p->since_last_finish < BUDGET_SPAN * 1000000000ull) need += walk;
            if (need < walk) need = walk;
        }
        if (need <= may) break;
    }
    // A walk that took long for a cause of its own is dared again.
    if (depth < p->depth) eden_rate -= eden_rate / 4, rest_rate -= rest_rate / 4;
    return depth;
}

// What sampling took since the agent looked counts, as long as there is an agent.
uint64_t budget_may_take(uint64_t start_cost) {
    uint64_t may = atomic_load_explicit(ring64(HC_RING_OFF_EPOCH_MAX), memory_order_relaxed);
    uint64_t most = atomic_load_explicit(ring64(HC_RING_OFF_COST_MAX), memory_order_relaxed);
    uint64_t beat = atomic_load_explicit(ring64(HC_RING_OFF_AGENT_HEARTBEAT), memory_order_relaxed);
    if (!most || now_ns() > beat + (uint64_t)HC_RING_AGENT_STALE_NS) return may;
    uint64_t spent = atomic_load_explicit(ring64(HC_RING_OFF_PROBE_NS), memory_order_relaxed) +
                     atomic_load_explicit(ring64(HC_RING_OFF_SAMPLE_NS), memory_order_relaxed) + start_cost;
    uint64_t left = most > spent ? most - spent : 1;
    return may && may < left ? may : left;
}

// ---- storms --------------------------------------------------------------------------------------
// What the pauses of the last ten seconds took, by tenths of a second, and what sampling took beside them.
enum { STORM_STEP = 100000000, STORM_STEPS = 100, STORM_LEAST = 3 };
#define STORM_SPAN ((uint64_t)STORM_STEPS * STORM_STEP)
static PER_RECORDING uint64_t spent[STORM_STEPS], spent_sum, spent_at; // spent_at: the newest step
static PER_RECORDING uint64_t sampled;                                // SAMPLE_NS as counted last
static PER_RECORDING uint64_t full_at[STORM_LEAST], full_n, left_out_at, listed_at;

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

void budget_spent(uint64_t now, uint64_t ns, bool with_listing) {
    uint64_t all = atomic_load_explicit(ring64(HC_RING_OFF_SAMPLE_NS), memory_order_relaxed);
    forget_spent(now);
    if (all > sampled) ns += all - sampled;
    sampled = all;
    spent[spent_at % STORM_STEPS] += ns;
    spent_sum += ns;
    if (with_listing) listed_at = now;
}

void budget_full_collection(uint64_t now) { full_at[full_n++ % STORM_LEAST] = now; }

// When the storm of now ends, if nothing more comes; before that: there is none.
static uint64_t storm_until(void) {
    uint64_t first = full_at[full_n % STORM_LEAST]; // the oldest of them
    uint64_t until = full_n >= STORM_LEAST ? first + STORM_SPAN : 0;
    return left_out_at && left_out_at + STORM_SPAN > until ? left_out_at + STORM_SPAN : until;
}

bool budget_storm(uint64_t now) { return now < storm_until(); }
void budget_left_out(uint64_t now) { left_out_at = now; }

void budget_tell(uint64_t now) {
    if (opt.storm && budget_storm(now))
        atomic_store_explicit(ring64(HC_RING_OFF_STORM), storm_until(), memory_order_relaxed);
}

static uint64_t storm_most(void) { return STORM_SPAN / 1000 * opt.storm; } // of a span, ns

uint64_t budget_expect(uint64_t bytes) {
    uint64_t ns = (bytes >> 10) * list_rate;
    return ns / (cpu_sum / 1000 + 1) * (wall_sum / 1000 + 1);
}

// Half of a span's budget may be spent at once. From there on each listing waits for fifty times what it takes, so that
// those of a long storm come evenly; a tenth of the budget is kept for what a guess is wrong by.
enum { STORM_WAIT = 50 };
bool budget_allows(uint64_t now, uint64_t ns) {
    if (!opt.storm) return true;
    forget_spent(now);
    uint64_t most = storm_most(), sum = spent_sum + ns;
    return sum <= most / 2 || (sum <= most / 10 * 9 && now - listed_at >= STORM_WAIT * ns);
}

uint64_t budget_storm_ends(uint64_t now) {
    if (!opt.storm) return 0;
    forget_spent(now);
    uint64_t most = storm_most();
    return now + (most > spent_sum ? most - spent_sum : 1);
}
