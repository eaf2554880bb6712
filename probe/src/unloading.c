//go:build ignore

// unloading.c: unloading.h.
#include "unloading.h"

#include "budget.h"
#include "census.h"
#include "classes.h"
#include "heapwalk.h"
#include "heapcam_abi.h"
#include "marks.h"
#include "object.h"
#include "os.h"
#include "pause.h"
#include "recording.h"
#include "sidetable.h"
#include "tops.h"

static bool was_walked(const void *arg, uint64_t addr) {
    const struct heapmaps *m = arg;
    uint32_t i = region_of(addr);
    return i < m->finish.n && (m->finish.area[i].kind == HC_SPACE_OLD || m->finish.area[i].kind == HC_SPACE_SURVIVOR);
}

// What a walk takes, ps for each byte, as the last one took.
static PER_RECORDING uint64_t rate = 500;

// Whether the objects of classes that died are not looked for now, since that would take longer than a slice of a
// listing may. If nothing is listed either, nobody needs to know them.
static bool too_long(uint64_t bytes, int depth, uint64_t from) {
    uint64_t most = budget_slice(now_ns() - from);
    return depth == HC_DEPTH_SAMPLES || (most && bytes / 1000 * rate > most);
}

static bool look(const struct heapmap *m, const struct heapmaps *maps, bool eden_alone, int depth) {
    bool all = true;
    struct obj o;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct area *f = &m->area[i];
        if (f->kind == HC_SPACE_EDEN && depth == HC_DEPTH_FULL)
            (void)walk_stale(f->bottom, f->top); // up to the first buffer that a thread has not filled
        if (eden_alone) continue;
        if (f->kind == HC_SPACE_OLD || f->kind == HC_SPACE_SURVIVOR)
            all &= walk_stale(f->bottom, f->top);
        else if (f->kind == HC_SPACE_HUMONGOUS && !humongous_new(maps, i))
            all &= obj_at(f->bottom, rd64((void *)f->bottom), &o) && walk_stale(f->bottom, f->bottom + o.bytes);
    }
    return all;
}

static PER_RECORDING uint64_t unloaded; // that the JVM had counted at the last look at all classes

// How many classes died, by a look at all of them. lightly: in a storm, when nothing is walked. There a look takes more
// than all else that the probe does, so it is left out while the JVM counts no class more.
static uint32_t look_at_classes(bool lightly) {
    if (!vm.perf_unloaded[0] || !vm.perf_unloaded[1]) return classes_scan_all();
    uint64_t n = rd64(vm.perf_unloaded[0]) + rd64(vm.perf_unloaded[1]);
    if (lightly && n == unloaded) return 0;
    unloaded = n;
    return classes_scan_all();
}

bool unloading_look(const struct heapmaps *m, int kind, int depth, uint64_t from, bool left_out) {
    if (kind == HC_PAUSE_YOUNG || kind == HC_PAUSE_MIXED || kind == HC_PAUSE_WALK) return false;
    uint32_t died = look_at_classes(left_out);
    census_forget(died);
    if (kind == HC_PAUSE_FULL || !vm_has_regions()) side_clear(); // everything was compacted
    if (!vm_has_regions()) return false;
    if (kind == HC_PAUSE_FULL || pause_missed()) tops_clear();
    // G1 compacts no region that is nearly full of live objects: there stale class words are left.
    if (!died && !(kind == HC_PAUSE_FULL && classes_dying())) return false;
    uint64_t bytes = 0, began = now_ns();
    for (uint32_t i = 0; i < m->finish.n; i++) {
        const struct area *f = &m->finish.area[i];
        if (f->kind == HC_SPACE_OLD || f->kind == HC_SPACE_SURVIVOR) bytes += used(f);
    }
    if (too_long(bytes, depth, from)) {
        bool told = tops_note(&m->finish);
        (void)look(&m->finish, m, true, depth);
        return !told && depth != HC_DEPTH_SAMPLES;
    }
    bool all = look(&m->finish, m, false, depth);
    if (bytes >= 1 << 20) rate = (now_ns() - began) * 1000 / bytes;
    if (!all) return false;
    classes_measured();
    side_end(was_walked, m);
    return false;
}

// Objects in eden are in no list, so their types wait for a collection that empties eden. If that collection failed,
// they wait until all objects are looked at again.
void unloading_forget(const struct heapmaps *m, int kind, bool unseen, bool samples_sent) {
    bool evac = kind_evacuates(kind);
    if (vm_has_regions() && evac && !unseen) unseen = !heapwalk()->emptied(m);
    bool full = kind == HC_PAUSE_FULL; // unloading_look has looked at all that is left
    if (unseen && !full) classes_unseen();
    classes_forget(evac || full, !vm_has_regions(), samples_sent);
}

struct freed {
    const struct heapmaps *m;
    bool eden_emptied; // by this pause: what is eden again is new
};

static bool was_freed(const void *arg, uint64_t addr) {
    const struct freed *f = arg;
    uint32_t i = region_of(addr);
    if (i >= regions_in_both(f->m)) return false;
    uint32_t was = f->m->start.area[i].kind, is = f->m->finish.area[i].kind;
    if (f->eden_emptied && was == HC_SPACE_EDEN && is == HC_SPACE_EDEN) return true;
    return was != is && was != HC_SPACE_FREE && (is == HC_SPACE_FREE || is == HC_SPACE_EDEN);
}

void unloading_freed(const struct heapmaps *m, int kind) {
    if (!vm_has_regions()) return;
    for (uint32_t i = 0; i < m->finish.n; i++) {
        uint32_t k = m->finish.area[i].kind;
        if (k != HC_SPACE_OLD && k != HC_SPACE_ARCHIVE) graves_drop(i);
        bool same = i < regions_in_both(m) && m->start.area[i].kind == k;
        if (k == HC_SPACE_FREE || k == HC_SPACE_EDEN || !same) tops_drop(i);
    }
    struct freed f = {m, kind_evacuates(kind)};
    side_drop(was_freed, &f);
}
