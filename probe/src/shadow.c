//go:build ignore

// shadow.c: shadow.h.
#include "shadow.h"

#include <stdatomic.h>
#include <string.h>

#include "classtable.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "marks.h"
#include "object.h"
#include "os.h"
#include "recording.h"
#include "stamps.h"
#include "tlabs.h"
#include "tokens.h"

static _Atomic uint32_t phase; // read by the code that was put into classes; 0: it stores nothing
static uint32_t *table;        // stays where it is, as that code does
static uint64_t table_bytes;
static uint64_t *outside; // as the table: of arrays outside of the threads' buffers, by length and type
static _Atomic uint32_t *expected; // by site; as the table
static int shift;
// Code of an earlier recording may run on after its end: a loop goes on in the code that it began with. So no recording
// gives a number of a site that one before has given. Below: those of the recordings before.
static _Atomic uint32_t given;
static uint32_t before;
// Sites of objects that have left eden, at their first words: a site, and KEPT_HALF where two of these share an entry.
static PER_RECORDING uint32_t *kept;
enum { KEPT_HALF = 1u << 31, SITE_MASK = (1u << SHADOW_PHASE) - 1 };
static PER_RECORDING uint8_t *keeps; // by region or space: some may stand there
// Of Serial and Parallel, by space: the range in which some may stand, in bytes from the heap's begin.
static PER_RECORDING struct held {
    uint64_t lo, hi;
} held[SPACES];
enum { MOST_CLEARED = 64 << 20 }; // of kept, in a pause: some 10 ms
static PER_RECORDING bool repeat; // who begins to read at the newest sync point does not know all sites
static PER_RECORDING bool told;   // the sync point of this pause has them all
// Where an epoch had no more room for these.
struct place {
    uint64_t at;
    uint32_t area;
};
static PER_RECORDING struct place resume;
static PER_RECORDING struct named {
    uint32_t id, hash, kinds; // kinds: bits by made_kind
} *named; // by TSLOT: hashes of names of types
// Survivors that the walk of eden has found in this pause.
static PER_RECORDING struct find {
    uint64_t dw, found;
} *finds;
static PER_RECORDING uint32_t nfinds;
enum { MOST_FINDS = 1 << 22, SOME_FINDS = 1 << 18 }; // SOME: their memory stays, 4 MiB
static PER_RECORDING bool walked, lost; // lost: a pause was not walked, so what is outside of eden has no site
static PER_RECORDING uint32_t number; // of the phase
static PER_RECORDING _Atomic uint64_t marked, mistyped;

// Memory that stays where it is. What code of the recording before wrote last names sites of that recording.
static void *lasting(void *p, uint64_t bytes) {
    if (!p) return os_sparse(bytes);
    os_give_back(p, bytes);
    return p;
}

bool shadow_init(struct shadow_place *at) {
    shift = vm.compact_headers ? 3 : 4; // no object is smaller
    table_bytes = ((vm.heap_bytes >> shift) + 2) * sizeof *table;
    table = lasting(table, table_bytes);
    outside = lasting(outside, SHADOW_OUTSIDE * sizeof *outside);
    expected = lasting((void *)expected, SHADOW_SITES * sizeof *expected);
    before = given;
    named = memory_sparse(MAX_TYPES * sizeof *named);
    kept = memory_sparse(table_bytes);
    finds = memory_sparse(MOST_FINDS * sizeof *finds);
    keeps = memory(vm_has_regions() ? vm.heap_bytes / vm.region_bytes + 1 : SPACES);
    if (!table || !outside || !expected || !named || !kept || !keeps || !finds) return false;
    *at = (struct shadow_place){(uint64_t)(uintptr_t)&phase, (uint64_t)(uintptr_t)vm.heap_base, vm.heap_bytes,
                                (uint64_t)(uintptr_t)table, (uint64_t)(uintptr_t)outside,
                                (uint64_t)(uintptr_t)expected, shift};
    return true;
}

void shadow_give_back(void) {
    if (table) os_give_back(table, table_bytes);
    if (outside) os_give_back(outside, SHADOW_OUTSIDE * sizeof *outside);
}

uint32_t shadow_site(uint32_t frame, uint32_t hash, enum made_kind kind) {
    const uint32_t site = before + frame;
    if (!frame || site >= SHADOW_SITES) return 0;
    // Several types: methods that say the same are one, such as those of reflection's own classes.
    const uint32_t other = atomic_load_explicit(&expected[site], memory_order_relaxed);
    atomic_store_explicit(&expected[site], other && other != hash ? kind : hash, memory_order_release);
    uint32_t most = atomic_load_explicit(&given, memory_order_relaxed);
    while (site > most && !atomic_compare_exchange_weak(&given, &most, site)) {
    }
    return site;
}

