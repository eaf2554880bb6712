//go:build ignore

// heapmap.c: heapmap.h, what is common to all collectors.
#include "heapmap.h"

#include "guard.h"
#include "recording.h"

bool heapmaps_init(struct heapmaps *m) {
    struct heapmap *maps[] = {&m->last, &m->start, &m->finish};
    for (int i = 0; i < 3; i++)
        if (!(maps[i]->area = memory(heapmap()->areas() * sizeof(struct area)))) return false;
    return true;
}

void heapmaps_next(struct heapmaps *m) {
    struct heapmap t = m->last;
    m->last = m->finish;
    m->finish = t;
    m->finish.eden_known = m->last.eden_known;
}

void heapmaps_leave_new(struct heapmaps *m, int kind, bool started) {
    struct area *from = &m->finish.area[FROM], *old = &m->finish.area[OLD];
    if (vm_has_regions() || kind_evacuates(kind) || kind == HC_PAUSE_FULL) return;
    if (started && old->top > m->start.area[OLD].top) old->top = m->start.area[OLD].top;
    from->top = survivors_top(m, from);
    if (m->last.area[FROM].bottom || !vm.perf_left[1] || !vm.perf_left[2]) return;
    // The first pause that is seen: the collector has counted what it left there; one of the two spaces is empty.
    const uint64_t left = rd64(vm.perf_left[1]) + rd64(vm.perf_left[2]);
    if (left < used(from) && left % vm.align == 0) from->top = from->bottom + left;
}

void put_space(struct enc *e, uint32_t kind, const struct area *a, uint64_t before, uint64_t after) {
    uint64_t base = (uint64_t)vm.heap_base;
    put8(e, HC_EV_SPACE);
    put_u(e, kind);
    put_u(e, a ? (a->bottom - base) >> 3 : 0);
    put_u(e, a ? (a->top - base) >> 3 : 0);
    put_u(e, a ? (a->end - base) >> 3 : 0);
    put_u(e, before);
    put_u(e, after);
}
