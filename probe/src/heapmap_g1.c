//go:build ignore

// heapmap_g1.c: the heap of G1: regions by their index. Slots of the table may be empty, and it may grow during a
// pause.
#include "heapmap.h"

#include "guard.h"

static uint32_t areas(void) { return (uint32_t)(vm.heap_bytes / vm.region_bytes) + 1; }

static uint32_t kind_of(int tag) {
    if (tag == vm.g1_free) return HC_SPACE_FREE;
    if (tag == vm.g1_eden) return HC_SPACE_EDEN;
    if (tag == vm.g1_surv) return HC_SPACE_SURVIVOR;
    if (tag == vm.g1_hum_start) return HC_SPACE_HUMONGOUS;
    if (tag == vm.g1_hum_cont) return HC_SPACE_HUMONGOUS_CONT;
    return vm.g1_archive_mask && tag & vm.g1_archive_mask ? HC_SPACE_ARCHIVE : HC_SPACE_OLD;
}

static void read(struct heapmap *m) {
    char *tab = rdp(vm.g1_table);
    uint64_t n = rd64(vm.g1_len);
    if (n > areas()) n = areas();
    for (uint64_t i = 0; i < n; i++) {
        struct area *a = &m->area[i];
        char *r = rdp(tab + 8 * i);
        *a = (struct area){0};
        if (!r) continue;
        *a = (struct area){rd64(r + vm.hr_bottom), rd64(r + vm.hr_top), rd64(r + vm.hr_end),
                           kind_of((int)rd32(r + vm.hr_tag))};
        if (a->bottom != (uint64_t)vm.heap_base + i * vm.region_bytes || a->top < a->bottom || a->top > a->end)
            violation("the bounds of a region are invalid", a->bottom);
    }
    m->n = (uint32_t)n;
}

static bool in_state(const struct heapmap *m, uint64_t a) {
    uint32_t i = region_of(a);
    return i < m->n && m->area[i].kind != HC_SPACE_EDEN && m->area[i].kind != HC_SPACE_FREE;
}

// One that a collection freed is gone from the regions at that collection's finish.
bool humongous_at(const struct heapmap *m, uint64_t a) {
    if (!vm_has_regions() || a < (uint64_t)vm.heap_base) return false;
    uint32_t i = region_of(a);
    return i < m->n && m->area[i].kind == HC_SPACE_HUMONGOUS && m->area[i].bottom == a;
}

bool evacuated(const struct heapmaps *m, uint32_t i, bool evac) {
    uint32_t was = m->start.area[i].kind, is = m->finish.area[i].kind;
    if (was == HC_SPACE_OLD) return is != HC_SPACE_OLD && is != HC_SPACE_ARCHIVE;
    return evac && (was == HC_SPACE_SURVIVOR || was == HC_SPACE_EDEN);
}

static struct work to_walk(const struct heapmaps *m, bool evac) {
    struct work n = {0, 0};
    for (uint32_t i = 0; i < m->finish.n; i++) {
        const struct area *s = &m->start.area[i], *f = &m->finish.area[i];
        bool known = i < m->start.n;
        if (known && evac && s->kind == HC_SPACE_EDEN)
            n.eden += used(s);
        else if (known && evacuated(m, i, evac))
            n.rest += used(s);
        uint64_t from = known && s->kind == HC_SPACE_OLD ? s->top : f->bottom;
        bool target = f->kind == HC_SPACE_OLD || (evac && f->kind == HC_SPACE_SURVIVOR);
        if (target && f->top > from) n.rest += f->top - from;
    }
    return n;
}

static uint64_t list_bytes(const struct heapmap *m) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t k = m->area[i].kind;
        if (k == HC_SPACE_OLD || k == HC_SPACE_SURVIVOR || k == HC_SPACE_ARCHIVE) n += used(&m->area[i]);
    }
    return n;
}

static uint64_t put_spaces(struct enc *e, const struct heapmaps *m) {
    uint64_t total = 0, before[7] = {0}, after[7] = {0};
    const struct area *f = m->finish.area;
    const uint32_t n = m->finish.n;
    for (uint32_t i = 0; i < m->start.n; i++) before[m->start.area[i].kind] += used(&m->start.area[i]);
    for (uint32_t i = 0; i < n; i++) after[f[i].kind] += used(&f[i]);
    for (uint32_t k = HC_SPACE_EDEN; k <= HC_SPACE_ARCHIVE; k++) {
        if (k == HC_SPACE_HUMONGOUS_CONT) continue;
        if (k == HC_SPACE_HUMONGOUS) before[k] += before[k + 1], after[k] += after[k + 1];
        if (before[k] || after[k]) put_space(e, k, NULL, before[k], after[k]);
        total += after[k];
    }
    uint8_t *at = blob_begin(e, HC_EV_REGIONS);
    for (uint32_t i = 0; i < n;) {
        uint32_t j = i;
        while (j < n && f[j].kind == f[i].kind) j++;
        put_u(e, f[i].kind);
        put_u(e, j - i);
        i = j;
    }
    blob_end(e, at);
    return total;
}

static void drop_granted(struct heapmap *m) { (void)m; } // it has a region of its own: humongous_new

const struct heapmap_reader heapmap_g1 = {areas, read, drop_granted, in_state, to_walk, list_bytes, put_spaces};