static bool is_site(uint32_t site) { return site > before && site < SHADOW_SITES; }

uint32_t shadow_hash(uint32_t h, const void *p, uint64_t n) {
    if (!h) h = 2166136261u;
    for (uint64_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)p)[i]) * 16777619u;
    return h < MADE_KINDS ? MADE_KINDS : h;
}

bool shadow_switch(bool on) {
    if (on && !number) number = 1;
    return atomic_exchange(&phase, on ? number << SHADOW_PHASE : 0) != 0;
}

bool shadow_is_on(void) { return atomic_load_explicit(&phase, memory_order_relaxed) != 0; }
uint64_t shadow_marked(void) { return atomic_load_explicit(&marked, memory_order_relaxed); }
uint64_t shadow_mistyped(void) { return atomic_load_explicit(&mistyped, memory_order_relaxed); }

static uint32_t kinds_of(const char *name, size_t n) {
    static const char lambda[] = "$$Lambda";
    if (n > 1 && name[0] == '[') return 1u << MADE_ARRAY | (name[1] == 'L' || name[1] == '[' ? 1u << MADE_OBJECTS : 0);
    for (size_t i = 0; i + sizeof lambda - 1 <= n; i++)
        if (!memcmp(name + i, lambda, sizeof lambda - 1)) return 1u << MADE_LAMBDA | 1u << MADE_INSTANCE;
    return 1u << MADE_INSTANCE;
}

// NULL: its name cannot be read.
static const struct named *name_of(uint32_t id, uint64_t word) {
    struct named *t = &named[TSLOT(id)];
    if (t->id == id) return t;
    const char *symbol = rdp(klass_of(word) + vm.k_name);
    if (!symbol) return NULL;
    const size_t n = rd32(symbol + vm.sym_len) & 0xffff;
    *t = (struct named){id, shadow_hash(0, symbol + vm.sym_body, n), kinds_of(symbol + vm.sym_body, n)};
    return t;
}

// Whether an object of that type may come from the site.
static bool fits(uint32_t site, const struct named *t) {
    const uint32_t e = atomic_load_explicit(&expected[site], memory_order_acquire);
    return t && (e == t->hash || (e < MADE_KINDS && t->kinds >> e & 1));
}

struct sited {
    struct enc *e;
    bool each; // the survivors of this pause are written by themselves, not with all others
    uint64_t addr, records;
    uint64_t marked, mistyped;
    uint64_t until; // when no more of what is kept is written; 0: never
    const uint8_t *limit; // and where: the rest of the block needs room, too
};

// ---- sites of objects that have left eden --------------------------------------------------------
static uint32_t *kept_of(uint64_t a) { return &kept[(a - (uint64_t)vm.heap_base) >> shift]; }

static void keep_site(uint64_t a, uint32_t site) {
    *kept_of(a) = site && shift == 4 && a & 8 ? site | KEPT_HALF : site;
}

// What a region kept that was freed without a walk of it (the Cleanup of G1), and is used anew.
static void forget_reused(const struct heapmap *start) {
    for (uint32_t i = 0; vm_has_regions() && i < start->n; i++) {
        const struct area *s = &start->area[i];
        if (!keeps[i] || (s->kind != HC_SPACE_EDEN && s->kind != HC_SPACE_FREE)) continue;
        os_give_back(kept_of(s->bottom), (vm.region_bytes >> shift) * sizeof *kept);
        keeps[i] = 0;
    }
}

// Most entries hold nothing: those of large objects, and of what has no site.
static bool keeps_none(uint64_t i) {
    uint64_t w[4];
    memcpy(w, &kept[i], sizeof w);
    return !(w[0] | w[1] | w[2] | w[3]);
}

// The next object from a on that has a site; hi: none.
static uint64_t next_kept(uint64_t a, uint64_t hi) {
    enum { STEP = 8 };
    const uint64_t base = (uint64_t)vm.heap_base, end = a < hi ? ((hi - 1 - base) >> shift) + 1 : 0;
    for (uint64_t i = (a - base) >> shift; i < end; i++) {
        while (i % STEP == 0 && i + STEP <= end && keeps_none(i)) i += STEP;
        if (i >= end) break;
        const uint64_t at = base + (i << shift) + (kept[i] & KEPT_HALF ? 8 : 0);
        if (kept[i] && at >= a && at < hi) return at;
    }
    return hi;
}

