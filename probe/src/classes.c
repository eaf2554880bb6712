//go:build ignore

// classes.c: class words and their types. The table is filled by walking ClassLoaderDataGraph inside pauses; entries
// are never removed. A class that died keeps its type as long as objects of it stand somewhere, so that they can still
// be measured; then the type has gone, and the agent is told.
#define _GNU_SOURCE
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PER_RECORDING struct centry *ctab;
PER_RECORDING uint64_t ctab_mask;
PER_RECORDING int ctab_shift;
PER_RECORDING struct tinfo *tinfo;
PER_RECORDING uint32_t ntypes; // highest id
PER_RECORDING struct crow *crows;
PER_RECORDING uint32_t cstamp = 1, *ctouched, nctouched;

static PER_RECORDING uint32_t scan_no, nloaders;
static PER_RECORDING struct cld_seen {
    uint64_t cld, head;
    uint32_t loader;
} * clds, *clds_before; // open addressing; made anew whenever classes may have died
enum { CLDS = 1 << 16, CTAB = 1 << 18 };
static PER_RECORDING struct side {
    uint64_t addr;
    uint32_t type, met;
} * side, *side_other;
enum { SIDE = 1 << 20, FIRST_SIDE = 1 << 12 };
static PER_RECORDING uint32_t nside, side_size = FIRST_SIDE; // entries, of which some were dropped; places in use
static PER_RECORDING uint32_t nwords;                        // in ctab
static PER_RECORDING uint32_t died_since;                    // types that died since rows of the census were given back
static PER_RECORDING uint32_t nused;                         // places of tinfo
// Types of classes that died and that have not gone, with what is not known yet of the objects that they have left.
enum { DYING_UNMEASURED = 1 << 31, DYING_UNSEEN = 1 << 30, DYING_EDEN = 1 << 29 };
static PER_RECORDING uint32_t *dying, ndying;
static PER_RECORDING uint32_t nclds, nclds_kept; // loaders in clds; of those before, how many stay

bool classes_init(void) {
    ctab = memory(CTAB * sizeof *ctab);
    ctab_mask = CTAB - 1;
    ctab_shift = 64 - 18;
    tinfo = memory(MAX_TYPES * sizeof *tinfo);
    crows = memory_sparse((size_t)MAX_TYPES * BUCKETS * sizeof *crows);
    ctouched = memory_sparse((size_t)MAX_TYPES * BUCKETS * sizeof *ctouched);
    dying = memory(MAX_TYPES * sizeof *dying);
    ntypes = opt.first_type;
    clds = memory(CLDS * sizeof *clds);
    clds_before = memory(CLDS * sizeof *clds);
    side = memory(SIDE * sizeof *side);
    side_other = memory(SIDE * sizeof *side);
    return ctab && tinfo && dying && crows && ctouched && clds && clds_before && side && side_other;
}

static void emit_type(uint32_t id, uint64_t word, int32_t lh, uint32_t flags, uint32_t loader, const char *name,
                      size_t n) {
    uint8_t buf[2200];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    put8(&e, HC_EV_TYPE);
    put_u(&e, id);
    put_u(&e, flags);
    if (flags & HC_TF_ARRAY) {
        put_u(&e, (uint32_t)lh >> 16 & 0xff);
        put_u(&e, (uint32_t)lh & 63);
    } else {
        put_u(&e, (uint32_t)lh & ~1u);
        put_u(&e, 0);
    }
    put_u(&e, loader);
    put_u(&e, word);
    put_str(&e, name, n);
    if (e.over || !deflog_append(&type_log, buf, (size_t)(e.p - buf)))
        violation("the table of type definitions is full", id);
}

static uint64_t word_of(char *klass) {
    if (vm.compressed_class || vm.compact_headers)
        return (uint64_t)(klass - rdp(vm.narrow_klass_base)) >> rd32(vm.narrow_klass_shift);
    return (uint64_t)klass;
}

