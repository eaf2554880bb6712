//go:build ignore

// epoch.c: what happens at the start and the finish of a pause. All of it runs on the VM thread while the world stands
// still.
#define _GNU_SOURCE
#include "probe.h"

#include <string.h>

struct area {
    uint64_t bottom, top, end;
    uint32_t kind; // HC_SPACE_*
};
// Last finish, start of this pause, finish of this pause. Serial and Parallel: eden, two survivors, old. G1: the region
// table by index.
static PER_RECORDING struct area *L, *S, *F;
static PER_RECORDING uint32_t nL, nS, nF, max_areas;
static PER_RECORDING bool have_last, started;
static PER_RECORDING uint64_t
    eden_known; // eden below this address is part of the state (a full collection left it filled)
// A full collection left something in eden: live objects, or what the pause granted to the thread that asked for it,
// which has no header yet and cannot be told from what stood there before. The next young collection therefore ends
// with a listing instead of fates.
static PER_RECORDING bool eden_dirty;
static PER_RECORDING uint64_t last_finish, start_time, start_cost;
static PER_RECORDING int64_t inv[3];
// Young and full collections that events have announced, or that ended before the probe began.
static PER_RECORDING int64_t counted[2];
static PER_RECORDING unsigned last_total;
static PER_RECORDING uint32_t missed;               // collections without events that no epoch has told of yet
static PER_RECORDING bool stale, conc_next_cleanup; // stale: the heap has counted a collection since the last finish
static PER_RECORDING uint64_t remarked;             // number of the last concurrent cycle that ended its marking
static PER_RECORDING uint64_t jvm_gc;               // of the collection that ends, in the JVM's log

PER_RECORDING uint64_t epoch_no;
PER_RECORDING _Atomic uint64_t gc_counter;
PER_RECORDING _Atomic bool gave_up;
static PER_RECORDING _Atomic int need_sync = HC_SYNC_FIRST; // VM thread; the control thread asks by epoch_want_sync
PER_RECORDING _Atomic bool listing_did_not_fit;             // the control thread makes the ring larger
static PER_RECORDING uint64_t answered_sync;
static PER_RECORDING int faults_in_a_row;
static PER_RECORDING uint32_t last_depth;
static PER_RECORDING uint32_t cap = HC_DEPTH_FULL; // where an epoch was cut, until the agent wants no more than that

static bool is_g1(void) { return vm.collector == HC_COLLECTOR_G1; }

static void count_collections(void) {
    for (int i = 0; i < 2; i++) counted[i] = (int64_t)rd64(vm.perf_inv[i]);
}

// On 17 and 21, jcmd GC.class_histogram and GC.heap_dump make Serial and Parallel collect without events: a full
// collection each time, with Parallel a young one before it in the same pause. The JVM's counters show them.
// CollectedHeap::_total_collections does not: one that escalates counts once there.
static void count_missed(void) {
    int64_t young = (int64_t)rd64(vm.perf_inv[0]) - counted[0], full = (int64_t)rd64(vm.perf_inv[1]) - counted[1];
    int64_t n = missed + (young > full ? young : full);
    if (n > missed) missed = n > HC_PF_MISSED_MAX ? HC_PF_MISSED_MAX : (uint32_t)n;
    count_collections();
}

bool epoch_init(void) {
    max_areas = is_g1() ? (uint32_t)(vm.heap_bytes / vm.region_bytes) + 1 : 4;
    size_t n = max_areas * sizeof(struct area);
    struct area **as[] = {&L, &S, &F};
    for (int i = 0; i < 3; i++) {
        if (!(*as[i] = memory(n))) return false;
    }
    last_finish = now_ns();
    char why[HC_MAX_REASON];
    if (vm_late(why)) count_collections(); // not before the heap exists: then none has been
    return marks_init(max_areas);
}

static uint32_t snapshot(struct area *a) {
    if (!is_g1()) {
        vm_spaces_now();
        char *sp[] = {vm.eden, vm.from, vm.to, vm.old};
        static const uint32_t kinds[] = {HC_SPACE_EDEN, HC_SPACE_SURVIVOR, HC_SPACE_SURVIVOR, HC_SPACE_OLD};
        for (int i = 0; i < 4; i++) {
            a[i] = (struct area){rd64(sp[i] + vm.space_bottom), rd64(sp[i] + vm.space_top), rd64(sp[i] + vm.space_end),
                                 kinds[i]};
            if (a[i].bottom > a[i].top || a[i].top > a[i].end || a[i].bottom < (uint64_t)vm.heap_base ||
                a[i].end > (uint64_t)vm.heap_base + vm.heap_bytes)
                violation("the bounds of a space make no sense", a[i].bottom);
        }
        return 4;
    }
    char *tab = rdp(vm.g1_table);
    uint64_t n = rd64(vm.g1_len);
    if (n > max_areas) n = max_areas;
    for (uint64_t i = 0; i < n; i++) {
        char *r = rdp(tab + 8 * i);
        if (!r) {
            a[i] = (struct area){0};
            continue;
        }
        int tag = (int)rd32(r + vm.hr_tag);
        uint32_t k = tag == vm.g1_free                                ? HC_SPACE_FREE
                     : tag == vm.g1_eden                              ? HC_SPACE_EDEN
                     : tag == vm.g1_surv                              ? HC_SPACE_SURVIVOR
                     : tag == vm.g1_hum_start                         ? HC_SPACE_HUMONGOUS
                     : tag == vm.g1_hum_cont                          ? HC_SPACE_HUMONGOUS_CONT
                     : vm.g1_archive_mask && tag & vm.g1_archive_mask ? HC_SPACE_ARCHIVE
                                                                      : HC_SPACE_OLD;
        a[i] = (struct area){rd64(r + vm.hr_bottom), rd64(r + vm.hr_top), rd64(r + vm.hr_end), k};
        if (a[i].bottom != (uint64_t)vm.heap_base + i * vm.region_bytes || a[i].top < a[i].bottom ||
            a[i].top > a[i].end)
            violation("the bounds of a region make no sense", a[i].bottom);
    }
    return (uint32_t)n;
}

static uint32_t region_of(uint64_t a) {
    return (uint32_t)((a - (uint64_t)vm.heap_base) >> __builtin_ctzll(vm.region_bytes));
}

bool is_old(uint64_t a) {
    if (is_g1()) {
        uint32_t i = region_of(a);
        return i < nF && F[i].kind != HC_SPACE_SURVIVOR;
    }
    return a >= F[3].bottom && a < F[3].end;
}

