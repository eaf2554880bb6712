//go:build ignore

// moves.c: moves.h.
#include "moves.h"

#include "budget.h"
#include "crew.h"
#include "crewmoves.h"
#include "cuts.h"
#include "guard.h"
#include "heapwalk.h"
#include "os.h"
#include "ramp.h"
#include "shadow.h"

// The events of what was emptied: one of what the VM thread walks itself, up to what one of the crew has walked, of
// which each part has its own, since lanes begin anew there.
struct emptied {
    struct enc *e;
    const struct heapmap *finish;
    const uint64_t *uncounted; // as of struct walker
    uint64_t bytes;
    int tag;
    struct walker w;
    uint8_t *at; // NULL: no event is open
};

static void begin(struct emptied *x) {
    if (x->at) return;
    x->w = walker_on(x->e, x->finish);
    x->at = blob_begin(x->e, x->tag);
}

static void end(struct emptied *x) {
    if (x->at) blob_end(x->e, x->at);
    x->at = NULL;
}

static uint64_t uncounted_of(const struct emptied *x, const struct piece *p) {
    return x->uncounted && p->source != SRC_EDEN ? x->uncounted[p->area] : 0;
}

// A quarter of what survived before: with 5 to 10 MiB of it a crew was as often slower as faster.
static bool measure(void *arg, const struct piece *p) {
    ((struct emptied *)arg)->bytes += p->source == SRC_FROM ? (p->hi - p->lo) / 4 : p->hi - p->lo;
    return true;
}

static bool add_part(void *arg, const struct piece *p) {
    crew_add_moves(p->lo, p->hi, p->source, uncounted_of(arg, p));
    return true;
}

static bool put_part(void *arg, const struct piece *p) {
    struct emptied *x = arg;
    bool again = false;
    const struct unit *u = crew_walked(p->lo, p->hi, &again);
    if (u) end(x);
    if (u && !again) {
        uint8_t *at = blob_begin(x->e, x->tag);
        crewmoves_put(x->e, u);
        blob_end(x->e, at);
        return true;
    }
    begin(x);
    const uint8_t *from = x->e->p;
    bool ok = walk_moves(&x->w, p->lo, p->hi, p->source, uncounted_of(x, p));
    if (u) crew_differs(!crewmoves_same(x->e, from, u));
    return ok;
}

static bool put_emptied(struct emptied *x, struct heapmaps *m, bool evac, bool full, uint64_t *eden_ns) {
    (void)heapwalk()->moves(m, evac, measure, x);
    if (full) (void)heapwalk()->eden(m, measure, x);
    if (crew_call(CREW_MOVES, x->bytes, &m->finish)) {
        (void)heapwalk()->moves(m, evac, add_part, x);
        if (full) (void)heapwalk()->eden(m, add_part, x);
        crew_start();
    }
    x->tag = HC_EV_MOVES;
    begin(x);
    bool ok = heapwalk()->moves(m, evac, put_part, x);
    end(x);
    if (full) {
        uint64_t from = cpu_ns();
        x->tag = HC_EV_ALLOCS;
        begin(x);
        ok &= heapwalk()->eden(m, put_part, x);
        end(x);
        *eden_ns = cpu_ns() - from;
        budget_learn_eden(*eden_ns, heapmap()->to_walk(m, evac).eden);
    }
    crew_stop();
    return ok;
}

bool moves_put(struct enc *e, struct heapmaps *m, int kind, int depth) {
    bool evac = kind_evacuates(kind), full = evac && depth == HC_DEPTH_FULL;
    uint64_t begun = cpu_ns(), eden_ns = 0;
    if (evac && !heapwalk()->emptied(m)) return false;

    struct emptied x = {.e = e, .finish = &m->finish, .uncounted = ramp_uncounted()};
    cuts_amid(true);
    bool ok = put_emptied(&x, m, evac, full, &eden_ns);
    const bool has_sites = full && ok;
    if (evac && heapwalk()->failed) ok &= !heapwalk()->failed(m);
    cuts_for_births(m, evac);
    struct walker w = walker_on(e, &m->finish);
    uint8_t *at = blob_begin(e, HC_EV_BIRTHS);
    heapwalk()->births(&w, m, evac);
    blob_end(e, at);
    if (has_sites) shadow_put(e, m);
    if (!e->over && walk_ndest()) violation("a destination is not the start of an object", walk_ndest());

    w.uncounted = ramp_uncounted();
    if (heapwalk()->freed) heapwalk()->freed(&w, m, evac);
    cuts_amid(false);
    // others walk old space for what was freed
    if (evac) budget_learn_rest(cpu_ns() - begun - eden_ns, heapmap()->to_walk(m, evac).rest);
    return ok;
}

void moves_keep_sites(struct heapmaps *m, int kind, int depth) {
    if (depth == HC_DEPTH_FULL && kind_evacuates(kind) && heapwalk()->emptied(m)) shadow_keep(m);
}