static uint32_t take_kept(uint64_t a) {
    const uint32_t site = *kept_of(a) & ~(uint32_t)KEPT_HALF;
    *kept_of(a) = 0;
    return site;
}

static bool in_heap(uint64_t a) { return a - (uint64_t)vm.heap_base < vm.heap_bytes; }

// Of memory that was evacuated.
static void keep_moved(uint64_t lo, uint64_t hi) {
    for (uint64_t a = next_kept(lo, hi); a < hi; a = next_kept(a + 8, hi)) {
        const uint64_t mark = rd64((void *)a), to = mark & ~7ull;
        const uint32_t site = take_kept(a);
        if ((mark & 3) == 3 && to != a && in_heap(to)) keep_site(to, site);
    }
}

static bool holds_kept(const struct heapmap *m, uint32_t i) {
    if (!used(&m->area[i])) return false;
    if (!vm_has_regions()) return i == FROM || i == OLD;
    const uint32_t k = m->area[i].kind;
    return k == HC_SPACE_SURVIVOR || k == HC_SPACE_OLD || k == HC_SPACE_HUMONGOUS;
}

// false: there is no room or no time for more, from *from on.
static bool put_kept(struct sited *s, struct place *from, uint64_t lo, uint64_t hi) {
    struct enc *e = s->e;
    const bool dug = graves_at(lo);
    if (from->at >= lo && from->at < hi) lo = from->at;
    for (uint64_t a = next_kept(lo, hi); a < hi; a = next_kept(a + 8, hi)) {
        if (e->p + TOKEN >= s->limit || s->records == HC_MAX_RECORDS ||
            (s->until && s->records % 1024 == 1023 && now_ns() > s->until)) {
            from->at = a;
            return false;
        }
        const uint64_t mark = rd64((void *)a);
        const uint32_t site = *kept_of(a) & ~(uint32_t)KEPT_HALF;
        struct obj o;
        if ((dug && is_grave(a)) || !obj_at(a, mark, &o) || !is_site(site)) continue;
        if (!fits(site, name_of(o.type & TYPE_MASK, word_of_object(a, mark)))) continue;
        put_s(e, (int64_t)(WORD(a) - s->addr));
        put_u(e, site - before);
        s->addr = WORD(a);
        s->records++;
    }
    return true;
}

// Writes the sites of what is outside of eden. Returns whether all are written; else *from says where to go on.
static bool put_all_kept(struct sited *s, struct place *from, const struct heapmap *m) {
    s->limit = s->e->p + (s->e->end - s->e->p) / 2;
    for (; from->area < m->n; from->at = 0, from->area++) {
        const struct area *a = &m->area[from->area];
        if (s->until && now_ns() > s->until) return false;
        const uint64_t end = a->kind == HC_SPACE_HUMONGOUS ? a->bottom + 8 : a->top; // one object, and more regions
        if (holds_kept(m, from->area) && !put_kept(s, from, a->bottom, end)) return false;
    }
    *from = (struct place){0, 0};
    return true;
}

void shadow_put_listed(struct enc *e, uint8_t *block, const struct heapmap *m, int kind, uint64_t until) {
    const bool moved = kind_evacuates(kind) || kind == HC_PAUSE_FULL;
    if (!shadow_is_on() || e->over || (moved && !walked)) return;
    const struct enc without = *e;
    struct sited s = {.e = e, .until = until};
    struct place all = {0, 0};
    uint8_t *at = blob_begin(e, HC_EV_SITED);
    if (e->over) {
        *e = without;
        return;
    }
    told = put_all_kept(&s, &all, m);
    blob_end(e, at);
    block[HC_BLOCK_OFF_VERSION] = HC_FORMAT_LISTED_SITES;
}

// ---- eden ----------------------------------------------------------------------------------------
struct shadow_entries shadow_entries(void) { return (struct shadow_entries){shadow_is_on() ? table : NULL, shift}; }

void shadow_find(uint64_t dw, uint64_t found) {
    if (nfinds < MOST_FINDS) finds[nfinds] = (struct find){dw, found};
    nfinds++;
}

static bool is_now(uint32_t entry) { return entry >> SHADOW_PHASE == number && is_site(entry & SITE_MASK); }