bool in_state(uint64_t a) {
    if (is_g1()) {
        uint32_t i = region_of(a);
        return i < nF && F[i].kind != HC_SPACE_EDEN && F[i].kind != HC_SPACE_FREE;
    }
    return a < F[0].bottom || a >= F[0].end || a < eden_known;
}

// A humongous object begins here. One that a collection freed is gone from the regions at that collection's finish.
bool humongous_at(uint64_t a) {
    if (!is_g1() || a < (uint64_t)vm.heap_base) return false;
    uint32_t i = region_of(a);
    return i < nF && F[i].kind == HC_SPACE_HUMONGOUS && F[i].bottom == a;
}

static bool no_reader(void) {
    uint64_t hb = atomic_load_explicit(ring64(HC_RING_OFF_AGENT_HEARTBEAT), memory_order_relaxed);
    return hb && !opt.spool[0] && now_ns() > hb + (uint64_t)HC_RING_AGENT_STALE_NS * 12;
}

// Markers nest (a metadata-threshold collection posts start, start, finish, finish): each start begins anew, a finish
// without a start of its own is the outer one and ends nothing.
static PER_RECORDING int nesting;
static PER_RECORDING bool pending, skipped; // skipped: nothing was recorded when this pause began
static PER_RECORDING bool unseen;           // a pause was not recorded, or not understood

static void look_at_start(void *unused) {
    (void)unused;
    ring_refresh_in_pause();
    if (!vm.perf_inv[0]) return; // the first pause: vm_late has not found them
    for (int i = 0; i < 3; i++) inv[i] = vm.perf_inv[i] ? (int64_t)rd64(vm.perf_inv[i]) : 0;
    skipped = is_off();
    if (skipped) return;
    count_missed();
    stale = last_total != *vm.total_collections && have_last;
    // Down at once, up at the finish: an epoch is recorded at one depth.
    uint32_t dw = atomic_load_explicit(ring32(HC_RING_OFF_DEPTH_WANTED), memory_order_relaxed);
    if (dw >= HC_DEPTH_SAMPLES && dw < *ring32(HC_RING_OFF_DEPTH_NOW))
        atomic_store_explicit(ring32(HC_RING_OFF_DEPTH_NOW), dw, memory_order_relaxed);
    classes_scan_new();
    nS = snapshot(S);
    nholes = 0;
    if (*ring32(HC_RING_OFF_DEPTH_NOW) == HC_DEPTH_FULL) tlab_holes();
    started = true;
}

void epoch_start(void) {
    if (nesting++ == 0) atomic_fetch_add_explicit(&gc_counter, 1, memory_order_acq_rel);
    pending = true;
    start_time = now_ns();
    started = false;
    if (gave_up) return;
    char why[HC_MAX_REASON];
    if (!vm_late(why)) return;
    if (!guarded(look_at_start, NULL) && ring_faulted()) ring_lost();
    start_cost = now_ns() - start_time;
}

static int pause_kind(void) {
    int64_t d[3];
    for (int i = 0; i < 3; i++) d[i] = vm.perf_inv[i] ? (int64_t)rd64(vm.perf_inv[i]) - inv[i] : 0;
    if (d[1] > 0) {
        conc_next_cleanup = false;
        return HC_PAUSE_FULL;
    }
    if (d[0] > 0) {
        if (is_g1())
            for (uint32_t i = 0; i < nS && i < nF; i++)
                if (S[i].kind == HC_SPACE_OLD && F[i].kind != HC_SPACE_OLD) return HC_PAUSE_MIXED;
        return HC_PAUSE_YOUNG;
    }
    if (is_g1()) { // the second pause of a concurrent cycle is its cleanup; many a cycle ends before it
        uint64_t cycle = vm_gc_number(true);
        conc_next_cleanup = cycle == UINT64_MAX ? !conc_next_cleanup : cycle != remarked;
        remarked = cycle;
        return conc_next_cleanup ? HC_PAUSE_REMARK : HC_PAUSE_CLEANUP;
    }
    return HC_PAUSE_UNKNOWN;
}

static void put_space(struct enc *e, uint32_t kind, const struct area *b, const struct area *a, uint64_t before,
                      uint64_t after) {
    put8(e, HC_EV_SPACE);
    put_u(e, kind);
    uint64_t base = (uint64_t)vm.heap_base;
    (void)b;
    put_u(e, a ? (a->bottom - base) >> 3 : 0);
    put_u(e, a ? (a->top - base) >> 3 : 0);
    put_u(e, a ? (a->end - base) >> 3 : 0);
    put_u(e, before);
    put_u(e, after);
}

static uint64_t put_spaces(struct enc *e) {
    uint64_t total = 0;
    if (!is_g1()) {
        // S[1] and F[1] are "from" before and after: what was used before stands in the old from.
        put_space(e, HC_SPACE_EDEN, &S[0], &F[0], S[0].top - S[0].bottom, F[0].top - F[0].bottom);
        put_space(e, HC_SPACE_SURVIVOR, &S[1], &F[1], S[1].top - S[1].bottom, F[1].top - F[1].bottom);
        put_space(e, HC_SPACE_OLD, &S[3], &F[3], S[3].top - S[3].bottom, F[3].top - F[3].bottom);
        return F[0].top - F[0].bottom + F[1].top - F[1].bottom + F[3].top - F[3].bottom;
    }
    uint64_t b[7] = {0}, a[7] = {0};
    for (uint32_t i = 0; i < nS; i++) b[S[i].kind] += S[i].top - S[i].bottom;
    for (uint32_t i = 0; i < nF; i++) a[F[i].kind] += F[i].top - F[i].bottom;
    for (uint32_t k = HC_SPACE_EDEN; k <= HC_SPACE_ARCHIVE; k++) {
        if (k == HC_SPACE_HUMONGOUS_CONT) continue;
        if (k == HC_SPACE_HUMONGOUS) b[k] += b[k + 1], a[k] += a[k + 1];
        if (b[k] || a[k]) put_space(e, k, NULL, NULL, b[k], a[k]);
        total += a[k];
    }
    uint8_t *at = blob_begin(e, HC_EV_REGIONS);
    for (uint32_t i = 0; i < nF;) {
        uint32_t j = i;
        while (j < nF && F[j].kind == F[i].kind) j++;
        put_u(e, F[i].kind);
        put_u(e, j - i);
        i = j;
    }
    blob_end(e, at);
    return total;
}

