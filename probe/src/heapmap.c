//go:build ignore

// heapmap.c: heapmap.h, what is common to all collectors.
#include "heapmap.h"

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

void heapmaps_leave_new(struct heapmaps *m, int kind) {
    struct area *from = &m->finish.area[FROM];
    if (!vm_has_regions() && !kind_evacuates(kind) && kind != HC_PAUSE_FULL) from->top = survivors_top(m, from);
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
