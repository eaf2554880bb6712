//go:build ignore

// heapwalk_g1.c: heapwalk.h for G1.
#include "heapwalk.h"

#include "crew.h"
#include "crewmoves.h"
#include "guard.h"
#include "marks.h"
#include "object.h"

uint64_t humongous_end(uint64_t bottom) {
    struct obj o;
    if (!obj_at(bottom, rd64((void *)bottom), &o)) unknown_class("a humongous object has an unknown class", bottom);
    return bottom + o.bytes;
}

static bool emptied(const struct heapmaps *m) {
    for (uint32_t i = 0; i < regions_in_both(m); i++) {
        uint32_t was = m->start.area[i].kind;
        if ((was == HC_SPACE_EDEN || was == HC_SPACE_SURVIVOR) && m->finish.area[i].kind == HC_SPACE_OLD) return false;
    }
    return true;
}

static bool moves(const struct heapmaps *m, bool evac, walk_piece *each, void *arg) {
    bool ok = true;
    if (!evac) return ok;
    for (uint32_t i = 0; i < regions_in_both(m); i++) {
        const struct area *s = &m->start.area[i];
        const struct piece p = {s->bottom, s->top, s->kind == HC_SPACE_OLD ? SRC_OLD : SRC_FROM, i};
        if (s->kind != HC_SPACE_EDEN && evacuated(m, i, evac) && used(s)) ok &= each(arg, &p);
    }
    return ok;
}

static bool eden(const struct heapmaps *m, walk_piece *each, void *arg) {
    bool ok = true;
    for (uint32_t i = 0; i < regions_in_both(m); i++) {
        const struct area *s = &m->start.area[i];
        const struct piece p = {s->bottom, s->top, SRC_EDEN, i};
        if (s->kind == HC_SPACE_EDEN && used(s)) ok &= each(arg, &p);
    }
    return ok;
}

// An old region from which not all objects could be evacuated is old as before, with fillers where the others were.
// Nothing in the region says so. But that only happens when no region is free any more, and the others are strangers
// where they arrived. At depth survivors all that came from eden is strange, too.
static bool failed(const struct heapmaps *m) {
    const uint32_t n = regions_in_both(m);
    for (uint32_t i = 0; i < n; i++)
        if (m->start.area[i].kind == HC_SPACE_FREE && m->finish.area[i].kind == HC_SPACE_FREE) return false;
    for (uint32_t i = 0; i < m->finish.n; i++) {
        const struct area *f = &m->finish.area[i], *s = &m->start.area[i];
        bool was_old = i < m->start.n && s->kind == HC_SPACE_OLD;
        if ((f->kind == HC_SPACE_OLD || f->kind == HC_SPACE_SURVIVOR) &&
            walk_stranger(was_old && f->kind == HC_SPACE_OLD ? s->top : f->bottom, f->top))
            return true;
    }
    return false;
}

// Where objects may have arrived in region i. False: nowhere.
static bool arrivals(const struct heapmaps *m, uint32_t i, bool evac, struct piece *p) {
    const struct area *f = &m->finish.area[i], *s = &m->start.area[i];
    const bool was_old = i < m->start.n && s->kind == HC_SPACE_OLD;
    *p = (struct piece){was_old && f->kind == HC_SPACE_OLD ? s->top : f->bottom, f->top, 0, i};
    return (f->kind == HC_SPACE_SURVIVOR && evac) || f->kind == HC_SPACE_OLD;
}

static void call_crew_for_births(const struct heapmaps *m, bool evac) {
    struct piece p;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->finish.n; i++)
        if (arrivals(m, i, evac, &p)) bytes += p.hi - p.lo;
    if (!crew_call(CREW_BIRTHS, bytes, &m->finish)) return;
    for (uint32_t i = 0; i < m->finish.n; i++)
        if (arrivals(m, i, evac, &p)) crew_add_births(p.lo, p.hi, m->finish.area[i].kind == HC_SPACE_SURVIVOR);
    crew_start();
}

