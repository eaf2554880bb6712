//go:build ignore

// classtable.c: classtable.h.
#include "classtable.h"

#include <string.h>

#include "encode.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "options.h"
#include "recording.h"

PER_RECORDING struct centry *ctab;
PER_RECORDING uint64_t ctab_mask;
PER_RECORDING int ctab_shift;
PER_RECORDING struct tinfo *tinfo;
PER_RECORDING uint32_t ntypes, nused, scan_no, nwords, *word_places;
PER_RECORDING struct hot hots[HOTS] __attribute__((aligned(64)));
enum { CTAB = 1 << 18 };
// Of each entry of ctab, by the clock of samples: when the class that it names, or the one before, was found dead, and
// which type the one before had.
static PER_RECORDING struct past {
    uint64_t died;
    struct class_past before[CLASS_PASTS];
} *pasts;
PER_RECORDING uint32_t unloading_no, unloading_first = 1;
PER_RECORDING bool class_reused, class_reused_often;

void hots_forget(void) { memset(hots, 0, sizeof hots); }

bool classtable_init(void) {
    ctab = memory(CTAB * sizeof *ctab);
    ctab_mask = CTAB - 1;
    ctab_shift = 64 - 18;
    pasts = memory(CTAB * sizeof *pasts);
    word_places = memory((CTAB / 2 + 2) * sizeof *word_places);
    tinfo = memory(MAX_TYPES * sizeof *tinfo);
    ntypes = opt.first_type < MAX_TYPE_IDS ? opt.first_type : 0;
    return ctab && pasts && word_places && tinfo;
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

uint64_t word_of(char *klass) {
    if (vm.compressed_class || vm.compact_headers)
        return (uint64_t)(klass - rdp(vm.narrow_klass_base)) >> rd32(vm.narrow_klass_shift);
    return (uint64_t)klass;
}

char *klass_of(uint64_t word) {
    if (vm.compressed_class || vm.compact_headers)
        return rdp(vm.narrow_klass_base) + (word << rd32(vm.narrow_klass_shift));
    return (char *)word;
}

void class_died(struct centry *c, uint64_t now) {
    pasts[c - ctab].died = now; // before the mark: class_type_at
    atomic_fetch_or_explicit((_Atomic uint32_t *)&c->type, TF_DEAD, memory_order_release);
}

// Without a lock: the VM thread may find the class dead, or give its word to another one, at any time.
uint32_t class_type_at(uint64_t word, uint64_t time) {
    const struct centry *c = class_lookup(word);
    if (!c) return 0;
    const uint32_t t = atomic_load_explicit((_Atomic uint32_t *)&c->type, memory_order_acquire);
    const struct past *p = &pasts[c - ctab];
    if (t & TF_DEAD) return time < p->died ? t & TYPE_MASK : 0; // else: of a class that no scan has met yet
    return t & TF_REUSED && time < p->died ? p->before[0].type : t & TYPE_MASK;
}

const struct class_past *class_pasts(const struct centry *c) { return pasts[c - ctab].before; }

struct centry *class_insert(char *klass, uint64_t word, uint32_t loader) {
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
        hots_forget();
        c->lh = lh;
        struct past *p = &pasts[c - ctab];
        const uint32_t oldest = p->before[CLASS_PASTS - 1].number;
        class_reused = true;
        class_reused_often |= oldest >= unloading_first && oldest <= unloading_no;
        struct class_past older[CLASS_PASTS - 1];
        memcpy(older, p->before, sizeof older);
        memcpy(&p->before[1], older, sizeof older);
        p->before[0] = (struct class_past){c->type & TYPE_MASK, unloading_no};
        if (!(c->type & TF_DEAD)) p->died = 0; // nobody saw it go
        atomic_store_explicit((_Atomic uint32_t *)&c->type,
                              id | TF_REUSED | (flags & HC_TF_VARIABLE ? TF_VARIABLE : 0), memory_order_release);
        return c;
    }
    if (nwords > CTAB / 2) violation("the class table is full", ntypes);
    uint64_t i = (word * 0x9e3779b97f4a7c15ull) >> ctab_shift;
    while (ctab[i].word) i = (i + 1) & ctab_mask;
    ctab[i].type = id | (flags & HC_TF_VARIABLE ? TF_VARIABLE : 0);
    ctab[i].lh = lh;
    word_places[nwords++] = (uint32_t)i;
    atomic_store_explicit((_Atomic uint64_t *)&ctab[i].word, word, memory_order_release); // pairs with class_lookup
    return &ctab[i];
}

struct centry *class_learn(uint64_t word) {
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
    struct centry *c = class_insert(kl, word, 0);
    if (c) tinfo[TSLOT(c->type)].flags |= TI_ARCHIVED; // no loader lists it, and it never goes
    return c;
}