static bool evacuated(uint32_t i, bool evac) { // G1: did this pause empty region i
    if (S[i].kind == HC_SPACE_OLD) return F[i].kind != HC_SPACE_OLD && F[i].kind != HC_SPACE_ARCHIVE;
    return evac && (S[i].kind == HC_SPACE_SURVIVOR || S[i].kind == HC_SPACE_EDEN);
}

// A humongous object that the pause itself granted has no header yet: it is born in the next one.
static bool hum_new(uint32_t i) { return F[i].kind == HC_SPACE_HUMONGOUS && S[i].kind != HC_SPACE_HUMONGOUS; }
static bool hum_known(uint32_t i) { return i < nL && L[i].kind == HC_SPACE_HUMONGOUS; }

static uint64_t hum_end(uint64_t bottom) {
    struct obj o;
    if (!obj_at(bottom, rd64((void *)bottom), &o)) violation("a humongous object has an unknown class", bottom);
    return bottom + o.bytes;
}

static struct walker walker_on(struct enc *e) { return (struct walker){.e = e}; }

// What the walks of a pause take is guessed from what the last ones took. The first guesses stand for objects of 40
// bytes.
static PER_RECORDING uint64_t eden_rate = 150, rest_rate = 400; // ns of CPU time per KiB
// Where others want the CPU too a pause takes longer than that: what pauses took of late by the clock, and of CPU time.
static PER_RECORDING uint64_t wall_sum = 1000000, cpu_sum = 1000000;

static void learn(uint64_t *rate, uint64_t ns, uint64_t bytes) {
    uint64_t now = ns / ((bytes >> 10) + 1);
    if (bytes >= 1 << 20) *rate = now > *rate ? now : *rate - (*rate - now) / 4;
}

// Bytes that fates walks.
struct work {
    uint64_t eden, rest;
};

static struct work to_walk(int kind) {
    bool evac = kind == HC_PAUSE_YOUNG || kind == HC_PAUSE_MIXED;
    struct work n = {0, 0};
    if (!is_g1()) {
        if (evac)
            n.eden = S[0].top - S[0].bottom,
            n.rest = S[1].top - S[1].bottom + (S[2].top - S[2].bottom) + (F[1].top - F[1].bottom);
        if (F[3].top > L[3].top) n.rest += F[3].top - L[3].top;
        return n;
    }
    for (uint32_t i = 0; i < nF; i++) {
        bool known = i < nS;
        if (known && evac && S[i].kind == HC_SPACE_EDEN)
            n.eden += S[i].top - S[i].bottom;
        else if (known && evacuated(i, evac))
            n.rest += S[i].top - S[i].bottom;
        uint64_t from = known && S[i].kind == HC_SPACE_OLD ? S[i].top : F[i].bottom;
        if ((F[i].kind == HC_SPACE_OLD || (evac && F[i].kind == HC_SPACE_SURVIVOR)) && F[i].top > from)
            n.rest += F[i].top - from;
    }
    return n;
}

// The fates of this pause. false: something was not evacuated.
static bool fates(struct enc *e, int kind, int depth) {
    bool evac = kind == HC_PAUSE_YOUNG || kind == HC_PAUSE_MIXED, ok = true;
    uint8_t *at;
    struct walker w = walker_on(e);
    uint64_t begun = cpu_ns(), eden_ns = 0;

    // Eden that survived the pause: nothing was evacuated from it (promotion failure).
    if (evac && !is_g1() && S[0].top > S[0].bottom && F[0].top == S[0].top && F[0].bottom == S[0].bottom) return false;
    if (evac && is_g1())
        for (uint32_t i = 0; i < nS && i < nF; i++)
            if ((S[i].kind == HC_SPACE_EDEN || S[i].kind == HC_SPACE_SURVIVOR) && F[i].kind == HC_SPACE_OLD)
                return false;

    if (!is_g1()) old_lo = F[3].bottom, old_hi = F[3].end;
    // 1. known ranges that were emptied
    at = blob_begin(e, HC_EV_MOVES);
    if (!is_g1()) {
        if (evac && S[1].top > S[1].bottom) ok &= walk_moves(&w, S[1].bottom, S[1].top, SRC_FROM);
        if (evac && S[2].top > S[2].bottom) ok &= walk_moves(&w, S[2].bottom, S[2].top, SRC_FROM);
    } else if (evac) {
        for (uint32_t i = 0; i < nS && i < nF; i++)
            if (S[i].kind != HC_SPACE_EDEN && evacuated(i, evac) && S[i].top > S[i].bottom)
                ok &= walk_moves(&w, S[i].bottom, S[i].top, S[i].kind == HC_SPACE_OLD ? SRC_OLD : SRC_FROM);
    }
    blob_end(e, at);

    // 2. eden
    if (evac && depth == HC_DEPTH_FULL) {
        uint64_t from = cpu_ns();
        w = walker_on(e);
        at = blob_begin(e, HC_EV_ALLOCS);
        if (!is_g1()) {
            if (S[0].top > S[0].bottom) ok &= walk_moves(&w, S[0].bottom, S[0].top, SRC_EDEN);
        } else {
            for (uint32_t i = 0; i < nS && i < nF; i++)
                if (S[i].kind == HC_SPACE_EDEN && S[i].top > S[i].bottom)
                    ok &= walk_moves(&w, S[i].bottom, S[i].top, SRC_EDEN);
        }
        blob_end(e, at);
        eden_ns = cpu_ns() - from;
        learn(&eden_rate, eden_ns, to_walk(kind).eden);
    }

    // 3. what is new in places that were not emptied
    w = walker_on(e);
    at = blob_begin(e, HC_EV_BIRTHS);
    if (!is_g1()) {
        if (S[3].bottom != L[3].bottom || S[3].top < L[3].top || F[3].top < S[3].top)
            violation("old space shrank", S[3].top);
        if (walk_births(&w, L[3].top, S[3].top, false, true) != S[3].top)
            violation("a class word in old space is unknown", L[3].top);
        if (evac) {
            uint64_t at_stop = walk_births(&w, F[1].bottom, F[1].top, true, false);
            if (at_stop != F[1].top) violation("a class word in survivor space is unknown", at_stop);
        }
        uint64_t stop = walk_births(&w, S[3].top, F[3].top, false, false);
        F[3].top = stop; // the rest was granted in this pause and has no header yet
    } else {
        for (uint32_t i = 0; i < nF; i++) {
            struct area *f = &F[i], *s = &S[i];
            bool was = i < nS && s->kind == HC_SPACE_OLD;
            if (f->kind == HC_SPACE_SURVIVOR && evac) {
                if (walk_births(&w, f->bottom, f->top, true, false) != f->top)
                    violation("a class word in a survivor region is unknown", f->bottom);
            } else if (f->kind == HC_SPACE_OLD) {
                uint64_t from = was ? s->top : f->bottom;
                if (walk_births(&w, from, f->top, false, false) != f->top)
                    violation("a class word in an old region is unknown", from);
            } else if (f->kind == HC_SPACE_HUMONGOUS && !hum_known(i)) {
                if (hum_new(i))
                    f->kind = HC_SPACE_FREE; // for the next pause; see hum_new
                else if (walk_births(&w, f->bottom, hum_end(f->bottom), false, true) == f->bottom)
                    violation("a humongous object has an unknown class", f->bottom);
            }
        }
    }
    blob_end(e, at);
    if (!e->over && walk_ndest()) violation("a destination is not the start of an object", walk_ndest());

    // 4. regions that were simply freed
    if (is_g1()) {
        at = blob_begin(e, HC_EV_FREED);
        uint64_t prev = 0;
        for (uint32_t i = 0; i < nS && i < nF; i++) {
            bool hum = S[i].kind == HC_SPACE_HUMONGOUS && F[i].kind != HC_SPACE_HUMONGOUS && hum_known(i);
            bool old = S[i].kind == HC_SPACE_OLD && F[i].kind != HC_SPACE_OLD && !evac;
            if (!hum && !old) continue;
            uint64_t end = hum ? hum_end(S[i].bottom) : S[i].top;
            walk_dead(S[i].bottom, end);
            uint64_t b = (S[i].bottom - (uint64_t)vm.heap_base) >> 3, n = (end - S[i].bottom) >> 3;
            put_s(e, (int64_t)(b - prev));
            put_u(e, n);
            prev = b + n;
        }
        blob_end(e, at);
    }
    if (evac)
        learn(&rest_rate, cpu_ns() - begun - eden_ns, to_walk(kind).rest); // others walk old space for what was freed
    return ok;
}

