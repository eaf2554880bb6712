//go:build ignore

// heapwalk_g1.c: heapwalk.h for G1.
#include "heapwalk.h"

#include "crew.h"
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

static bool moves(struct walker *w, const struct heapmaps *m, bool evac) {
    bool ok = true;
    if (!evac) return ok;
    for (uint32_t i = 0; i < regions_in_both(m); i++) {
        const struct area *s = &m->start.area[i];
        if (s->kind != HC_SPACE_EDEN && evacuated(m, i, evac) && used(s))
            ok &= walk_moves(w, s->bottom, s->top, s->kind == HC_SPACE_OLD ? SRC_OLD : SRC_FROM, uncounted_in(w, i));
    }
    return ok;
}

static bool eden(const struct heapmaps *m, bool (*each)(void *arg, uint64_t lo, uint64_t hi), void *arg) {
    bool ok = true;
    for (uint32_t i = 0; i < regions_in_both(m); i++) {
        const struct area *s = &m->start.area[i];
        if (s->kind == HC_SPACE_EDEN && used(s)) ok &= each(arg, s->bottom, s->top);
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

static void births(struct walker *w, struct heapmaps *m, bool evac) {
    for (uint32_t i = 0; i < m->finish.n; i++) {
        struct area *f = &m->finish.area[i];
        const struct area *s = &m->start.area[i];
        bool was_old = i < m->start.n && s->kind == HC_SPACE_OLD;
        if (f->kind == HC_SPACE_SURVIVOR && evac) {
            if (walk_births(w, f->bottom, f->top, true, false) != f->top)
                unknown_class("a class word in a survivor region is unknown", f->bottom);
        } else if (f->kind == HC_SPACE_OLD) {
            uint64_t from = was_old ? s->top : f->bottom;
            if (walk_births(w, from, f->top, false, false) != f->top)
                unknown_class("a class word in an old region is unknown", from);
        } else if (f->kind == HC_SPACE_HUMONGOUS && !humongous_known(m, i)) {
            if (humongous_new(m, i))
                f->kind = HC_SPACE_FREE; // for the next pause
            else if (walk_births(w, f->bottom, humongous_end(f->bottom), false, true) == f->bottom)
                unknown_class("a humongous object has an unknown class", f->bottom);
        }
    }
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
    if (!crew_call(heapmap()->list_bytes(m))) return;
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
