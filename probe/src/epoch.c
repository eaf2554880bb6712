//go:build ignore

// epoch.c: records a pause; the interface is epoch.h. The steps at the end of a pause are in finish() and record().
#include "epoch.h"

#include <string.h>

#include "budget.h"
#include "census.h"
#include "classes.h"
#include "cuts.h"
#include "depth.h"
#include "finish.h"
#include "guard.h"
#include "heapmap.h"
#include "listing.h"
#include "log.h"
#include "marks.h"
#include "moves.h"
#include "options.h"
#include "os.h"
#include "pause.h"
#include "ramp.h"
#include "recording.h"
#include "retry.h"
#include "ring.h"
#include "samples.h"
#include "shadow.h"
#include "spool.h"
#include "stacks.h"
#include "storm.h"
#include "tops.h"
#include "switch.h"
#include "unloading.h"
#include "walk.h"

static PER_RECORDING struct heapmaps maps;
static PER_RECORDING bool have_last, started; // the heap map of the last finish, of this start is valid
// A full collection left something in eden: live objects, or, where the JVM does not count what it left, what the pause
// granted. The next young collection therefore ends with a listing, and nothing is said of its moves.
static PER_RECORDING bool eden_dirty;
static PER_RECORDING uint64_t last_finish, start_time, start_cost;
static PER_RECORDING uint64_t jvm_gc; // number of the collection in the JVM's log
static PER_RECORDING uint64_t answered_sync;
static PER_RECORDING uint32_t last_depth;
// Markers nest (a metadata-threshold collection posts start, start, finish, finish): each start begins anew, a finish
// without a start of its own is the outer one and ends nothing.
static PER_RECORDING int nesting;
static PER_RECORDING bool pending, skipped; // skipped: nothing was recorded when this pause began
static PER_RECORDING bool unseen;           // a pause was not recorded, or not understood

// Written by the VM thread alone, and read by others.
static PER_RECORDING _Atomic uint64_t epoch_no;
// Why the next pause ends with a listing; 0: for no reason. Both threads write it. The control thread changes 0 alone,
// by epoch_want_sync. The VM thread sets 0 only after it has committed a listing: that answers every request up to
// then.
static PER_RECORDING _Atomic int need_sync = HC_SYNC_FIRST;

bool epoch_init(void) {
    if (!heapmaps_init(&maps)) return false;
    last_finish = now_ns();
    char why[HC_MAX_REASON];
    if (vm_late(why)) pause_count_collections(); // not before the heap exists: then none has been
    return ramp_init() && marks_init(heapmap()->areas());
}

uint64_t epoch_number(void) { return atomic_load_explicit(&epoch_no, memory_order_relaxed); }

void epoch_tally(struct tally *t) {
    t->maps = &maps;
    heap_tally(t);
}

static uint64_t next_epoch(void) {
    uint64_t n = epoch_number() + 1;
    atomic_store_explicit(&epoch_no, n, memory_order_relaxed);
    atomic_store_explicit(ring64(HC_RING_OFF_EPOCHS), n, memory_order_relaxed);
    return n;
}