// What a listing takes is guessed from what the last one took. The first guess, 0.05 ns a byte, stands for objects of
// 150 bytes.
enum { FIRST_RATE = 50 };
static PER_RECORDING uint64_t list_rate = FIRST_RATE; // ns per KiB
static PER_RECORDING bool too_long;
enum { RETRY_SOON = 2, RETRY_LATE = 600 }; // s
static PER_RECORDING uint64_t retry_at, retry_after = RETRY_SOON * 1000000000ull;

static uint64_t list_bytes(void) {
    uint64_t n = 0;
    if (!is_g1()) return F[1].top - F[1].bottom + (F[3].top - F[3].bottom);
    for (uint32_t i = 0; i < nF; i++)
        if (F[i].kind == HC_SPACE_OLD || F[i].kind == HC_SPACE_SURVIVOR || F[i].kind == HC_SPACE_ARCHIVE)
            n += F[i].top - F[i].bottom;
    return n;
}

// Whether a listing that is due would take longer than it may; then nothing is walked until it would take a quarter
// less. It is dared again after a while if the first guess allows it: soon if the last one took long for a cause of its
// own (the thread was preempted), each time later.
static bool list_too_long(bool due) {
    uint64_t now = now_ns();
    if (too_long && now > retry_at && list_rate > FIRST_RATE) {
        list_rate = FIRST_RATE;
        retry_after = retry_after < RETRY_LATE * 1000000000ull ? 2 * retry_after : retry_after;
        retry_at = now + retry_after;
    }
    uint64_t ns = (list_bytes() >> 10) * list_rate;
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

// The depth, at most that one, of which an epoch is not expected to take more than may ns. To go up, the listing that
// it costs and one more epoch like this must fit, else it would be for nothing: both together where the next one comes
// within the stretch for which the budget is, else each.
enum { BUDGET_SPAN = 10 }; // s

static uint32_t affordable(uint32_t depth, int kind, uint64_t may) {
    struct work n = to_walk(kind);
    uint64_t eden = (n.eden >> 10) * eden_rate, rest = (n.rest >> 10) * rest_rate,
             list = (list_bytes() >> 10) * list_rate;
    uint32_t was = depth;
    may = may / (wall_sum / 1000 + 1) * (cpu_sum / 1000 + 1);
    for (; depth > HC_DEPTH_SAMPLES; depth--) {
        uint64_t walk = rest + (depth == HC_DEPTH_FULL ? eden : 0),
                 need = have_last ? walk : 0; // without, only a listing tells
        if (depth > last_depth) {
            need += list;
            if (start_time - last_finish < BUDGET_SPAN * 1000000000ull) need += walk;
            if (need < walk) need = walk;
        }
        if (need <= may) break;
    }
    // A walk that took long for a cause of its own is dared again.
    if (depth < was) eden_rate -= eden_rate / 4, rest_rate -= rest_rate / 4;
    return depth;
}

// until: when it is broken off, 0: when max_sync says.
static void list_all(struct enc *e, bool with_eden, uint64_t until) {
    uint64_t from = cpu_ns(), began = now_ns();
    list_until = opt.max_sync ? began + opt.max_sync : 0;
    bool sooner = until && (!list_until || until < list_until);
    if (sooner) list_until = until;
    uint8_t *at = blob_begin(e, HC_EV_LIST);
    struct walker w = walker_on(e);
    uint64_t n = 0, b = 0;
    for (uint32_t i = 0; !graves_known && i < nF; i++) graves_drop(i);
    eden_known = is_g1() ? 0 : F[0].bottom;
    if (!is_g1()) {
        if (with_eden) {
            uint64_t stop = walk_list(&w, F[0].bottom, F[0].top, &n, &b);
            if (!e->over) eden_known = stop;
        }
        uint64_t stop = walk_list(&w, F[1].bottom, F[1].top, &n, &b);
        if (stop != F[1].top && !e->over) {
            // Serial on 17 gives out survivor space, unformatted, when a full collection has left no other room.
            if (!with_eden || vm.collector != HC_COLLECTOR_SERIAL)
                violation("a class word in survivor space is unknown", stop);
            F[1].top = stop;
        }
        stop = walk_list(&w, F[3].bottom, F[3].top, &n, &b);
        if (!e->over) F[3].top = stop;
    } else {
        for (uint32_t i = 0; i < nF; i++) {
            if (F[i].kind == HC_SPACE_HUMONGOUS) {
                // A header that is not there yet reads as class 0 or as what stood there before.
                if (hum_new(i)) {
                    F[i].kind = HC_SPACE_FREE;
                    continue;
                }
                walk_list(&w, F[i].bottom, hum_end(F[i].bottom), &n, &b);
            } else if (F[i].kind == HC_SPACE_OLD || F[i].kind == HC_SPACE_SURVIVOR || F[i].kind == HC_SPACE_ARCHIVE) {
                if (walk_list_living(&w, F[i].bottom, F[i].top, &n, &b) != F[i].top && !e->over)
                    violation("a class word in a region is unknown", F[i].bottom);
            }
        }
    }
    if (!e->over && marks_there()) graves_known = true;
    // One that was broken off counts what it took by the clock, whatever took it: it is not dared again at the very
    // next pause.
    uint64_t broken = now_ns(), rate = (cpu_ns() - from) / ((b >> 10) + 1);
    if (list_until && e->over && broken > list_until && !sooner) {
        list_rate = (broken - began) / ((b >> 10) + 1);
        if (b < 1 << 18 || (list_bytes() >> 10) * rate > opt.max_sync / 4 * 3) retry_after = RETRY_LATE * 1000000000ull;
    } else if (b >= 1 << 20) {
        list_rate = rate;
        retry_after = RETRY_SOON * 1000000000ull;
    }
    blob_end(e, at);
    put8(e, HC_EV_TOTAL);
    put_u(e, n);
    put_u(e, b);
}

static const char *cause(int kind, size_t *n) {
    // The finish comes inside the scope of the current cause (G1, and all of 25) or after it, when the current one is
    // "No GC" again.
    const char *c = vm.perf_cause;
    if (!c || !*c || !strncmp(c, "No GC", 5)) c = vm.perf_last_cause;
    if (kind == HC_PAUSE_WALK) c = "heapcam walk";
    if (!c) c = "";
    *n = strnlen(c, 80);
    return c;
}

static uint32_t missed_flags(void) { return missed || stale ? HC_PF_MISSED | missed << HC_PF_MISSED_SHIFT : 0; }

static void put_pause(struct enc *e, int kind, uint32_t flags, uint32_t depth, uint64_t cost0) {
    uint64_t now = now_ns();
    size_t n;
    const char *c = cause(kind, &n);
    put8(e, HC_EV_PAUSE);
    put_u(e, epoch_no);
    put_u(e, (uint64_t)kind);
    put_u(e, flags);
    put_u(e, depth);
    put_u(e, start_time - probe_epoch_ns);
    put_u(e, now - start_time);
    put_u(e, start_cost + (now - cost0));
    put_u(e, jvm_gc);
    put_u(e, last_finish - probe_epoch_ns);
    put_str(e, c, n);
    put_u(e, atomic_load_explicit(&interval_now, memory_order_relaxed));
}

static bool was_walked(uint64_t addr) {
    uint32_t i = region_of(addr);
    return i < nF && (F[i].kind == HC_SPACE_OLD || F[i].kind == HC_SPACE_SURVIVOR);
}

// What died with its class is measured while the class is still known (G1 leaves such objects in place after remark).
static void unload(int kind) {
    if (kind == HC_PAUSE_YOUNG || kind == HC_PAUSE_MIXED || kind == HC_PAUSE_WALK) return;
    bool died = classes_scan_all();
    if (kind == HC_PAUSE_FULL || !is_g1()) side_clear(); // everything was compacted
    if (!is_g1()) return;
    // G1 compacts no region that is nearly full of live objects: there stale class words are left.
    if (!died && !(kind == HC_PAUSE_FULL && classes_dying())) return;
    bool all = true;
    struct obj o;
    for (uint32_t i = 0; i < nF; i++)
        if (F[i].kind == HC_SPACE_OLD || F[i].kind == HC_SPACE_SURVIVOR)
            all &= walk_stale(F[i].bottom, F[i].top);
        else if (F[i].kind == HC_SPACE_HUMONGOUS && !hum_new(i))
            all &= obj_at(F[i].bottom, rd64((void *)F[i].bottom), &o) && walk_stale(F[i].bottom, F[i].bottom + o.bytes);
        else if (F[i].kind == HC_SPACE_EDEN && *ring32(HC_RING_OFF_DEPTH_NOW) == HC_DEPTH_FULL)
            (void)walk_stale(F[i].bottom, F[i].top); // up to the first buffer that a thread has not filled
    if (!all) return;
    classes_measured();
    side_end(was_walked);
}

// Classes that died and of whose objects none is left. In eden are objects that no list has: they wait for a collection
// that empties it, and if that went wrong for the next time that all is looked at.
static void forget_classes(int kind, bool unseen) {
    bool evac = kind == HC_PAUSE_YOUNG || kind == HC_PAUSE_MIXED;
    for (uint32_t i = 0; is_g1() && evac && !unseen && i < nS && i < nF; i++)
        unseen = (S[i].kind == HC_SPACE_EDEN || S[i].kind == HC_SPACE_SURVIVOR) && F[i].kind == HC_SPACE_OLD;
    bool full = kind == HC_PAUSE_FULL; // unload has looked at all that is left
    if (unseen && !full) classes_unseen();
    classes_forget(evac || full, !is_g1());
}

static PER_RECORDING bool emptied; // eden, by this pause: what is eden again is new

static bool was_freed(uint64_t addr) {
    uint32_t i = region_of(addr);
    if (emptied && i < nS && i < nF && S[i].kind == HC_SPACE_EDEN && F[i].kind == HC_SPACE_EDEN) return true;
    return i < nS && i < nF && S[i].kind != F[i].kind && S[i].kind != HC_SPACE_FREE &&
           (F[i].kind == HC_SPACE_FREE || F[i].kind == HC_SPACE_EDEN);
}

static void forget_freed(int kind) {
    emptied = kind == HC_PAUSE_YOUNG || kind == HC_PAUSE_MIXED;
    for (uint32_t i = 0; i < nF; i++)
        if (F[i].kind != HC_SPACE_OLD && F[i].kind != HC_SPACE_ARCHIVE) graves_drop(i);
    side_drop(was_freed);
}

static void give_up(struct enc *e, const char *what) {
    char text[300];
    size_t n = 0;
    const char *p = what ? what : "a read faulted";
    while (p[n] && n < sizeof text - 1) text[n] = p[n], n++;
    text[n] = 0;
    uint8_t *at = block_begin(e, HC_KIND_END);
    put8(e, HC_EV_END);
    put_u(e, now_ns() - probe_epoch_ns);
    put_u(e, HC_END_GAVE_UP);
    put_str(e, text, n);
    block_end(e, at);
    memcpy(ring + HC_RING_OFF_REASON, text, n + 1);
    atomic_store(&gave_up, true);
    ring_state(HC_STATE_GAVE_UP, NULL);
}

static void sync_block(struct enc *e, int reason, bool with_eden, uint32_t depth, uint64_t until) {
    uint64_t begin = now_ns();
    uint8_t *at = block_begin(e, HC_KIND_SYNC), *from = at;
    if (depth != HC_DEPTH_SAMPLES) {
        list_all(e, with_eden, until);
    } else {
        put8(e, HC_EV_TOTAL);
        put_u(e, 0);
        put_u(e, 0);
    }
    put_spaces(e);
    samples_live(e);
    put8(e, HC_EV_SYNCPOINT);
    put_u(e, epoch_no);
    put_u(e, (uint64_t)reason);
    put_u(e, (with_eden ? HC_SF_EDEN : 0) | (reason == HC_SYNC_FIRST ? HC_SF_FIRST : 0) |
                 (is_g1() && vm.major >= 17 && vm.major < 20 && !marks_there() ? HC_SF_UNCOMPACTED : 0));
    put_u(e, begin - probe_epoch_ns);
    put_u(e, now_ns() - begin);
    block_end(e, at);
    if (!e->over)
        atomic_store_explicit(ring64(HC_RING_OFF_LAST_SYNC_BYTES), (uint64_t)(e->p - from), memory_order_relaxed);
}

// What this epoch may take, ns; 0: any. What sampling took since the agent looked counts, as long as there is one.
static uint64_t may_take(void) {
    uint64_t may = atomic_load_explicit(ring64(HC_RING_OFF_EPOCH_MAX), memory_order_relaxed);
    uint64_t most = atomic_load_explicit(ring64(HC_RING_OFF_COST_MAX), memory_order_relaxed),
             beat = atomic_load_explicit(ring64(HC_RING_OFF_AGENT_HEARTBEAT), memory_order_relaxed);
    if (!most || now_ns() > beat + (uint64_t)HC_RING_AGENT_STALE_NS) return may;
    uint64_t spent = atomic_load_explicit(ring64(HC_RING_OFF_PROBE_NS), memory_order_relaxed) +
                     atomic_load_explicit(ring64(HC_RING_OFF_SAMPLE_NS), memory_order_relaxed) + start_cost;
    uint64_t left = most > spent ? most - spent : 1;
    return may && may < left ? may : left;
}

// One finish: what its steps hand on.
struct finish {
    struct enc e;
    uint64_t begin, cpu; // when it began; CPU time of this thread then
    uint64_t wanted;     // the ticket that a listing answers
    uint8_t *epoch_at;   // where the epoch's block begins
    int kind, forced, reason;
    uint32_t depth, flags, cut_to;
    bool locked, to_ring; // else the reserve is written
    bool fits, cut, seen; // seen: F is of this pause
    bool committed;
    const char *what; // why the walk was left, and where
    uint64_t where;
};

// An epoch takes about two bytes for each object of 40; this is three for each of 32.
static uint64_t epoch_bytes(struct work n, uint32_t depth) {
    return depth == HC_DEPTH_SAMPLES ? 0 : (n.rest + (depth == HC_DEPTH_FULL ? n.eden : 0)) / 32 * 3;
}

// Where the epoch is written: the ring, or the reserve if somebody else writes the ring or there is no room in it. The
// control thread moves what is in the reserve as soon as the agent has made room, or a larger ring has.
static void begin(struct finish *f, uint64_t bytes) {
    f->fits = true;
    f->to_ring = f->locked && (atomic_load(&reserve_len) || ring_room_in_pause() >= bytes);
    if (f->to_ring) {
        f->fits = reserve_flush(true);
        ring_begin(&f->e, true);
    } else {
        reserve_begin(&f->e);
        if (f->locked) atomic_store_explicit(&listing_did_not_fit, true, memory_order_relaxed);
    }
    f->epoch_at = f->e.p;
}

static void commit(struct finish *f) {
    ring_publish_in_pause(); // the counters first: who sees the epoch has them
    f->committed = f->fits && (f->to_ring ? ring_commit(&f->e, true) : reserve_commit(&f->e));
    if (f->to_ring) defs_committed(f->committed);
}

// Inside the guard: whatever is not understood, and a fault, leaves it.
static void record(void *arg) {
    struct finish *f = arg;
    struct enc *e = &f->e;
    ring_refresh_in_pause();
    f->wanted = atomic_load_explicit(ring64(HC_RING_OFF_SYNC_WANTED), memory_order_acquire);
    int reason = need_sync;
    if (!reason && f->wanted != answered_sync) reason = HC_SYNC_ROTATION;
    if (!reason) reason = f->forced;
    if (f->kind != HC_PAUSE_WALK) {
        nF = snapshot(F);
        f->seen = true;
        if (f->kind == 0) f->kind = pause_kind();
    }
    int kind = f->kind;
    begin(f, have_last && started && kind != HC_PAUSE_FULL ? epoch_bytes(to_walk(kind), f->depth) : 0);
    uint32_t depth = f->depth, flags = 0;
    bool concurrent = kind == HC_PAUSE_REMARK || kind == HC_PAUSE_CLEANUP;
    jvm_gc = vm_gc_number(concurrent);
    if (jvm_gc == UINT64_MAX) jvm_gc = vm_gc_number(false);
    uint64_t may = may_take();
    if (may && last_depth && kind != HC_PAUSE_WALK && kind != HC_PAUSE_FULL) {
        uint32_t d = affordable(depth, kind, may);
        f->cut = d < depth;
        f->cut_to = f->depth = depth = d;
    }
    if (depth > last_depth && last_depth && depth != HC_DEPTH_SAMPLES && !reason) reason = HC_SYNC_DEPTH;
    if (opt.fault_at && epoch_no == opt.fault_at) (void)rd64((void *)(uintptr_t)((opt.fault_at & 0xfff) + 8));
    unload(kind);
    if (f->locked) types_swap();
    put_defs(e, f->to_ring);
    if (f->to_ring) samples_put(e, true);
    f->epoch_at = e->p;
    bool evac_ok = true, exact = false;
    uint8_t *at = block_begin(e, HC_KIND_EPOCH);
    atomic_store_explicit(ring64(HC_RING_OFF_LIVE_BYTES), put_spaces(e), memory_order_relaxed);
    if (missed || stale) flags |= missed_flags(), reason = reason ? reason : HC_SYNC_MISSED;
    marks_clean = kind == HC_PAUSE_FULL;
    if (marks_clean) graves_known = false;
    if (kind == HC_PAUSE_FULL) reason = reason ? reason : HC_SYNC_FULL;
    bool dirty = eden_dirty && kind == HC_PAUSE_YOUNG;
    if (dirty) eden_dirty = false, reason = reason ? reason : HC_SYNC_FULL;
    if (depth != HC_DEPTH_SAMPLES && have_last && started && !missed && !stale && !dirty && kind != HC_PAUSE_FULL) {
        evac_ok = fates(e, kind, (int)depth);
        if (!evac_ok) {
            // The state cannot be followed through this pause. Start the block again without fates.
            e->p = f->epoch_at;
            dest_reset();
            census_reset();
            at = block_begin(e, HC_KIND_EPOCH);
            put_spaces(e);
            flags |= HC_PF_EVAC_FAILED;
            graves_known = false;
            reason = reason ? reason : HC_SYNC_EVAC_FAILED;
        }
        exact = evac_ok;
    }
    if (exact) flags |= HC_PF_EXACT;
    if (kind == HC_PAUSE_REMARK || kind == HC_PAUSE_CLEANUP || kind == HC_PAUSE_UNKNOWN || kind == HC_PAUSE_WALK)
        flags |= HC_PF_EDEN_KEPT;
    bool eden = kind == HC_PAUSE_FULL || (flags & HC_PF_EVAC_FAILED && !is_g1());
    if (!is_g1() && kind != HC_PAUSE_WALK && (kind == HC_PAUSE_YOUNG)) eden_known = F[0].bottom;
    if (eden && !is_g1()) eden_known = F[0].top, eden_dirty = F[0].top > F[0].bottom;
    if (f->to_ring) samples_resolve(e);
    census_put(e);
    uint8_t *before_pause = e->p;
    struct enc saved = *e;
    put_pause(e, kind, flags | (reason ? HC_PF_SYNC_FOLLOWS : 0), depth, f->begin);
    block_end(e, at);
    if ((uint64_t)(e->p - e->base) > largest_epoch) largest_epoch = (uint64_t)(e->p - e->base);
    if (reason) {
        if (depth != HC_DEPTH_SAMPLES && list_too_long(true)) // the next pause is recorded at depth samples
            e->over = true;
        else // one that only going up asks for is broken off where the budget ends
            sync_block(e, reason, eden && !is_g1(), depth, reason == HC_SYNC_DEPTH && may ? f->begin + may : 0);
        if (e->over && !saved.over && reason == HC_SYNC_DEPTH && may && now_ns() > f->begin + may) {
            f->cut = true;
            f->cut_to = last_depth;
            if (!have_last) f->depth = depth = last_depth; // nothing was walked, and nothing is known
            *e = saved;
            e->p = before_pause;
            put_pause(e, kind, flags, depth, f->begin);
            block_end(e, at);
            reason = 0;
        } else if (e->over && !saved.over) {
            // The listing does not fit: keep the epoch, ask again.
            (void)list_too_long(true);
            *e = saved;
            e->p = before_pause;
            put_pause(e, kind, flags, depth, f->begin);
            block_end(e, at);
            need_sync = reason == HC_SYNC_ROTATION ? HC_SYNC_LOST : reason;
            atomic_store_explicit(&listing_did_not_fit, true, memory_order_relaxed);
            reason = 0;
        }
    }
    if (depth == HC_DEPTH_SAMPLES || !reason) (void)list_too_long(false);
    if (is_g1()) forget_freed(kind);
    f->reason = reason;
    commit(f);
    faults_in_a_row = 0;
    if (kind == HC_PAUSE_WALK) return;
    forget_classes(kind, missed || stale || unseen);
    unseen = false;
}

// Inside a guard of its own: what was encoded of the fates is dropped, the pause is recorded still.
static void record_fault(void *arg) {
    struct finish *f = arg;
    if (!f->e.base) begin(f, 0); // it faulted before there was a place to write
    f->e.p = f->epoch_at;
    f->e.over = false;
    uint8_t *at = block_begin(&f->e, HC_KIND_EPOCH);
    if (f->seen && started) put_spaces(&f->e);
    put_pause(&f->e, f->kind ? f->kind : HC_PAUSE_UNKNOWN, HC_PF_FAULT | missed_flags(), f->depth, f->begin);
    block_end(&f->e, at);
    if (faults_in_a_row >= 8) give_up(&f->e, f->what);
    commit(f);
}

static void publish(void *unused) {
    (void)unused;
    ring_publish_in_pause();
}

static void finish(int pause, int forced) {
    struct finish f = {
        .kind = pause, .forced = forced, .begin = now_ns(), .cpu = cpu_ns(), .depth = *ring32(HC_RING_OFF_DEPTH_NOW)};
    epoch_no++;
    atomic_store_explicit(ring64(HC_RING_OFF_EPOCHS), epoch_no, memory_order_relaxed);
    census_reset();
    f.locked = ring_try();
    bool fault = !guarded(record, &f), lost = fault && ring_faulted();
    if (fault) graves_known = false;
    if (fault && !lost) {
        if (opt.oracle)
            log_line("epoch %llu: %s at %#llx", (unsigned long long)epoch_no, violated ? violated : "?",
                     (unsigned long long)violated_at);
        atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_FAILED), 1, memory_order_relaxed);
        faults_in_a_row++;
        dest_reset();
        census_reset();
        f.committed = false;
        f.reason = 0;
        f.what = violated, f.where = violated_at;
        lost = !guarded(record_fault, &f);
        if (!lost) violated = f.what, violated_at = f.where; // what the control thread says when it gives up
    }
    if (lost) f.committed = false, ring_broken();
    if (f.locked) ring_unlock();
    if (fault) {
        need_sync = HC_SYNC_FAULT;
        unseen = true;
    }
    if (!f.committed) {
        dest_reset(); // a walk that was left early leaves its bits
        atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_DROPPED), 1, memory_order_relaxed);
        need_sync = HC_SYNC_LOST;
    } else {
        missed = 0;
    }
    if (f.committed && f.reason) {
        need_sync = 0;
        answered_sync = f.wanted;
        atomic_store_explicit(ring64(HC_RING_OFF_SYNC_DONE), f.wanted, memory_order_release);
    }
    last_depth = f.depth;
    have_last = !fault && f.depth != HC_DEPTH_SAMPLES;
    struct area *t = L;
    L = F, nL = nF;
    F = t;
    last_total = *vm.total_collections;
    last_finish = now_ns();
    wall_sum += last_finish - f.begin, cpu_sum += cpu_ns() - f.cpu;
    if (cpu_sum > 20000000) wall_sum /= 2, cpu_sum /= 2;
    if (wall_sum < cpu_sum) wall_sum = cpu_sum;
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_PROBE_NS), start_cost + last_finish - f.begin, memory_order_relaxed);
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_PAUSE_NS), last_finish - start_time, memory_order_relaxed);
    uint32_t dw = atomic_load_explicit(ring32(HC_RING_OFF_DEPTH_WANTED), memory_order_relaxed);
    if (dw < HC_DEPTH_SAMPLES || dw > HC_DEPTH_FULL) dw = (uint32_t)opt.depth;
    if (f.cut)
        cap = f.cut_to;
    else if (dw <= cap)
        cap = HC_DEPTH_FULL; // the agent has taken note
    if (dw > cap) dw = cap;
    atomic_store_explicit(ring32(HC_RING_OFF_DEPTH_NOW), too_long ? HC_DEPTH_SAMPLES : dw, memory_order_relaxed);
    if (f.cut)
        atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_CUT), 1,
                                  memory_order_release); // after the depth that it tells of
    if (!gave_up && !guarded(publish, NULL)) ring_broken();
}

