//go:build ignore

// moves.c: moves.h.
#include "moves.h"

#include "budget.h"
#include "guard.h"
#include "heapwalk.h"
#include "os.h"
#include "ramp.h"
#include "shadow.h"

static bool put_eden(struct enc *e, struct heapmaps *m, uint64_t bytes, uint64_t *ns) {
    uint64_t from = cpu_ns();
    struct walker w = walker_on(e, &m->finish);
    uint8_t *at = blob_begin(e, HC_EV_ALLOCS);
    bool ok = heapwalk()->eden(&w, m);
    blob_end(e, at);
    *ns = cpu_ns() - from;
    budget_learn_eden(*ns, bytes);
    return ok;
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