// ---- the start of a pause ------------------------------------------------------------------------
static void look_at_start(void *unused) {
    (void)unused;
    ring_refresh_in_pause();
    if (!pause_counters_there()) return; // the first pause: vm_late has not found them
    pause_counters_at_start();
    skipped = is_off();
    if (skipped) return;
    pause_count_missed();
    pause_look_stale(have_last);
    depth_lower();
    classes_scan_new();
    heapmap()->read(&maps.start);
    cuts_at_start(&maps.start, (int)depth_now());
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

// ---- the finish: its steps -----------------------------------------------------------------------
static void put_pause(struct finish *f, uint32_t flags) {
    uint64_t now = now_ns();
    struct pause_event p = {.epoch = f->epoch, .kind = f->kind, .flags = flags, .depth = f->depth,
                            .start = start_time - probe_epoch_ns, .duration = now - start_time,
                            .cost = start_cost + (now - f->begin), .jvm_gc = jvm_gc,
                            .last_finish = last_finish - probe_epoch_ns,
                            .interval = atomic_load_explicit(&interval_now, memory_order_relaxed)};
    pause_put(&f->e, &p);
}

// What kind of a pause it was, and whether a listing is due already.
static void identify(struct finish *f) {
    ring_refresh_in_pause();
    f->wanted = atomic_load_explicit(ring64(HC_RING_OFF_SYNC_WANTED), memory_order_acquire);
    f->reason = need_sync;
    if (!f->reason && f->wanted != answered_sync) f->reason = HC_SYNC_ROTATION;
    // A stop of its own gives the listing under way its next slice.
    if (!f->reason && !(f->forced == HC_SYNC_WALK && ramp_open())) f->reason = f->forced;
    if (f->kind != HC_PAUSE_WALK) heapmap()->read(&maps.finish), f->seen = true; // else it is of this stop
    if (f->kind == 0) f->kind = pause_kind(&maps);
    heapmaps_leave_new(&maps, f->kind, started);
}

// The depth at which the pause is recorded: less than f->depth where the budget says so.
static void decide_depth(struct finish *f) {
    f->may = storm_now(f->begin) ? 0 : budget_may_take(start_cost); // a storm has a budget of its own
    struct work walk = heapmap()->to_walk(&maps, kind_evacuates(f->kind));
    bool walked = last_depth && f->kind != HC_PAUSE_WALK && f->kind != HC_PAUSE_FULL;
    if (walked && started) budget_note_walk(walk);
    if (f->may && walked) {
        uint64_t list = ramp_allowed() ? 0 : heapmap()->list_bytes(&maps.finish);
        struct prospect p = {walk, list, start_time - last_finish, f->may, f->depth, last_depth, have_last};
        uint32_t d = budget_depth(&p);
        f->cut = d < f->depth, f->cut_to = f->depth = d;
    }
    if (f->depth > last_depth && last_depth && f->depth != HC_DEPTH_SAMPLES && !f->reason) f->reason = HC_SYNC_DEPTH;
}

// Whether a listing that this pause forces is left out. It is due until one is made, and what moves until then is of no
// use to a reader: so no object is recorded.
static void weather_storm(struct finish *f) {
    if (f->kind == HC_PAUSE_FULL) storm_full_collection(f->begin, f->reason || ramp_open());
    if (f->kind == HC_PAUSE_WALK || f->depth == HC_DEPTH_SAMPLES || f->reason == HC_SYNC_FIRST) return;
    bool due = f->reason || f->kind == HC_PAUSE_FULL || pause_missed() || (eden_dirty && f->kind == HC_PAUSE_YOUNG);
    struct storm_pause p = {f->begin, start_time, heapmap()->list_bytes(&maps.finish), due};
    if (!storm_leaves_out(&p)) return;
    f->left_out = true;
    f->depth = HC_DEPTH_SAMPLES;
    f->flags |= HC_PF_LEFT_OUT;
    if (!due) f->reason = HC_SYNC_DEPTH;
}

static uint64_t begin_block(struct finish *f) {
    f->block = block_begin(&f->e, HC_KIND_EPOCH);
    return heapmap()->put_spaces(&f->e, &maps);
}

// Requests a listing if the kind of this pause needs one. Returns whether its moves cannot be followed.
static bool unfollowable(struct finish *f) {
    bool full = f->kind == HC_PAUSE_FULL, dirty = eden_dirty && f->kind == HC_PAUSE_YOUNG;
    if (pause_missed()) f->flags |= pause_missed_flags(), f->reason = f->reason ? f->reason : HC_SYNC_MISSED;
    marks_clean = full;
    if (full) graves_known = false, f->reason = f->reason ? f->reason : HC_SYNC_FULL;
    if (dirty) eden_dirty = false, f->reason = f->reason ? f->reason : HC_SYNC_FULL;
    if (f->left_out) {
        need_sync = f->reason;
        f->reason = 0;
    }
    return f->depth == HC_DEPTH_SAMPLES || !have_last || !started || pause_missed() || dirty || full;
}

static void put_moves(struct finish *f) {
    if (moves_put(&f->e, &maps, f->kind, (int)f->depth)) {
        f->flags |= HC_PF_EXACT;
        return;
    }
    // The state cannot be followed through this pause. Start the block again without moves.
    bool over = f->e.over;
    finish_roll_back(f, &f->at_epoch, true);
    f->e.over = over; // what did not fit once is not tried again
    begin_block(f);
    f->flags |= HC_PF_EVAC_FAILED;
    graves_known = false;
    f->reason = f->reason ? f->reason : HC_SYNC_EVAC_FAILED;
}

// What eden holds after this pause, of collectors without regions.
static void look_at_eden(struct finish *f) {
    struct heapmap *m = &maps.finish;
    int k = f->kind;
    if (k == HC_PAUSE_REMARK || k == HC_PAUSE_CLEANUP || k == HC_PAUSE_UNKNOWN || k == HC_PAUSE_WALK)
        f->flags |= HC_PF_EDEN_KEPT;
    if (vm_has_regions()) return;
    f->with_eden = k == HC_PAUSE_FULL || f->flags & HC_PF_EVAC_FAILED;
    if (k == HC_PAUSE_YOUNG) m->eden_known = m->area[EDEN].bottom;
    if (f->with_eden) m->eden_known = m->area[EDEN].top, eden_dirty = used(&m->area[EDEN]) > 0;
    if (k == HC_PAUSE_WALK) f->with_eden = eden_dirty; // what a full collection left there stays in the state
}

static void put_epoch(struct finish *f) {
    atomic_store_explicit(ring64(HC_RING_OFF_LIVE_BYTES), begin_block(f), memory_order_relaxed);
    bool newer = false;
    if (kind_evacuates(f->kind) || f->kind == HC_PAUSE_FULL) heapmap()->drop_granted(&maps.finish);
    if (unfollowable(f)) {
        census_reset();
        ramp_forget();
        if (started && !pause_missed()) moves_keep_sites(&maps, f->kind, (int)f->depth);
    } else {
        newer = ramp_put_lost(&f->e, &maps);
        put_moves(f);
        if (f->flags & HC_PF_EXACT) ramp_emptied(&maps, kind_evacuates(f->kind));
    }
    look_at_eden(f);
    if (f->to_ring) samples_resolve(&f->e, &maps.finish, f->kind == HC_PAUSE_FULL || pause_missed());
    newer |= census_put(&f->e);
    if (!f->e.over && shadow_format(newer)) f->block[HC_BLOCK_OFF_VERSION] = shadow_format(newer);
    f->before_pause = f->e;
    put_pause(f, f->flags | (f->reason ? HC_PF_SYNC_FOLLOWS : 0));
    block_end(&f->e, f->block);
    uint64_t bytes = (uint64_t)(f->e.p - f->e.base);
    if (bytes > largest_epoch) largest_epoch = bytes;
}

// No listing follows after all.
static void end_without_listing(struct finish *f) {
    finish_roll_back(f, &f->before_pause, false);
    put_pause(f, f->flags);
    block_end(&f->e, f->block);
    f->reason = 0;
}

// A listing that would take too much in a storm: keep the epoch, and let the next pause decide.
static void leave_out(struct finish *f) {
    need_sync = f->reason;
    f->flags |= HC_PF_LEFT_OUT;
    storm_left_out(f->begin);
    ramp_forget();
    if (!have_last) f->depth = HC_DEPTH_SAMPLES; // nothing was walked, and nothing is known
    end_without_listing(f);
}

// The listing does not fit: keep the epoch, ask again.
static void ask_again(struct finish *f) {
    need_sync = f->reason == HC_SYNC_ROTATION ? HC_SYNC_LOST : f->reason;
    end_without_listing(f);
    atomic_store_explicit(&listing_did_not_fit, true, memory_order_relaxed);
}

// The next slice of the listing under way or, if one is due that would take too long as a whole, the first of a new
// one. Returns whether this pause lists no more than that.
static bool put_slice(struct finish *f) {
    if (f->depth == HC_DEPTH_SAMPLES || !ramp_allowed() || f->before_pause.over) return false;
    uint64_t now = now_ns(), may = budget_slice(now - start_time), bytes = heapmap()->list_bytes(&maps.finish);
    uint64_t all = f->reason ? budget_listing(bytes) : 0;
    bool whole = f->reason && budget_fits(bytes, (uint64_t)(f->e.end - f->e.p));
    struct storm_pause p = {f->begin, start_time, bytes, true};
    if (!may || (whole && (all <= may || storm_in_one_piece(&p, all)))) return false;
    if (!f->reason && !ramp_open()) return true;
    if (f->reason && eden_dirty) { // the next pause tells of no moves, and would end what begins here
        need_sync = f->reason;
        end_without_listing(f);
        return true;
    }
    struct enc epoch = f->e;
    struct slice s = {&maps, f->epoch, now + may, f->reason, f->with_eden, f->kind};
    ramp_put_slice(&f->e, &s);
    if (f->e.over && f->reason) {
        ask_again(f);
    } else if (f->e.over) {
        f->e = epoch; // the next pause has it
        atomic_store_explicit(&listing_did_not_fit, true, memory_order_relaxed);
    }
    return true;
}

static void put_listing(struct finish *f) {
    uint64_t bytes = heapmap()->list_bytes(&maps.finish);
    // a listing whose only reason is a greater depth is aborted when the budget is spent
    bool budgeted = f->reason == HC_SYNC_DEPTH && f->may;
    bool storm = !budgeted && storm_now(f->begin), walk = f->kind == HC_PAUSE_WALK;
    struct storm_pause p = {f->begin, start_time, bytes, true};
    bool piece = storm || !ramp_allowed() || storm_in_one_piece(&p, budget_listing(bytes));
    uint64_t now = now_ns(), slice = piece ? 0 : budget_slice(now - start_time);
    uint64_t most = slice ? slice : budget_whole(), until = most ? now + most : 0;
    uint64_t other = budgeted ? f->begin + f->may : storm && !walk ? storm_ends(f->begin) : 0;
    struct listing l = {&maps, f->epoch, f->reason, f->kind, f->with_eden, f->depth, until, false};
    if (other && (!until || other < until)) l.until = other, l.sooner = true;
    if (f->depth != HC_DEPTH_SAMPLES && !ramp_allowed() && budget_listing_too_long(true, bytes))
        f->e.over = true; // the next pause is recorded at depth samples
    else
        listing_put(&f->e, &l);
    if (!f->e.over || f->before_pause.over) return;
    if (budgeted && now_ns() > other) {
        f->cut = true, f->cut_to = last_depth;
        if (!have_last) f->depth = last_depth; // nothing was walked, and nothing is known
        end_without_listing(f);
    } else if (storm && !walk && now_ns() > other) {
        leave_out(f);
    } else {
        if (!ramp_allowed()) (void)budget_listing_too_long(true, bytes);
        bool late = slice && now_ns() > until; // time ended, not the room
        ask_again(f);
        if (late) atomic_store_explicit(&listing_did_not_fit, false, memory_order_relaxed);
    }
}

// Inside the guard: a fault, and whatever is not understood, ends it early (siglongjmp).
static void record(void *arg) {
    struct finish *f = arg;
    identify(f);
    bool walk = have_last && started && f->kind != HC_PAUSE_FULL;
    finish_begin(f, walk ? finish_bytes(heapmap()->to_walk(&maps, kind_evacuates(f->kind)), f->depth) : 0);
    jvm_gc = pause_jvm_gc(f->kind);
    decide_depth(f);
    weather_storm(f);
    finish_provoke(f);
    bool dead = unloading_look(&maps, f->kind, (int)depth_now(), start_time, f->left_out);
    if (dead && !f->reason) f->reason = HC_SYNC_FAULT;
    finish_define(f);
    put_epoch(f);
    struct storm_pause p = {f->begin, start_time, heapmap()->list_bytes(&maps.finish), true};
    if (f->reason == HC_SYNC_EVAC_FAILED && storm_leaves_out(&p)) leave_out(f);
    bool sliced = put_slice(f);
    if (f->reason && !sliced) put_listing(f);
    if (!sliced && f->reason && f->depth != HC_DEPTH_SAMPLES) ramp_whole();
    listing_predict(&maps.finish, f->reason && f->depth != HC_DEPTH_SAMPLES);
    unloading_freed(&maps, f->kind);
    finish_commit(f);
    retry_understood(f->depth != HC_DEPTH_SAMPLES);
    if (f->kind == HC_PAUSE_WALK) return;
    unloading_forget(&maps, f->kind, pause_missed() || unseen, samples_sent());
    unseen = false;
}

// Inside a guard of its own: what was encoded of the moves is dropped, the pause is recorded still.
static void record_fault(void *arg) {
    struct finish *f = arg;
    if (!f->e.base) finish_begin(f, 0); // it faulted before there was a place to write
    finish_roll_back(f, &f->at_epoch, false); // finish has reset what the walks counted, outside of the guard
    f->e.over = false;
    f->block = block_begin(&f->e, HC_KIND_EPOCH);
    if (f->seen && started) heapmap()->put_spaces(&f->e, &maps);
    if (!f->kind) f->kind = HC_PAUSE_UNKNOWN;
    put_pause(f, HC_PF_FAULT | pause_missed_flags());
    block_end(&f->e, f->block);
    if (retry_is_hopeless()) finish_give_up(f);
    finish_commit(f);
}

// Records the pause, or that it was not understood. Returns whether a fault or a violation ended it.
static bool record_guarded(struct finish *f) {
    f->locked = ring_try();
    bool fault = !guarded(record, f), lost = fault && ring_faulted();
    if (fault) graves_known = false, tops_clear();
    if (fault && !lost) {
        if (opt.oracle)
            log_line("collection %llu could not be read: %s (at %#llx)", (unsigned long long)f->epoch,
                     violated ? violated : "?", (unsigned long long)violated_at);
        atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_FAILED), 1, memory_order_relaxed);
        retry_faulted(violated_by_contents());
        dest_reset();
        census_reset();
        f->committed = false, f->reason = 0;
        f->what = violated, f->where = violated_at;
        lost = !guarded(record_fault, f);
        if (!lost) violated = f->what, violated_at = f->where; // what the control thread says when it gives up
    }
    if (lost) f->committed = false, samples_committed(false), ring_broken();
    if (f->locked) ring_unlock();
    return fault;
}