static void skip_pause(void *unused) {
    (void)unused;
    (void)pause_kind(); // which tells remarks from cleanups by what was before
}

void epoch_finish(void) {
    if (nesting == 0) return; // loaded in the middle of a pause
    if (pending && !atomic_load(&gave_up)) {
        bool waits = atomic_load_explicit(&spool_waits, memory_order_relaxed);
        if (vm.perf_inv[0] && !skipped && !is_off() && !no_reader() && !waits) {
            finish(0, 0);
        } else {
            have_last = false, need_sync = HC_SYNC_LOST;
            graves_known = false;
            unseen = true;
            if (waits) { // its number is missing then
                atomic_store_explicit(ring64(HC_RING_OFF_EPOCHS), ++epoch_no, memory_order_relaxed);
                atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_DROPPED), 1, memory_order_relaxed);
            }
            if (vm.perf_inv[0]) (void)guarded(skip_pause, NULL);
        }
    }
    if (pending && vm.perf_inv[0]) count_collections(); // a nested finish ends nothing
    pending = false;
    if (--nesting == 0) atomic_fetch_add_explicit(&gc_counter, 1, memory_order_acq_rel);
}

void epoch_want_sync(int reason) {
    int none = 0;
    atomic_compare_exchange_strong(&need_sync, &none, reason);
}