// The site of an array at a that has none where it ended. 0 also if it may come from several.
static uint32_t site_outside(uint64_t a, const struct named *t) {
    struct obj o;
    if (!t || !(t->kinds >> MADE_ARRAY & 1) || !obj_at(a, rd64((void *)a), &o) || o.len < SHADOW_LARGE) return 0;
    const uint32_t types[] = {t->hash, MADE_OBJECTS, MADE_ARRAY}; // what a site may expect, and is found by
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const uint64_t v = outside[(o.len ^ o.len >> 14 ^ types[i]) % SHADOW_OUTSIDE];
        const uint32_t entry = (uint32_t)(v >> 32), site = entry & SITE_MASK;
        if (entry >> SHADOW_PHASE != number) continue;
        if (site && ((uint32_t)v != o.len || !fits(site, t))) continue;
        if (!site || found) return 0; // two have met there, or here
        found = site;
    }
    return is_site(found) ? found : 0;
}

// Whether the object at a is of that type: what was a forwarding pointer may have been something else.
static bool is_of(uint64_t a, uint32_t type) {
    struct obj o;
    return obj_at(a, rd64((void *)a), &o) && (o.type & TYPE_MASK) == type;
}

// A survivor of eden.
static void put_found(struct sited *s, const struct find *f) {
    const uint64_t a = (uint64_t)vm.heap_base + (f->dw << 3);
    const uint32_t type = (uint32_t)(f->found >> 32) & TYPE_MASK;
    uint32_t site = is_now((uint32_t)f->found) ? (uint32_t)f->found & SITE_MASK : 0;
    const struct named *t = &named[TSLOT(type)];
    if (t->id != type) t = name_of(type, word_of_object(a, rd64((void *)a)));
    if (site && !fits(site, t)) site = 0, s->mistyped++;
    if (!site) site = site_outside(a, t);
    keep_site(a, site);
    if (!site) return;
    s->marked++;
    if (stamps_are_on() && is_of(a, type)) stamp(a, site - before);
    if (!s->each || s->records >= HC_MAX_RECORDS || s->e->end - s->e->p < TOKEN) return;
    put_s(s->e, (int64_t)(f->dw - s->addr));
    put_u(s->e, site - before);
    s->addr = f->dw;
    s->records++;
}

// Walks eden for its survivors, where no other walk has found them.
static void range(int lay, struct sited *s, uint64_t lo, uint64_t hi) {
    const uint64_t base = (uint64_t)vm.heap_base, round = ~(vm.align - 1);
    struct hot spare;
    uint32_t h = 0;
    while (h < nholes && holes[h].lo < lo) h++;
    for (uint64_t a = lo; a < hi;) {
        if (h < nholes && a == holes[h].lo) {
            a = holes[h++].hi;
            while (h < nholes && holes[h].lo < a) h++;
            continue;
        }
        const uint64_t mark = rd64((void *)a), to = mark & ~7ull;
        uint32_t len;
        uint64_t bytes;
        const struct hot *o = object(lay, a, mark, round, &spare, &len, &bytes);
        if (!o) {
            unknown_class("a class word in evacuated memory is unknown", a);
            return; // which unknown_class does not come back to
        }
        if ((mark & 3) == 3 && to != a && in_heap(to))
            put_found(s, &(struct find){WORD(to), shadow_found(shadow_entries(), a + bytes - base, o->type)});
        a += bytes;
    }
}

// Of what left eden before, whose sites are not kept any more: what stamps say.
static void restore(const struct heapmap *m) {
    for (uint32_t i = 0; i < m->n; i++) {
        if (!holds_kept(m, i)) continue;
        struct obj o;
        const uint64_t top = m->area[i].kind == HC_SPACE_HUMONGOUS ? m->area[i].bottom + 8 : m->area[i].top;
        for (uint64_t a = m->area[i].bottom; a < top; a += o.bytes) {
            const uint64_t mark = rd64((void *)a);
            if (!obj_at(a, mark, &o) || !o.bytes) break; // garbage that nobody can read: the rest is not known
            const uint32_t site = stamped(mark);
            if (site && !*kept_of(a)) keep_site(a, site + before);
        }
    }
}

// What left eden and the survivors in this pause.
static void walk_eden(struct sited *s, const struct heapmaps *m) {
    const uint32_t n = vm_has_regions() ? regions_in_both(m) : EDEN + 1;
    for (uint32_t i = vm_has_regions() ? 0 : EDEN; i < n; i++) {
        const struct area *from = &m->start.area[i];
        if (vm_has_regions() ? from->kind == HC_SPACE_EDEN && used(from) : used(from))
            range(layout(), s, from->bottom, from->top);
    }
    const struct area *from = &m->start.area[FROM];
    if (!vm_has_regions()) range(layout(), s, survivors_top(m, from), from->top);
}

