//go:build ignore

// ramp.c: ramp.h.
#include "ramp.h"

#include "budget.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "marks.h"
#include "os.h"
#include "recording.h"
#include "ring.h"
#include "samples.h"
#include "walk.h"

struct range {
    uint64_t lo, hi;
};
enum { HOLES = 64 };

// What a reader who began with the ramp does not know: [at, top) of old space, what survivor space holds, and the holes
// that lost epochs have left. Holes are counted already. Old space above top comes with births.
struct ramp {
    uint64_t number, slices;
    uint64_t at, top;
    struct range hole[HOLES];
    uint32_t holes;
    bool follows;              // one has begun since the last pause of which no moves are known
    bool open;                 // the last slice has not come
    bool young, young_counted; // what survivor space holds is unknown; though it was counted
};
static PER_RECORDING struct ramp now;  // with the newest pause, without its slice
static PER_RECORDING struct ramp then; // with its slice, if there is one
static PER_RECORDING bool listed;      // there is

// How things stood at the newest finish that was committed. A number of a survivor space changes when it is emptied.
static PER_RECORDING struct range committed_young;
static PER_RECORDING uint64_t committed_top, committed_no, since, young_no;
static PER_RECORDING bool behind;

bool ramp_allowed(void) {
    uint64_t agent = atomic_load_explicit(ring64(HC_RING_OFF_AGENT_GENERATION), memory_order_relaxed);
    uint64_t reads = atomic_load_explicit(ring64(HC_RING_OFF_SLICES), memory_order_relaxed);
    return !vm_has_regions() && !vm_has_no_addresses() && agent && agent == reads;
}

bool ramp_open(void) { return now.open; }
bool ramp_follows(void) { return now.follows; }
bool ramp_behind(void) { return behind && now.follows; }
bool ramp_uncounted(void) { return now.young && !now.young_counted; }
void ramp_evacuated(void) {
    now.young = now.young_counted = false;
    young_no++;
}

void ramp_forget(void) {
    uint64_t number = now.number;
    now = (struct ramp){.number = number};
    behind = false;
    young_no++;
}

void ramp_whole(void) {
    then = (struct ramp){.number = now.number, .follows = ramp_allowed()};
    listed = true;
}

static uint64_t put_range(struct enc *e, uint64_t lo, uint64_t hi, uint64_t prev) {
    put_s(e, (int64_t)(WORD(lo) - prev));
    put_u(e, (hi - lo) >> 3);
    return WORD(hi);
}

static void add_hole(uint64_t lo, uint64_t hi) {
    if (lo == hi) return;
    struct range *r = now.holes ? &now.hole[now.holes - 1] : NULL;
    if (r && r->hi >= lo) {
        if (hi > r->hi) r->hi = hi;
    } else if (now.holes < HOLES) {
        now.hole[now.holes++] = (struct range){lo, hi};
    } else {
        r->hi = hi; // what lies between is listed again
    }
}

bool ramp_put_lost(struct enc *e, const struct heapmaps *m) {
    if (!ramp_behind()) return false;
    const struct area *old = &m->last.area[OLD], *young = &m->last.area[FROM];
    bool moved = young_no != committed_no;
    put8(e, HC_EV_LOST);
    put_u(e, since);
    uint8_t *at = blob_begin(e, HC_EV_CLEARED);
    if (moved && committed_young.hi > committed_young.lo) put_range(e, committed_young.lo, committed_young.hi, 0);
    blob_end(e, at);
    at = blob_begin(e, HC_EV_UNKNOWN);
    uint64_t prev = 0;
    if (moved && used(young)) {
        prev = put_range(e, young->bottom, young->top, 0);
        now.young = now.young_counted = true;
    }
    if (old->top > committed_top) put_range(e, committed_top, old->top, prev);
    blob_end(e, at);
    if (now.holes == HOLES && now.hole[HOLES - 1].hi < committed_top) violation("too many epochs were lost", since);
    add_hole(committed_top, old->top > committed_top ? old->top : committed_top);
    now.open = true;
    return true;
}

static void begin(const struct heapmap *m) {
    uint64_t number = now.number + 1;
    const struct area *old = &m->area[OLD];
    then = (struct ramp){.number = number, .at = old->bottom, .top = old->top, .follows = true, .open = true,
                         .young = used(&m->area[FROM]) > 0};
}

static void put_pending(struct enc *e, const struct heapmap *m) {
    uint8_t *at = blob_begin(e, HC_EV_PENDING);
    uint64_t prev = 0;
    if (then.at < then.top) prev = put_range(e, then.at, then.top, prev);
    if (then.young) put_range(e, m->area[FROM].bottom, m->area[FROM].top, prev);
    blob_end(e, at);
}

// What a slice lists.
struct part {
    struct range done[HOLES + 2];
    uint32_t n;
    uint64_t objects, bytes;
    bool stopped;
};

static void done(struct part *p, uint64_t lo, uint64_t hi) {
    if (lo < hi) p->done[p->n++] = (struct range){lo, hi};
}

static void list_old(struct enc *e, struct walker *w, struct heapmap *m, struct part *p) {
    uint64_t lo = then.at, stop = walk_list_part(w, lo, then.top, &p->objects, &p->bytes, &p->stopped);
    if (stop != then.top && !p->stopped && !e->over) {
        if (then.top != m->area[OLD].top) unknown_class("a class word in old space is unknown", stop);
        m->area[OLD].top = stop; // granted in this pause: born in the next
        stop = then.top;
    }
    then.at = stop;
    done(p, lo, stop);
}