static void look_at_stop(void *unused) {
    (void)unused;
    classes_scan_new();
    nS = snapshot(S);
    nF = snapshot(F);
    started = true;
}

// A stop without a collection. Nothing moves; what old space gained since the last pause is told, and everything is
// listed.
void epoch_walk(int reason) {
    char why[HC_MAX_REASON];
    if (atomic_load(&gave_up) || is_off() || !vm_late(why)) return;
    atomic_fetch_add_explicit(&gc_counter, 1, memory_order_acq_rel);
    start_time = now_ns();
    count_missed();
    stale = have_last && last_total != *vm.total_collections;
    started = false;
    (void)guarded(look_at_stop, NULL);
    start_cost = 0;
    if (started) finish(HC_PAUSE_WALK, reason), count_collections();
    atomic_fetch_add_explicit(&gc_counter, 1, memory_order_acq_rel);
}

uint64_t oracle_tally(uint64_t *objects, uint64_t *bytes) {
    volatile uint64_t unknown = 0;
    *objects = *bytes = 0;
    if (GUARD_ENTER()) {
        guard_arm();
        classes_scan_new();
        census_reset();
        nF = snapshot(F);
        tlab_holes();
        for (uint32_t i = 0; i < nF; i++) {
            if (F[i].kind == HC_SPACE_FREE || F[i].kind == HC_SPACE_HUMONGOUS_CONT) continue;
            if (!is_g1() && i == 2) continue; // to-space
            uint64_t top = F[i].kind == HC_SPACE_HUMONGOUS ? hum_end(F[i].bottom) : F[i].top;
            uint32_t h = 0;
            uint64_t seen = 0; // below it, what G1 has not marked is dead, and JVMTI does not count it
            const uint64_t *bits = marks_there() && (F[i].kind == HC_SPACE_OLD || F[i].kind == HC_SPACE_ARCHIVE)
                                       ? marks_of(F[i].bottom, top, &seen)
                                       : NULL;
            for (uint64_t a = F[i].bottom; a < top;) {
                if (a < seen) {
                    uint64_t living = marked_from(bits, a, seen);
                    if (living != a) {
                        a = living;
                        continue;
                    }
                }
                while (h < nholes && holes[h].lo < a) h++;
                if (F[i].kind == HC_SPACE_EDEN && h < nholes && holes[h].lo == a) {
                    a = holes[h].hi;
                    continue;
                }
                struct obj o;
                if (!obj_at(a, rd64((void *)a), &o)) {
                    log_line("oracle: unknown at %#llx in %u of kind %u (%#llx to %#llx): %#llx %#llx %#llx %#llx",
                             (unsigned long long)a, i, (unsigned)F[i].kind, (unsigned long long)F[i].bottom,
                             (unsigned long long)top, (unsigned long long)rd64((void *)a),
                             (unsigned long long)rd64((char *)a + 8), (unsigned long long)rd64((char *)a + 16),
                             (unsigned long long)rd64((char *)a + 24));
                    for (uint32_t x = 0; x < nholes; x++)
                        log_line("oracle: hole %#llx to %#llx", (unsigned long long)holes[x].lo,
                                 (unsigned long long)holes[x].hi);
                    unknown++;
                    break;
                }
                census(o.type, 0, 0, o.bytes);
                ++*objects, *bytes += o.bytes;
                a += o.bytes;
            }
        }
    } else {
        unknown = UINT64_MAX;
    }
    guard_disarm();
    return unknown;
}