static char *klass_of(uint64_t word) {
    if (vm.compressed_class || vm.compact_headers)
        return rdp(vm.narrow_klass_base) + (word << rd32(vm.narrow_klass_shift));
    return (char *)word;
}

static struct centry *insert(char *klass, uint64_t word, uint32_t loader) {
    int32_t lh = (int32_t)rd32(klass + vm.k_layout);
    struct centry *c = class_lookup(word);
    if (c && !(c->type & TF_DEAD) && c->lh == lh) {
        tinfo[TSLOT(c->type)].scan = scan_no;
        return c;
    }
    char *sym = rdp(klass + vm.k_name);
    if (!sym) return c; // a class in the making has no objects
    char name[2048];
    size_t n = rd32(sym + vm.sym_len) & 0xffff;
    if (n > sizeof name) n = sizeof name;
    memcpy(name, sym + vm.sym_body, n);
    if (lh == 0) return c; // interfaces and abstract classes without objects: layout neutral
    uint32_t id = ntypes + 1, flags = 0;
    if (nused + 1 >= MAX_TYPES) violation("more classes than the probe can hold", ntypes);
    while (tinfo[TSLOT(id)].id) id++;
    if (id >= MAX_TYPE_IDS) violation("more classes in one recording than there are ids", ntypes);
    if (lh < 0) flags |= HC_TF_ARRAY | ((uint32_t)lh >> 30 == 2 ? HC_TF_OBJARRAY : 0);
    bool chunk = n == 26 && vm.chunk_size_offset && !memcmp(name, "jdk/internal/vm/StackChunk", 26);
    if (chunk || (n == 15 && !memcmp(name, "java/lang/Class", 15))) flags |= HC_TF_VARIABLE;
    if (n > 23 && (!memcmp(name, "jdk/internal/vm/Filler", 22) || !memcmp(name, "[Ljdk/internal/vm/Filler", 24)))
        flags |= HC_TF_FILLER;
    for (size_t i = 1; i + 1 < n; i++)
        if (name[i] == '+' || (name[i] == '/' && name[i + 1] == '0' && i + 2 < n && name[i + 2] == 'x'))
            flags |= HC_TF_HIDDEN;
    emit_type(id, word, lh, flags, loader, name, n);
    nused++;
    tinfo[TSLOT(id)] =
        (struct tinfo){.id = id, .lh = lh, .scan = scan_no, .flags = (uint8_t)(flags | (chunk ? TI_CHUNK : 0))};
    ntypes = id;
    if (c) { // the address of a dead class was used again
        walk_forget_classes();
        c->lh = lh;
        c->type = id | TF_REUSED | (flags & HC_TF_VARIABLE ? TF_VARIABLE : 0);
        return c;
    }
    if (nwords++ > CTAB / 2) violation("the class table is full", ntypes);
    uint64_t i = (word * 0x9e3779b97f4a7c15ull) >> ctab_shift;
    while (ctab[i].word) i = (i + 1) & ctab_mask;
    ctab[i].type = id | (flags & HC_TF_VARIABLE ? TF_VARIABLE : 0);
    ctab[i].lh = lh;
    atomic_store_explicit((_Atomic uint64_t *)&ctab[i].word, word, memory_order_release); // pairs with class_lookup
    return &ctab[i];
}

static struct cld_seen *cld_slot(struct cld_seen *t, uint64_t cld) {
    uint64_t i = (cld * 0x9e3779b97f4a7c15ull) >> 48;
    for (int n = 0; n < CLDS; n++, i = (i + 1) & (CLDS - 1))
        if (t[i].cld == cld || !t[i].cld) return &t[i];
    return NULL;
}

