//go:build ignore

// heapmap_linear.c: the heap of Serial and Parallel: eden, two survivor spaces, old space, each one range of addresses.
#include "heapmap.h"

#include "guard.h"

static uint32_t areas(void) { return SPACES; }

static void read(struct heapmap *m) {
    vm_spaces_now();
    char *space[SPACES] = {vm.eden, vm.from, vm.to, vm.old};
    static const uint32_t kinds[SPACES] = {HC_SPACE_EDEN, HC_SPACE_SURVIVOR, HC_SPACE_SURVIVOR, HC_SPACE_OLD};
    for (int i = 0; i < SPACES; i++) {
        struct area *a = &m->area[i];
        *a = (struct area){rd64(space[i] + vm.space_bottom), rd64(space[i] + vm.space_top),
                           rd64(space[i] + vm.space_end), kinds[i]};
        if (a->bottom > a->top || a->top > a->end || a->bottom < (uint64_t)vm.heap_base ||
            a->end > (uint64_t)vm.heap_base + vm.heap_bytes)
            violation("the bounds of a space are invalid", a->bottom);
    }
    m->n = SPACES;
}

// The collector counts what is in use before it grants anything.
static void drop_granted(struct heapmap *m) {
    uint64_t left[4];
    for (int i = 0; i < 4; i++) {
        if (!vm.perf_left[i]) return;
        left[i] = rd64(vm.perf_left[i]);
    }
    struct {
        uint32_t area;
        uint64_t bytes;
    } all[] = {{EDEN, left[0]}, {FROM, left[1] + left[2]}, {OLD, left[3]}};
    for (int i = 0; i < 3; i++) {
        struct area *a = &m->area[all[i].area];
        if (all[i].area == FROM && used(&m->area[TO])) continue; // one of the two counters is of the other space
        if (all[i].bytes < used(a) && all[i].bytes % vm.align == 0) a->top = a->bottom + all[i].bytes;
    }
}

static bool in_state(const struct heapmap *m, uint64_t a) {
    if (a >= m->area[FROM].top && a < m->area[FROM].end) return false; // survivors_top
    return a < m->area[EDEN].bottom || a >= m->area[EDEN].end || a < m->eden_known;
}

static struct work to_walk(const struct heapmaps *m, bool evac) {
    const struct area *s = m->start.area, *f = m->finish.area;
    struct work n = {0, 0};
    const uint64_t known = survivors_top(m, &s[FROM]);
    if (evac) {
        n.eden = used(&s[EDEN]) + s[FROM].top - known;
        n.rest = known - s[FROM].bottom + used(&s[TO]) + used(&f[FROM]);
    }
    if (f[OLD].top > m->last.area[OLD].top) n.rest += f[OLD].top - m->last.area[OLD].top;
    return n;
}

static uint64_t list_bytes(const struct heapmap *m) { return used(&m->area[FROM]) + used(&m->area[OLD]); }

static uint64_t put_spaces(struct enc *e, const struct heapmaps *m) {
    const struct area *s = m->start.area, *f = m->finish.area;
    // FROM is "from" before and after: what was used before is in the from space of the start.
    put_space(e, HC_SPACE_EDEN, &f[EDEN], used(&s[EDEN]), used(&f[EDEN]));
    put_space(e, HC_SPACE_SURVIVOR, &f[FROM], used(&s[FROM]), used(&f[FROM]));
    put_space(e, HC_SPACE_OLD, &f[OLD], used(&s[OLD]), used(&f[OLD]));
    return used(&f[EDEN]) + used(&f[FROM]) + used(&f[OLD]);
}

const struct heapmap_reader heapmap_linear = {areas, read, drop_granted, in_state, to_walk, list_bytes, put_spaces};
