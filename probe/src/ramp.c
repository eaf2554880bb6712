//go:build ignore

// ramp.c: ramp.h, what is common to all heaps.
#include "ramp.h"

#include "budget.h"
#include "heapcam_abi.h"
#include "marks.h"
#include "os.h"
#include "pause.h"
#include "recording.h"
#include "ring.h"
#include "samples.h"
#include "shadow.h"

struct ramp {
    uint64_t number, slices;
    bool follows; // one has begun since the last pause of which no moves are known
    bool open;    // the last slice has not come
};
static PER_RECORDING struct ramp now;  // with the newest pause, without its slice
static PER_RECORDING struct ramp next; // with its slice, if there is one
static PER_RECORDING bool listed;      // there is
static PER_RECORDING uint64_t since;   // epoch that was committed last
static PER_RECORDING bool behind;
static PER_RECORDING bool stores; // the agent that was seen last stores slices
static PER_RECORDING struct part spare; // its ranges have room for any slice

static const struct ramp_parts *parts(void) { return vm_has_regions() ? &ramp_g1 : &ramp_linear; }

bool ramp_init(void) {
    if (vm_has_no_addresses()) return true;
    return parts()->init(&spare.most) && (spare.done = memory(spare.most * sizeof *spare.done));
}

bool ramp_allowed(void) {
    uint64_t agent = atomic_load_explicit(ring64(HC_RING_OFF_AGENT_GENERATION), memory_order_relaxed);
    uint64_t reads = atomic_load_explicit(ring64(HC_RING_OFF_SLICES), memory_order_relaxed);
    if (agent) stores = agent == reads; // else it has not written to a larger ring yet
    return !vm_has_no_addresses() && stores;
}

bool ramp_open(void) { return now.open; }
bool ramp_follows(void) { return now.follows; }
bool ramp_behind(void) { return behind && now.follows; }
const uint64_t *ramp_uncounted(void) { return now.follows ? parts()->uncounted() : NULL; }
void ramp_emptied(const struct heapmaps *m, bool evac) { parts()->emptied(m, evac); }

void ramp_forget(void) {
    now = (struct ramp){.number = now.number};
    parts()->forget();
    behind = listed = false;
}

void ramp_whole(void) {
    next = (struct ramp){.number = now.number, .follows = ramp_allowed()};
    parts()->none();
    listed = true;
}

static void put_range(struct ranges *r) {
    if (r->lo == r->hi) return;
    put_s(r->e, (int64_t)(WORD(r->lo) - r->prev));
    put_u(r->e, (r->hi - r->lo) >> 3);
    r->prev = WORD(r->hi);
}

void ranges_add(struct ranges *r, uint64_t lo, uint64_t hi) {
    if (lo == hi) return;
    if (r->hi == lo && r->lo != r->hi) {
        r->hi = hi;
        return;
    }
    put_range(r);
    r->lo = lo, r->hi = hi;
}

void ranges_end(struct ranges *r) {
    put_range(r);
    r->lo = r->hi = 0;
}

bool ramp_put_lost(struct enc *e, const struct heapmaps *m) {
    if (!ramp_behind()) return false;
    parts()->put_lost(e, m, since);
    now.open = true;
    return true;
}

static void put_pending(struct enc *e, const struct heapmap *m) {
    uint8_t *at = blob_begin(e, HC_EV_PENDING);
    struct ranges r = {.e = e};
    parts()->put_pending(&r, m);
    ranges_end(&r);
    blob_end(e, at);
}

static void put_listed(struct enc *e, const struct part *p) {
    uint8_t *at = blob_begin(e, HC_EV_LISTED);
    struct ranges r = {.e = e};
    for (uint32_t i = 0; i < p->n; i++) ranges_add(&r, p->done[i].lo, p->done[i].hi);
    ranges_end(&r);
    blob_end(e, at);
}

// The rest of the block has room behind what is listed, as has the next epoch unless the ring is small.
enum { TAIL = 16 << 10 };
static bool leave_room(struct enc *e) {
    uint64_t left = (uint64_t)(e->end - e->p);
    uint64_t rest = TAIL + 16 * (uint64_t)spare.most + atomic_load_explicit(&largest_epoch, memory_order_relaxed);
    if (left < 4 * TAIL) return false;
    e->end -= rest < left / 2 ? rest : left / 2;
    return true;
}

void ramp_put_slice(struct enc *e, const struct slice *s) {
    uint64_t began = now_ns(), cpu = cpu_ns();
    struct heapmap *m = &s->maps->finish;
    struct part p = {.done = spare.done, .most = spare.most};
    next = now;
    if (s->reason) {
        next = (struct ramp){.number = now.number + 1, .follows = true, .open = true};
        parts()->begin(s->maps);
    } else {
        parts()->go_on();
    }
    uint64_t bytes = parts()->left(m, false);
    uint8_t *at = block_begin(e, HC_KIND_SLICE), *const end = e->end;
    if (e->over || !leave_room(e)) {
        e->over = true;
        return;
    }
    at[HC_BLOCK_OFF_VERSION] = HC_FORMAT_SLICES;
    if (s->reason) put_pending(e, m);
    if (bytes) parts()->list(e, s, &p);
    e->end = end;
    if (e->over) return;
    budget_sliced(cpu_ns() - cpu, p.walked, (uint64_t)(e->p - at));
    put_listed(e, &p);
    put8(e, HC_EV_TOTAL);
    put_u(e, p.objects);
    put_u(e, p.bytes);
    heapmap()->put_spaces(e, s->maps);
    // The samples take time, too: they have the second half of the budget, or the next pause.
    uint64_t left = parts()->left(m, false), half = began + (s->until - began) / 2;
    bool last = !left && (!bytes || now_ns() < half);
    if (last) samples_live_typed(e, m), next.open = false;
    if (last && !pause_missed()) shadow_put_listed(e, at, m, s->kind, s->until);
    put8(e, HC_EV_SLICE);
    put_u(e, s->epoch);
    put_u(e, next.number);
    put_u(e, ++next.slices);
    put_u(e, s->reason ? (uint64_t)s->reason : HC_SYNC_ROTATION);
    put_u(e, (s->reason ? HC_SLICE_FIRST : 0) | (last ? HC_SLICE_LAST : 0) |
                 (vm_has_uncompacted_regions() && !marks_there() ? HC_SLICE_UNCOMPACTED : 0));
    put_u(e, left >> 3);
    put_u(e, parts()->left(m, true) >> 3);
    put_u(e, began - probe_epoch_ns);
    put_u(e, now_ns() - began);
    block_end(e, at);
    listed = !e->over;
    if (!listed) shadow_untold();
}

void ramp_finish(const struct heapmaps *m, uint64_t epoch, bool committed) {
    bool with_listing = listed;
    listed = false;
    behind = !committed;
    if (!committed) return;
    if (with_listing) {
        now = next;
        parts()->keep();
    }
    since = epoch;
    if (now.follows) parts()->committed(&m->finish);
}