// The loader that was seen before at this address, if it is the same one: the class that headed its list then is still
// in it. Without this each full collection of a long life would define all loaders anew.
static uint32_t loader_before(char *cld, char *head) {
    struct cld_seen *s = cld_slot(clds_before, (uint64_t)cld);
    if (!s || !s->cld) return 0;
    uint64_t n = 0;
    for (char *k = head; k && n < 1u << 22; k = rdp(k + vm.k_next), n++)
        if ((uint64_t)k == s->head) {
            nclds_kept++;
            n = s->loader;
            s->loader = 0; // it has not gone
            return (uint32_t)n;
        }
    return 0;
}

// Whether a class stands in the list of some loader: that of a loader which came since the last scan may stand in one
// that this scan has not come to yet. A program may make many loaders of one class, so the last answer is kept, and few
// are looked for in a pause.
static PER_RECORDING char *listed_last;
static PER_RECORDING uint32_t listed_looks;

static bool listed(char *klass) {
    if (klass == listed_last) return true;
    if (listed_looks++ >= 8) return false;
    uint64_t n = 0;
    for (char *cld = rdp(vm.cld_head); cld && n < 1u << 22; cld = rdp(cld + vm.cld_next), n++)
        for (char *k = rdp(cld + vm.cld_klasses); k && n < 1u << 22; k = rdp(k + vm.k_next), n++)
            if (k == klass) {
                listed_last = klass;
                return true;
            }
    return false;
}

static uint32_t define_loader(char *cld) {
    // The loader's class names it; the instance only distinguishes.
    uint8_t buf[2200];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    uint32_t id = ++nloaders;
    put8(&e, HC_EV_LOADER);
    put_u(&e, id);
    char *h = rdp(cld + vm.cld_loader);
    uint64_t oop = h ? rd64(h) : 0;
    const char *name = "(boot)";
    size_t n = 6;
    struct obj o;
    uint64_t m = 0, word = 0;
    if (oop >= (uint64_t)vm.heap_base && oop < (uint64_t)vm.heap_base + vm.heap_bytes) {
        m = rd64((void *)oop);
        word = vm.compact_headers    ? m >> vm.klass_shift
               : vm.compressed_class ? rd32((char *)oop + 8)
                                     : rd64((char *)oop + 8);
    }
    if (word && (obj_at(oop, m, &o) || listed(klass_of(word)))) {
        char *sym = rdp(klass_of(word) + vm.k_name);
        n = rd32(sym + vm.sym_len) & 0xffff;
        name = sym + vm.sym_body;
        if (n > 2000) n = 2000;
    } else if (oop) {
        name = "(loader)";
        n = 8;
    }
    put_str(&e, name, n);
    deflog_append(&type_log, buf, (size_t)(e.p - buf));
    return id;
}

static void scan(bool only_new) {
    uint64_t guardn = 0;
    listed_last = NULL, listed_looks = 0;
    for (char *cld = rdp(vm.cld_head); cld; cld = rdp(cld + vm.cld_next)) {
        if (++guardn > 1u << 22) violation("the list of class loaders has no end", (uint64_t)cld);
        char *head = rdp(cld + vm.cld_klasses);
        struct cld_seen *s = cld_slot(clds, (uint64_t)cld);
        uint64_t stop = 0;
        if (s && s->cld) {
            if (only_new && s->head == (uint64_t)head) continue;
            if (only_new) stop = s->head;
        }
        uint32_t loader = s && s->cld ? s->loader : only_new ? 0 : loader_before(cld, head);
        if (!loader) loader = define_loader(cld);
        uint64_t kn = 0;
        for (char *k = head; k && (uint64_t)k != stop; k = rdp(k + vm.k_next)) {
            if (++kn > 1u << 22) violation("a list of classes has no end", (uint64_t)k);
            insert(k, word_of(k), loader);
        }
        if (s && !s->cld) nclds++;
        if (s) *s = (struct cld_seen){(uint64_t)cld, (uint64_t)head, loader};
    }
}

enum { ROWS_GIVEN_BACK = 4096 }; // types: about 3 MiB

