//go:build ignore

// finish.c: finish.h.
#include "finish.h"

#include <string.h>

#include "census.h"
#include "deflog.h"
#include "guard.h"
#include "options.h"
#include "os.h"
#include "ramp.h"
#include "recording.h"
#include "ring.h"
#include "samples.h"
#include "shadow.h"
#include "uses.h"
#include "walk.h"

PER_RECORDING _Atomic bool listing_did_not_fit;

// What was encoded behind `to` is dropped. walked: so is what the walks of it have counted.
void finish_roll_back(struct finish *f, const struct enc *to, bool walked) {
    f->e = *to;
    if (!walked) return;
    dest_reset();
    census_reset();
    ramp_forget();
}

// Where the epoch is written: the ring, or the reserve if somebody else writes the ring or there is no room in it. The
// control thread moves what is in the reserve as soon as the agent has made room, or a larger ring has.
void finish_begin(struct finish *f, uint64_t bytes) {
    f->fits = true;
    f->to_ring = f->locked && (atomic_load(&reserve_len) || ring_room_in_pause() >= bytes);
    if (f->to_ring) {
        f->fits = reserve_flush(true);
        ring_begin(&f->e, true);
    } else {
        reserve_begin(&f->e);
        if (f->locked) atomic_store_explicit(&listing_did_not_fit, true, memory_order_relaxed);
    }
    f->at_epoch = f->e;
}

void finish_define(struct finish *f) {
    if (f->locked) types_swap();
    if (f->to_ring) samples_gather();
    put_defs(&f->e, f->to_ring);
    if (f->to_ring) samples_put(&f->e, true);
    f->at_epoch = f->e;
}

static PER_RECORDING bool listing_open; // in slices, after the pause before

void finish_commit(struct finish *f) {
    ring_publish_in_pause(); // the counters first: who sees the epoch has them
    bool lost = opt.lose && f->epoch > opt.lose && f->epoch % opt.lose + 3 >= opt.lose;
    f->committed = !lost && f->fits && (f->to_ring ? ring_commit(&f->e, true) : reserve_commit(&f->e));
    bool told = shadow_committed(f->committed, f->reason || ramp_open() || listing_open);
    listing_open = ramp_open() && !told;
    if (!f->to_ring) return;
    defs_committed(f->committed), samples_committed(f->committed);
    uses_committed(f->committed && !f->reason); // a file that begins with this sync point lacks what is before it
}

// A test's options: what a heap does that is not understood.
void finish_provoke(const struct finish *f) {
    if (!opt.fault_at || f->epoch < opt.fault_at) return;
    if (f->epoch == opt.fault_at) (void)rd64((void *)(uintptr_t)((opt.fault_at & 0xfff) + 8));
    if (f->epoch <= opt.fault_until && f->depth != HC_DEPTH_SAMPLES)
        unknown_class("a class word is unknown (option fault_until)", f->epoch);
}

void finish_give_up(struct finish *f) {
    char text[300];
    size_t n = 0;
    const char *p = f->what ? f->what : fault_text;
    while (n < sizeof text - 1 && p[n]) text[n] = p[n], n++;
    text[n] = 0;
    uint8_t *at = block_begin(&f->e, HC_KIND_END);
    put8(&f->e, HC_EV_END);
    put_u(&f->e, now_ns() - probe_epoch_ns);
    put_u(&f->e, HC_END_GAVE_UP);
    put_str(&f->e, text, n);
    block_end(&f->e, at);
    memcpy(ring + HC_RING_OFF_REASON, text, n + 1);
    atomic_store(&gave_up, true);
    ring_state(HC_STATE_GAVE_UP, NULL);
}

// An epoch takes about two bytes for each object of 40; this is three for each of 32.
uint64_t finish_bytes(struct work n, uint32_t depth) {
    return depth == HC_DEPTH_SAMPLES ? 0 : (n.rest + (depth == HC_DEPTH_FULL ? n.eden : 0)) / 32 * 3;
}

void finish_publish(void *unused) {
    (void)unused;
    ring_publish_in_pause();
}