static void put_eden(struct sited *s, const struct heapmaps *m, bool found) {
    if (!found || nfinds > MOST_FINDS)
        walk_eden(s, m);
    else
        for (uint32_t i = 0; i < nfinds; i++) put_found(s, &finds[i]);
    atomic_fetch_add_explicit(&marked, s->marked, memory_order_relaxed);
    atomic_fetch_add_explicit(&mistyped, s->mistyped, memory_order_relaxed);
    for (uint32_t i = 0; i < m->finish.n; i++)
        if (holds_kept(&m->finish, i)) keeps[i] = 1;
    walked = true;
}

// Both survivor spaces: a promotion that failed leaves objects in each.
static void note_held(const struct heapmap *m) {
    for (uint32_t i = 0; !vm_has_regions() && i < SPACES; i++) {
        struct held *h = &held[i];
        const uint64_t base = (uint64_t)vm.heap_base, lo = m->area[i].bottom - base, hi = m->area[i].top - base;
        if (i == EDEN || !used(&m->area[i]) || hi > vm.heap_bytes || lo > hi) continue;
        *h = h->hi ? (struct held){h->lo < lo ? h->lo : lo, h->hi > hi ? h->hi : hi} : (struct held){lo, hi};
    }
}

static struct held held_in(uint32_t i) {
    if (!vm_has_regions()) return held[i];
    return keeps[i] ? (struct held){i * vm.region_bytes, (i + 1) * vm.region_bytes} : (struct held){0, 0};
}

static uint64_t entries(struct held h) { return h.hi > h.lo ? ((h.hi - h.lo) >> shift) + 1 : 0; }

// What a full collection moved without a walk. Zeros for what was in use: to give its pages back and have new ones
// would take ten times as long.
static void clear_kept(void) {
    const uint32_t n = vm_has_regions() ? (uint32_t)(vm.heap_bytes / vm.region_bytes) : SPACES;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) bytes += entries(held_in(i)) * sizeof *kept;
    if (bytes > MOST_CLEARED) os_give_back(kept, table_bytes);
    for (uint32_t i = 0; i < n && bytes <= MOST_CLEARED; i++)
        memset(&kept[held_in(i).lo >> shift], 0, entries(held_in(i)) * sizeof *kept);
    memset(keeps, 0, n);
    memset(held, 0, sizeof held);
}

static void move_kept(const struct heapmaps *m) {
    forget_reused(&m->start);
    note_held(&m->finish);
    for (uint32_t i = 0; i < (vm_has_regions() ? regions_in_both(m) : SPACES); i++) {
        const struct area *from = &m->start.area[i];
        if (vm_has_regions() ? !evacuated(m, i, true) : i != FROM) continue;
        keep_moved(from->bottom, vm_has_regions() ? from->top : survivors_top(m, from));
        keeps[i] = 0;
    }
}

// The next epoch has all sites.
static void tell_all(void) { repeat = true, resume = (struct place){0, 0}; }

void shadow_put(struct enc *e, const struct heapmaps *m) {
    if (!shadow_is_on() || e->over) return;
    struct sited s = {.e = e};
    move_kept(m);
    if (lost && stamps_are_on()) restore(&m->finish), tell_all();
    lost = false;
    s.each = !repeat || resume.at || resume.area;
    uint8_t *at = blob_begin(e, HC_EV_SITED);
    if (e->over) return;
    put_eden(&s, m, true);
    if (repeat) repeat = !put_all_kept(&s, &resume, &m->finish);
    blob_end(e, at);
}

void shadow_keep(const struct heapmaps *m) {
    if (!shadow_is_on()) return;
    struct sited s = {.e = NULL};
    tell_all();
    move_kept(m);
    put_eden(&s, m, false);
}

void shadow_untold(void) { told = false; }

bool shadow_committed(bool committed, bool sync) {
    const bool all = committed && sync && told;
    told = false;
    if (all)
        repeat = false;
    else if (sync || !committed)
        tell_all();
    return all;
}

void shadow_next(bool eden_emptied, bool sound) {
    const bool was = walked;
    walked = told = false;
    if (nfinds > SOME_FINDS) os_give_back(finds, MOST_FINDS * sizeof *finds);
    nfinds = 0;
    if (!shadow_is_on() || !(was || eden_emptied)) return;
    if (!was && sound)
        clear_kept();
    else if (!was)
        os_give_back(table, table_bytes), os_give_back(kept, table_bytes);
    lost |= !was;
    number = number % 255 + 1;
    // Entries of the phases before are void, until their numbers come again.
    if (number == 1) memset(outside, 0, SHADOW_OUTSIDE * sizeof *outside), os_give_back(table, table_bytes);
    atomic_store(&phase, number << SHADOW_PHASE);
}