void classes_scan_new(void) { scan(true); }

// What the log has no room for is kept for ever.
static void emit_gone(int tag, uint32_t id) {
    uint8_t buf[16];
    struct enc e = {buf, buf, buf + sizeof buf, false};
    put8(&e, (uint8_t)tag);
    put_u(&e, id);
    (void)deflog_append(&type_log, buf, (size_t)(e.p - buf));
}

bool classes_scan_all(void) {
    scan_no++;
    struct cld_seen *t = clds_before;
    clds_before = clds, clds = t;
    memset(clds, 0, CLDS * sizeof *clds);
    uint32_t before = ntypes, loaders = nclds;
    nclds = nclds_kept = 0;
    scan(false);
    bool died = false;
    for (uint32_t i = 0; nclds_kept < loaders && i < CLDS; i++)
        if (clds_before[i].cld && clds_before[i].loader) emit_gone(HC_EV_LOADERGONE, clds_before[i].loader);
    for (uint64_t i = 0; i <= ctab_mask; i++) {
        struct centry *c = &ctab[i];
        if (!c->word || c->type & TF_DEAD) continue;
        uint32_t t = c->type & TYPE_MASK;
        if (t <= before && tinfo[TSLOT(t)].scan != scan_no && !(tinfo[TSLOT(t)].flags & TI_ARCHIVED)) {
            c->type |= TF_DEAD;
            dying[ndying++] = t | (uint32_t)DYING_UNMEASURED | DYING_EDEN;
            died = true;
            died_since++;
        }
    }
    if (died) walk_forget_classes();
    if (died_since >= ROWS_GIVEN_BACK) { // each type that was ever counted has rows of its own; those in use come back
                                         // as they are touched
        size_t n = ntypes < MAX_TYPES ? ntypes + 1 : MAX_TYPES;
        os_give_back(crows, n * BUCKETS * sizeof *crows);
        died_since = 0;
    }
    return died;
}

bool classes_dying(void) { return ndying != 0; }

void classes_measured(void) {
    for (uint32_t i = 0; i < ndying; i++) dying[i] &= ~((uint32_t)DYING_UNMEASURED | DYING_UNSEEN);
}

void classes_unseen(void) {
    for (uint32_t i = 0; i < ndying; i++)
        if (dying[i] & DYING_EDEN) dying[i] |= DYING_UNSEEN;
}

// eden_emptied: by this pause, and what was left of it is in the heap no more. all: no dead object is left in the heap.
// Samples name types, too, so none may wait.
void classes_forget(bool eden_emptied, bool all) {
    uint32_t n = 0;
    bool told = samples_told();
    for (uint32_t i = 0; i < ndying; i++) {
        uint32_t d = dying[i], t = d & TYPE_MASK;
        if (all) d = t;
        if (eden_emptied) d &= ~(uint32_t)DYING_EDEN;
        if (d != t || tinfo[TSLOT(t)].held || !told) {
            dying[n++] = d;
            continue;
        }
        emit_gone(HC_EV_TYPEGONE, t);
        tinfo[TSLOT(t)].id = 0;
        nused--;
    }
    ndying = n;
}

struct centry *classes_learn(uint64_t word) {
    // Archived heap objects may have a class of the CDS archive that nobody loaded: mapped, sane, and without a loader.
    char k[512];
    char *kl = klass_of(word);
    if (vm.k_cld + 8 > (int64_t)sizeof k || vm.k_name + 8 > (int64_t)sizeof k || !safe_read(k, (uint64_t)kl, sizeof k))
        return NULL;
    if (rdp(k + vm.k_cld) != NULL) return NULL;
    char sym[16];
    char *s = rdp(k + vm.k_name);
    if (!s || !safe_read(sym, (uint64_t)s, sizeof sym)) return NULL;
    for (int i = (int)vm.sym_body; i < (int)vm.sym_body + 2; i++)
        if (sym[i] < 0x24 || sym[i] > 0x7a) return NULL;
    struct centry *c = insert(kl, word, 0);
    if (c) tinfo[TSLOT(c->type)].flags |= TI_ARCHIVED; // no loader lists it, and it never goes
    return c;
}