// What the next pause has to know of this one.
static void note_outcome(struct finish *f, bool fault) {
    // Young collections free no methods.
    if (fault || !kind_evacuates(f->kind) || pause_missed()) stacks_methods_freed();
    // !fits: an epoch that waited in the reserve is lost as well, and with it what it would have said of others.
    if (fault || f->depth == HC_DEPTH_SAMPLES || !f->fits) ramp_forget();
    if (fault) {
        need_sync = HC_SYNC_FAULT;
        unseen = true;
    }
    if (!f->committed) {
        dest_reset(); // a walk that was left early leaves its bits
        atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_DROPPED), 1, memory_order_relaxed);
        if (fault || !ramp_follows()) need_sync = HC_SYNC_LOST;
    } else {
        pause_clear_missed();
    }
    ramp_finish(&maps, f->epoch, f->committed);
    if (f->committed && f->reason) {
        need_sync = 0;
        answered_sync = f->wanted;
        atomic_store_explicit(ring64(HC_RING_OFF_SYNC_DONE), f->wanted, memory_order_release);
    }
    last_depth = f->depth;
    have_last = !fault && f->depth != HC_DEPTH_SAMPLES;
    heapmaps_next(&maps);
    pause_note_finish();
}

static void note_cost(const struct finish *f) {
    last_finish = now_ns();
    uint64_t took = last_finish - f->begin;
    storm_spent(last_finish, start_cost + took, f->reason && f->depth != HC_DEPTH_SAMPLES);
    budget_learn_finish(took, cpu_ns() - f->cpu);
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_PROBE_NS), start_cost + took, memory_order_relaxed);
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_PAUSE_NS), last_finish - start_time, memory_order_relaxed);
}

