//go:build ignore

// depth.c: depth.h.
#include "depth.h"

#include "budget.h"
#include "options.h"
#include "os.h"
#include "retry.h"
#include "ring.h"

// where an epoch was cut, until the agent wants no more than that
static PER_RECORDING uint32_t depth_cap = HC_DEPTH_FULL;

uint32_t depth_now(void) { return *ring32(HC_RING_OFF_DEPTH_NOW); }

void depth_lower(void) {
    uint32_t wanted = atomic_load_explicit(ring32(HC_RING_OFF_DEPTH_WANTED), memory_order_relaxed);
    if (wanted >= HC_DEPTH_SAMPLES && wanted < depth_now())
        atomic_store_explicit(ring32(HC_RING_OFF_DEPTH_NOW), wanted, memory_order_relaxed);
}

void depth_set_next(bool cut, uint32_t cut_to) {
    uint32_t wanted = atomic_load_explicit(ring32(HC_RING_OFF_DEPTH_WANTED), memory_order_relaxed);
    if (wanted < HC_DEPTH_SAMPLES || wanted > HC_DEPTH_FULL) wanted = (uint32_t)opt.depth;
    if (cut)
        depth_cap = cut_to;
    else if (wanted <= depth_cap)
        depth_cap = HC_DEPTH_FULL; // the agent has taken note
    if (wanted > depth_cap) wanted = depth_cap;
    bool waits = retry_waits(); // counts: once an epoch
    if (budget_too_long() || waits) wanted = HC_DEPTH_SAMPLES;
    atomic_store_explicit(ring32(HC_RING_OFF_DEPTH_NOW), wanted, memory_order_relaxed);
    // after the depth that it belongs to
    if (cut) atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_CUT), 1, memory_order_release);
}
