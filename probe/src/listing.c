//go:build ignore

// listing.c: listing.h.
#include "listing.h"

#include "budget.h"
#include "cuts.h"
#include "heapwalk.h"
#include "marks.h"
#include "os.h"
#include "pause.h"
#include "ramp.h"
#include "recording.h"
#include "ring.h"
#include "samples.h"
#include "shadow.h"

static void list_all(struct enc *e, const struct listing *l) {
    struct listing_cost c = {.began = now_ns(), .sooner = l->sooner};
    uint64_t cpu = cpu_ns();
    list_until = l->until;
    uint8_t *at = blob_begin(e, HC_EV_LIST);
    struct walker w = walker_on(e, NULL);
    struct listed sum = {0, 0, 0};
    cuts_amid(true);
    cuts_for_listing(&l->maps->finish, l->with_eden);
    heapwalk()->list(&w, l->maps, l->with_eden, &sum);
    cuts_amid(false);
    c.ended = now_ns(), c.cpu = cpu_ns() - cpu;
    c.bytes = sum.bytes - sum.humongous, c.total = heapmap()->list_bytes(&l->maps->finish);
    c.until = list_until, c.over = e->over, c.written = (uint64_t)(e->p - at);
    budget_listed(&c);
    blob_end(e, at);
    put8(e, HC_EV_TOTAL);
    put_u(e, sum.objects);
    put_u(e, sum.bytes);
}

void listing_put(struct enc *e, const struct listing *l) {
    uint64_t begin = now_ns();
    uint8_t *at = block_begin(e, HC_KIND_SYNC), *from = at;
    if (l->depth != HC_DEPTH_SAMPLES) {
        list_all(e, l);
    } else {
        put8(e, HC_EV_TOTAL);
        put_u(e, 0);
        put_u(e, 0);
    }
    heapmap()->put_spaces(e, l->maps);
    samples_live(e, &l->maps->finish);
    if (l->depth != HC_DEPTH_SAMPLES && !pause_missed())
        shadow_put_listed(e, at, &l->maps->finish, l->kind, l->until);
    put8(e, HC_EV_SYNCPOINT);
    put_u(e, l->epoch);
    put_u(e, (uint64_t)l->reason);
    put_u(e, (l->with_eden ? HC_SF_EDEN : 0) | (l->reason == HC_SYNC_FIRST ? HC_SF_FIRST : 0) |
                 (vm_has_uncompacted_regions() && !marks_there() ? HC_SF_UNCOMPACTED : 0));
    put_u(e, begin - probe_epoch_ns);
    put_u(e, now_ns() - begin);
    block_end(e, at);
    if (e->over)
        shadow_untold();
    else
        atomic_store_explicit(ring64(HC_RING_OFF_LAST_SYNC_BYTES), (uint64_t)(e->p - from), memory_order_relaxed);
}

void listing_predict(const struct heapmap *m, bool listed) {
    uint64_t bytes = heapmap()->list_bytes(m);
    if (ramp_allowed())
        (void)budget_listing(bytes);
    else if (!listed)
        (void)budget_listing_too_long(false, bytes);
}