// ---- side table: objects of dead classes, by address
// -------------------------------------------------------------------------------- As small as it can be, since it is
// gone through whenever regions are freed.
void side_clear(void) {
    for (uint32_t i = 0; nside && i < side_size; i++)
        if (side[i].type) tinfo[TSLOT(side[i].type)].held--;
    if (nside) memset(side, 0, side_size * sizeof *side);
    nside = 0;
}

static struct side *side_at(struct side *t, uint32_t size, uint64_t addr) {
    uint64_t i = (addr * 0x9e3779b97f4a7c15ull) >> 32 & (size - 1);
    while (t[i].addr && t[i].addr != addr) i = (i + 1) & (size - 1);
    return &t[i];
}

// Leaves out what was dropped, and makes room for twice of what is left.
static void side_tidy(void) {
    uint32_t left = 0, size = FIRST_SIDE;
    for (uint32_t i = 0; i < side_size; i++) left += side[i].type != 0;
    while (size < 4 * left) size *= 2;
    if (size > SIDE) violation("too many objects of unloaded classes", left);
    memset(side_other, 0, size * sizeof *side);
    for (uint32_t i = 0; i < side_size; i++)
        if (side[i].type) *side_at(side_other, size, side[i].addr) = side[i];
    struct side *t = side;
    side = side_other, side_other = t;
    side_size = size;
    nside = left;
}

void side_add(uint64_t addr, uint32_t type) {
    if (nside >= side_size / 2) side_tidy();
    struct side *s = side_at(side, side_size, addr);
    if (s->type) return; // the first note is the right one: later ones may see a reused class
    if (!s->addr) nside++;
    tinfo[TSLOT(type)].held++;
    *s = (struct side){addr, type, scan_no};
}

uint32_t side_get(uint64_t addr) { return nside ? side_at(side, side_size, addr)->type : 0; }

// What stands from now on where freed says so is new. Entries stay, with type 0, until the table is tidied.
void side_drop(bool (*freed)(uint64_t addr)) {
    for (uint32_t i = 0; nside && i < side_size; i++)
        if (side[i].type && freed(side[i].addr)) {
            tinfo[TSLOT(side[i].type)].held--;
            side[i].type = 0;
        }
}

// A JVM may put fillers where dead objects stood. What a walk of all objects does not meet is not there any more.
void side_met(uint64_t addr) {
    if (nside) side_at(side, side_size, addr)->met = scan_no;
}

void side_end(bool (*walked)(uint64_t addr)) {
    for (uint32_t i = 0; nside && i < side_size; i++)
        if (side[i].type && side[i].met != scan_no && walked(side[i].addr)) {
            tinfo[TSLOT(side[i].type)].held--;
            side[i].type = 0;
        }
}

// ---- census
// ----------------------------------------------------------------------------------------------------------------------------
void census_reset(void) {
    cstamp++;
    nctouched = 0;
}

void census_put(struct enc *e) {
    if (!nctouched) return;
    uint8_t *at = blob_begin(e, HC_EV_CENSUS);
    for (uint32_t i = 0; i < nctouched; i++) {
        struct crow *r = &crows[ctouched[i]];
        uint32_t mask = 0;
        for (int c = 0; c < 5; c++) mask |= r->cell[c].n ? 1u << c : 0;
        put_u(e, r->type);
        put_u(e, r->bucket);
        put_u(e, mask);
        for (int c = 0; c < 5; c++)
            if (r->cell[c].n) put_u(e, r->cell[c].n), put_u(e, r->cell[c].b);
    }
    blob_end(e, at);
}