static void list_holes(struct enc *e, struct walker *w, struct part *p) {
    uint32_t i = 0, left = 0;
    for (; i < then.holes && !p->stopped && !e->over; i++) {
        struct range *r = &then.hole[i];
        uint64_t lo = r->lo;
        r->lo = walk_list_part(w, lo, r->hi, &p->objects, &p->bytes, &p->stopped);
        if (r->lo != r->hi && !p->stopped && !e->over) unknown_class("a class word in old space is unknown", r->lo);
        done(p, lo, r->lo);
    }
    for (i = 0; i < then.holes; i++)
        if (then.hole[i].lo < then.hole[i].hi) then.hole[left++] = then.hole[i];
    then.holes = left;
}

// Survivor space is listed as a whole, or left to the next collection, which tells where all of it goes.
static void list_young(struct enc *e, struct walker *w, const struct area *f, struct part *p) {
    struct enc before = *e;
    struct walker was = *w;
    uint64_t objects = p->objects, bytes = p->bytes;
    bool stopped = false;
    uint64_t stop = walk_list_part(w, f->bottom, f->top, &p->objects, &p->bytes, &stopped);
    if (stop == f->top) {
        then.young = then.young_counted = false;
        done(p, f->bottom, f->top);
        return;
    }
    bool over = e->over;
    *e = before, e->over = over;
    *w = was;
    p->objects = objects, p->bytes = bytes;
}

static void list_parts(struct enc *e, const struct slice *s, struct part *p) {
    struct heapmap *m = &s->maps->finish;
    const struct area *from = &m->area[FROM];
    bool young = then.young && !s->with_eden;
    uint8_t *at = blob_begin(e, HC_EV_LIST);
    struct walker w = walker_on(e, NULL);
    if (then.at < then.top) list_old(e, &w, m, p);
    bool all = then.at == then.top && !p->stopped;
    if (young && !then.young_counted && all && !then.holes) list_young(e, &w, from, p);
    blob_end(e, at);
    if (!all || (!then.holes && !(young && then.young && then.young_counted))) return;
    at = blob_begin(e, HC_EV_AGAIN);
    w = walker_on(e, NULL);
    list_holes(e, &w, p);
    if (young && then.young_counted && !then.holes && !p->stopped) list_young(e, &w, from, p);
    blob_end(e, at);
}

static void put_listed(struct enc *e, const struct part *p) {
    uint8_t *at = blob_begin(e, HC_EV_LISTED);
    uint64_t prev = 0;
    for (uint32_t i = 0; i < p->n; i++) prev = put_range(e, p->done[i].lo, p->done[i].hi, prev);
    blob_end(e, at);
}

static uint64_t words_left(const struct heapmap *m, bool uncounted) {
    uint64_t n = then.top - then.at;
    for (uint32_t i = 0; !uncounted && i < then.holes; i++) n += then.hole[i].hi - then.hole[i].lo;
    if (then.young && !(uncounted && then.young_counted)) n += used(&m->area[FROM]);
    return n >> 3;
}

// The rest of the block has room behind what is listed, as has the next epoch unless the ring is small.
enum { TAIL = 16 << 10 };
static bool leave_room(struct enc *e) {
    uint64_t left = (uint64_t)(e->end - e->p);
    uint64_t rest = TAIL + atomic_load_explicit(&largest_epoch, memory_order_relaxed);
    if (left < 4 * TAIL) return false;
    e->end -= rest < left / 2 ? rest : left / 2;
    return true;
}

void ramp_put_slice(struct enc *e, const struct slice *s) {
    uint64_t began = now_ns(), cpu = cpu_ns();
    struct heapmap *m = &s->maps->finish;
    struct part p = {.n = 0};
    then = now;
    if (s->reason) begin(m);
    uint64_t words = words_left(m, false);
    uint8_t *at = block_begin(e, HC_KIND_SLICE), *const end = e->end;
    if (e->over || !leave_room(e)) {
        e->over = true;
        return;
    }
    at[HC_BLOCK_OFF_VERSION] = HC_FORMAT_SLICES;
    if (s->reason) put_pending(e, m);
    list_until = s->until;
    if (words) list_parts(e, s, &p);
    list_until = 0;
    e->end = end;
    if (e->over) return;
    budget_sliced(cpu_ns() - cpu, p.bytes);
    put_listed(e, &p);
    put8(e, HC_EV_TOTAL);
    put_u(e, p.objects);
    put_u(e, p.bytes);
    heapmap()->put_spaces(e, s->maps);
    // The samples take time, too: they have the second half of the budget, or the next pause.
    uint64_t left = words_left(m, false), half = began + (s->until - began) / 2;
    bool last = !left && (!words || now_ns() < half);
    if (last) samples_live_typed(e, m), then.open = false;
    put8(e, HC_EV_SLICE);
    put_u(e, s->epoch);
    put_u(e, then.number);
    put_u(e, ++then.slices);
    put_u(e, s->reason ? (uint64_t)s->reason : HC_SYNC_ROTATION);
    put_u(e, (s->reason ? HC_SLICE_FIRST : 0) | (last ? HC_SLICE_LAST : 0));
    put_u(e, left);
    put_u(e, words_left(m, true));
    put_u(e, began - probe_epoch_ns);
    put_u(e, now_ns() - began);
    block_end(e, at);
    listed = !e->over;
}

void ramp_finish(const struct heapmaps *m, uint64_t epoch, bool committed) {
    bool with_listing = listed;
    listed = false;
    behind = !committed;
    if (!committed) return;
    if (with_listing) now = then;
    if (vm_has_regions()) return;
    since = epoch;
    committed_no = young_no;
    committed_top = m->finish.area[OLD].top;
    committed_young = (struct range){m->finish.area[FROM].bottom, m->finish.area[FROM].top};
}