static void finish(int pause, int forced) {
    struct finish f = {.kind = pause, .forced = forced, .begin = now_ns(), .cpu = cpu_ns(), .depth = depth_now()};
    f.epoch = next_epoch();
    if (!ramp_behind()) census_reset(); // else this epoch tells what the lost ones have counted
    bool fault = record_guarded(&f);
    note_outcome(&f, fault);
    note_cost(&f);
    const bool sound = !fault && !(f.flags & (HC_PF_MISSED | HC_PF_FAULT));
    const bool emptied = fault || f.flags & HC_PF_MISSED || kind_evacuates(f.kind) || f.kind == HC_PAUSE_FULL;
    shadow_next(emptied, sound);
    depth_set_next(f.cut, f.cut_to);
    if (!gave_up && !guarded(finish_publish, NULL)) ring_broken();
}

// ---- entry points --------------------------------------------------------------------------------
static void skip_pause(void *unused) {
    (void)unused, (void)pause_kind(&maps); // which distinguishes remarks from cleanups by what was before
}

static void finish_unrecorded(bool waits) {
    shadow_next(true, false);
    stacks_methods_freed();
    have_last = graves_known = false;
    need_sync = HC_SYNC_LOST;
    ramp_forget();
    tops_clear();
    unseen = true;
    if (waits) { // its number is missing then
        next_epoch();
        atomic_fetch_add_explicit(ring64(HC_RING_OFF_EPOCHS_DROPPED), 1, memory_order_relaxed);
    }
    if (pause_counters_there()) (void)guarded(skip_pause, NULL);
}

