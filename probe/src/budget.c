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
static PER_RECORDING uint64_t list_size;              // bytes that the last one wrote per 16 KiB; 0: there was none
static PER_RECORDING bool too_long;
enum { RETRY_SOON = 2, RETRY_LATE = 600 }; // s
static PER_RECORDING uint64_t retry_at, retry_after = RETRY_SOON * 1000000000ull;
enum { BUDGET_SPAN = 10 }; // s for which a budget is
enum { WHOLE_NS = 250000000 }; // what a listing may take that cannot be spread over pauses

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

// After a while a listing is tried again, if the first guess allows it: the last one may have taken long for another
// reason (the thread was preempted). After each try the wait is longer.
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
        too_long = ns > budget_whole() / 4 * 3;
    } else if (due && opt.max_sync && ns > budget_whole()) {
        too_long = true;
        retry_at = now + retry_after;
    }
    atomic_store_explicit(ring32(HC_RING_OFF_SYNC_TOO_LONG), too_long, memory_order_relaxed);
    return too_long;
}

uint64_t budget_guess(uint64_t bytes) { return (bytes >> 10) * list_rate; }

uint64_t budget_listing(uint64_t bytes) {
    uint64_t ns = budget_guess(bytes);
    atomic_store_explicit(ring64(HC_RING_OFF_SYNC_PREDICTED), ns, memory_order_relaxed);
    too_long = false;
    atomic_store_explicit(ring32(HC_RING_OFF_SYNC_TOO_LONG), 0, memory_order_relaxed);
    return ns;
}

static void learn_size(uint64_t written, uint64_t bytes) {
    if (bytes >= 1 << 20) list_size = written / ((bytes >> 14) + 1) + 1;
}
bool budget_fits(uint64_t bytes, uint64_t room) { return (bytes >> 14) * list_size <= room; }

void budget_sliced(uint64_t cpu, uint64_t bytes, uint64_t written) {
    if (bytes >= 1 << 20) list_rate = cpu / ((bytes >> 10) + 1);
    learn_size(written, bytes);
}

uint64_t budget_slice(uint64_t pause_ns) {
    if (opt.slice) return opt.slice;
    return opt.max_sync && opt.max_sync < pause_ns / 5 ? pause_ns / 5 : opt.max_sync;
}

uint64_t budget_whole(void) { return opt.max_sync && opt.max_sync < WHOLE_NS ? WHOLE_NS : opt.max_sync; }

// An aborted listing counts with its wall time, whatever took it. So it is not tried again in the very next pause.
void budget_listed(const struct listing_cost *c) {
    uint64_t rate = c->cpu / ((c->bytes >> 10) + 1);
    learn_size(c->written, c->bytes);
    if (c->until && c->over && c->ended > c->until && !c->sooner) {
        list_rate = (c->ended - c->began) / ((c->bytes >> 10) + 1);
        if (c->bytes < 1 << 18 || (c->total >> 10) * rate > budget_whole() / 4 * 3)
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
    // The last walk may have taken long for another reason: lower the prediction, so that it is tried again.
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

uint64_t budget_expect(uint64_t bytes) {
    uint64_t ns = (bytes >> 10) * list_rate;
    return ns / (cpu_sum / 1000 + 1) * (wall_sum / 1000 + 1);
}
