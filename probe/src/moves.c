//go:build ignore

// moves.c: moves.h.
#include "moves.h"

#include "budget.h"
#include "crew.h"
#include "crewmoves.h"
#include "guard.h"
#include "heapwalk.h"
#include "options.h"
#include "os.h"
#include "ramp.h"
#include "recording.h"
#include "samples.h"
#include "shadow.h"
#include "tlabs.h"

// The events that list eden: one of what the VM thread walks itself, up to what one of the crew has walked, of which
// each range has its own, since lanes begin anew there.
struct eden {
    struct enc *e;
    const struct heapmap *finish;
    struct walker w;
    uint8_t *at; // NULL: none is open
};

static void eden_begins(struct eden *x) {
    if (x->at) return;
    x->w = walker_on(x->e, x->finish);
    x->at = blob_begin(x->e, HC_EV_ALLOCS);
}

static void eden_ends(struct eden *x) {
    if (x->at) blob_end(x->e, x->at);
    x->at = NULL;
}

// A range between two starts is being walked. Still so when the next pause starts: it did not end where an object was
// expected, and nobody cuts eden any more.
static PER_RECORDING bool amid, distrusted;

static bool put_range(void *arg, uint64_t lo, uint64_t hi) {
    struct eden *x = arg;
    bool again = false;
    const struct unit *u = crew_walked(lo, hi, &again);
    if (u) {
        eden_ends(x);
        if (!again) {
            uint8_t *at = blob_begin(x->e, HC_EV_ALLOCS);
            crewmoves_put(x->e, u);
            blob_end(x->e, at);
            return true;
        }
    }
    eden_begins(x);
    const uint8_t *from = x->e->p;
    amid = neden_starts > 0;
    bool ok = walk_moves(&x->w, lo, hi, SRC_EDEN, 0);
    amid = false;
    if (u) crew_differs(!crewmoves_same(x->e, from, u));
    return ok;
}

static bool put_eden(struct enc *e, struct heapmaps *m, uint64_t bytes, uint64_t *ns) {
    uint64_t from = cpu_ns();
    struct eden x = {.e = e, .finish = &m->finish};
    if (crew_call_eden(bytes, &m->finish)) {
        (void)heapwalk()->eden(m, crew_add_eden, NULL);
        crew_start();
    }
    eden_begins(&x);
    bool ok = heapwalk()->eden(m, put_range, &x);
    eden_ends(&x);
    crew_stop();
    *ns = cpu_ns() - from;
    budget_learn_eden(*ns, bytes);
    return ok;
}

void moves_look_at_start(const struct heapmap *start, int depth) {
    nholes = neden_starts = 0;
    if (depth != HC_DEPTH_FULL) return;
    tlab_holes();
    distrusted |= amid;
    amid = false;
    if (vm_has_regions() || distrusted || !crew_is_there()) return;
    const struct area *s = &start->area[EDEN];
    neden_starts = samples_starts(s->bottom, s->top, eden_starts);
    if (opt.crew == 10 && neden_starts) eden_starts[0] += 8; // a test's
}

bool moves_put(struct enc *e, struct heapmaps *m, int kind, int depth) {
    bool evac = kind_evacuates(kind), ok = true;
    uint64_t begun = cpu_ns(), eden_ns = 0;
    if (evac && !heapwalk()->emptied(m)) return false;

    struct walker w = walker_on(e, &m->finish);
    w.uncounted = ramp_uncounted();
    uint8_t *at = blob_begin(e, HC_EV_MOVES);
    ok &= heapwalk()->moves(&w, m, evac);
    blob_end(e, at);

    if (evac && depth == HC_DEPTH_FULL) {
        ok &= put_eden(e, m, heapmap()->to_walk(m, evac).eden, &eden_ns);
        if (ok) shadow_put(e, m);
    }

    if (evac && heapwalk()->failed) ok &= !heapwalk()->failed(m);
    w = walker_on(e, &m->finish);
    w.uncounted = ramp_uncounted();
    at = blob_begin(e, HC_EV_BIRTHS);
    heapwalk()->births(&w, m, evac);
    blob_end(e, at);
    if (!e->over && walk_ndest()) violation("a destination is not the start of an object", walk_ndest());

    if (heapwalk()->freed) heapwalk()->freed(&w, m, evac);
    // others walk old space for what was freed
    if (evac) budget_learn_rest(cpu_ns() - begun - eden_ns, heapmap()->to_walk(m, evac).rest);
    return ok;
}

void moves_keep_sites(struct heapmaps *m, int kind, int depth) {
    if (depth == HC_DEPTH_FULL && kind_evacuates(kind) && heapwalk()->emptied(m)) shadow_keep(m);
}