void epoch_finish(void) {
    if (nesting == 0) return; // loaded in the middle of a pause
    if (pending && !atomic_load(&gave_up)) {
        bool waits = atomic_load_explicit(&spool_waits, memory_order_relaxed);
        if (pause_counters_there() && !skipped && !is_off() && !ring_abandoned() && !waits)
            finish(0, 0);
        else
            finish_unrecorded(waits);
    }
    if (pending && pause_counters_there()) pause_count_collections(); // a nested finish ends nothing
    if (!pending) stacks_methods_freed(); // of the outer one, the kind is not known
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
    heapmap()->read(&maps.start);
    heapmap()->read(&maps.finish);
    started = true;
}

// Nothing moves; what old space gained since the last pause is recorded, and everything is listed.
void epoch_walk(int reason) {
    char why[HC_MAX_REASON];
    if (atomic_load(&gave_up) || is_off() || !vm_late(why)) return;
    atomic_fetch_add_explicit(&gc_counter, 1, memory_order_acq_rel);
    start_time = now_ns();
    pause_count_missed();
    pause_look_stale(have_last);
    started = false;
    (void)guarded(look_at_stop, NULL);
    start_cost = 0;
    if (started) {
        depth_set_next(false, 0); // a depth that the agent wants need not wait for a collection
        finish(HC_PAUSE_WALK, reason);
        pause_count_collections();
    }
    atomic_fetch_add_explicit(&gc_counter, 1, memory_order_acq_rel);
}