static void births(struct walker *w, struct heapmaps *m, bool evac) {
    call_crew_for_births(m, evac);
    for (uint32_t i = 0; i < m->finish.n; i++) {
        struct area *f = &m->finish.area[i];
        struct piece p;
        if (arrivals(m, i, evac, &p)) {
            if (crewmoves_births(w, p.lo, p.hi, f->kind == HC_SPACE_SURVIVOR) != p.hi)
                unknown_class("a class word in a survivor or old region is unknown", p.lo);
        } else if (f->kind == HC_SPACE_HUMONGOUS && !humongous_known(m, i)) {
            if (humongous_new(m, i))
                f->kind = HC_SPACE_FREE; // for the next pause
            else if (walk_births(w, f->bottom, humongous_end(f->bottom), false, true) == f->bottom)
                unknown_class("a humongous object has an unknown class", f->bottom);
        }
    }
    crew_stop();
}

static void freed(struct walker *w, const struct heapmaps *m, bool evac) {
    struct enc *e = w->e;
    uint8_t *at = blob_begin(e, HC_EV_FREED);
    uint64_t prev = 0;
    for (uint32_t i = 0; i < regions_in_both(m); i++) {
        const struct area *s = &m->start.area[i], *f = &m->finish.area[i];
        bool hum = s->kind == HC_SPACE_HUMONGOUS && f->kind != HC_SPACE_HUMONGOUS && humongous_known(m, i);
        bool old = s->kind == HC_SPACE_OLD && f->kind != HC_SPACE_OLD && !evac;
        if (!hum && !old) continue;
        uint64_t end = hum ? humongous_end(s->bottom) : s->top;
        walk_dead(s->bottom, end, uncounted_in(w, i));
        uint64_t b = WORD(s->bottom), n = (end - s->bottom) >> 3;
        put_s(e, (int64_t)(b - prev));
        put_u(e, n);
        prev = b + n;
    }
    blob_end(e, at);
}

static bool listed_by_region(const struct area *a) {
    return a->kind == HC_SPACE_OLD || a->kind == HC_SPACE_SURVIVOR || a->kind == HC_SPACE_ARCHIVE;
}

static void call_crew(const struct heapmap *m) {
    if (!crew_call(CREW_LIST, heapmap()->list_bytes(m), m)) return;
    for (uint32_t i = 0; i < m->n; i++)
        if (listed_by_region(&m->area[i])) crew_add(m->area[i].bottom, m->area[i].top);
    crew_start();
}

static void list(struct walker *w, struct heapmaps *m, bool with_eden, struct listed *sum) {
    (void)with_eden; // no collection of G1 leaves objects in eden that it lists
    if (!graves_known) graves_begin(m->finish.n);
    call_crew(&m->finish);
    m->finish.eden_known = 0;
    for (uint32_t i = 0; i < m->finish.n; i++) {
        struct area *f = &m->finish.area[i];
        if (f->kind == HC_SPACE_HUMONGOUS) {
            // A header that is not there yet reads as class 0 or as what stood there before.
            if (humongous_new(m, i)) {
                f->kind = HC_SPACE_FREE;
                continue;
            }
            uint64_t end = humongous_end(f->bottom);
            walk_list(w, f->bottom, end, &sum->objects, &sum->bytes);
            sum->humongous += end - f->bottom;
        } else if (listed_by_region(f)) {
            if (crew_took(w, f->bottom, f->top, &sum->objects, &sum->bytes)) continue;
            if (walk_list_living(w, f->bottom, f->top, &sum->objects, &sum->bytes, NULL) != f->top && !w->e->over)
                unknown_class("a class word in a region is unknown", f->bottom);
        }
    }
    crew_stop();
}

const struct heapwalk heapwalk_g1 = {emptied, moves, eden, failed, births, freed, list};
