//go:build ignore

// refwalk.c: refwalk.h.
#include "refwalk.h"

#include <stdio.h>
#include <string.h>

#include "classes.h"
#include "classtable.h"
#include "guard.h"
#include "heapwalk.h"
#include "marks.h"
#include "object.h"
#include "os.h"
#include "recording.h"
#include "tlabs.h"
#include "tokens.h"
#include "vmrows.h"

// ---- what the JVM's tables say ------------------------------------------------------------------
static PER_RECORDING struct {
    int64_t vtable, itable, maps, kind, mirror, constants, cache, resolved, hidden, super;
    uint64_t class_size; // of HotSpot's InstanceKlass; behind it stand its tables
    int *mirror_class, *mirror_statics;
    uint8_t kinds[5]; // HC_RS_* of a Reference by the byte in its class, from 1 on; 0: none
    bool ready;
} at;

static int *static_int(enum vm_slot s) { return (int *)(uintptr_t)vm_address(s); }

bool refwalk_ready(char why[HC_MAX_REASON]) {
    if (at.ready) return true;
    at.vtable = vm_offset(SLOT_CLASS_VTABLE), at.itable = vm_offset(SLOT_CLASS_ITABLE);
    at.maps = vm_offset(SLOT_CLASS_MAPS), at.kind = vm_offset(SLOT_CLASS_REFERENCE);
    at.mirror = vm_offset(SLOT_CLASS_MIRROR), at.constants = vm_offset(SLOT_CLASS_CONSTANTS);
    at.cache = vm_offset(SLOT_CONSTANTS_CACHE), at.resolved = vm_offset(SLOT_CACHE_RESOLVED);
    at.hidden = vm_offset(SLOT_LOADER_HID), at.super = vm_offset(SLOT_CLASS_SUPER);
    at.class_size = vm_size_of("InstanceKlass");
    at.mirror_class = static_int(SLOT_MIRROR_CLASS), at.mirror_statics = static_int(SLOT_MIRROR_STATICS);
    const bool narrow = vm_address(SLOT_REFERENCE_BASE) && vm_address(SLOT_REFERENCE_SHIFT);
    at.ready = at.vtable >= 0 && at.itable >= 0 && at.maps >= 0 && at.kind >= 0 && at.mirror >= 0 && at.super >= 0 &&
               at.hidden >= 0 && at.class_size && at.class_size % 8 == 0 && at.mirror_class && at.mirror_statics &&
               (narrow || !vm.compressed_oops);
    if (!at.ready) snprintf(why, HC_MAX_REASON, "JDK %d does not show where objects have their references", vm.major);
    return at.ready;
}

// The mirror may move, so it is read between two looks at the counter of collections.
bool refwalk_klass_of(jclass k, uint64_t *klass) {
    for (int i = 0; i < 8; i++) {
        uint64_t c = atomic_load_explicit(&gc_counter, memory_order_acquire), oop;
        if (!(c & 1) && safe_read(&oop, (uintptr_t)k & ~7ull, sizeof oop) &&
            safe_read(klass, oop + (uint32_t)*at.mirror_class, sizeof *klass)) {
            atomic_thread_fence(memory_order_acquire);
            if (c == atomic_load_explicit(&gc_counter, memory_order_relaxed)) return *klass != 0;
        }
        os_sleep_us(1000);
    }
    return false;
}

bool refwalk_know_references(JNIEnv *jni) {
    static const struct {
        const char *name;
        uint8_t strength;
    } of[] = {{"java/lang/ref/SoftReference", HC_RS_SOFT},
              {"java/lang/ref/WeakReference", HC_RS_WEAK},
              {"java/lang/ref/FinalReference", HC_RS_FINAL},
              {"java/lang/ref/PhantomReference", HC_RS_PHANTOM}};
    int known = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        jclass k = (*jni)->FindClass(jni, of[i].name);
        uint64_t klass;
        uint8_t kind = 0;
        if (k && refwalk_klass_of(k, &klass) && safe_read(&kind, klass + (uint64_t)at.kind, 1) && kind &&
            kind <= sizeof at.kinds)
            at.kinds[kind - 1] = of[i].strength, known++;
        (*jni)->ExceptionClear(jni);
        (*jni)->DeleteLocalRef(jni, k);
    }
    return known == 4;
}

static PER_RECORDING uint64_t base; // of narrow references
static PER_RECORDING uint32_t shift;
static PER_RECORDING uint64_t reach; // bytes from the heap base on whose words + 1 fit into 32 bits

void refwalk_know_words(void) {
    const uint64_t most = (uint64_t)UINT32_MAX << 3;
    reach = vm.heap_bytes < most ? vm.heap_bytes : most;
    if (!vm.compressed_oops) return;
    base = (uint64_t)rdp((void *)(uintptr_t)vm_address(SLOT_REFERENCE_BASE));
    shift = rd32((void *)(uintptr_t)vm_address(SLOT_REFERENCE_SHIFT));
}

uint32_t refwalk_word(uint32_t v) {
    const uint64_t words = ((((uint64_t)v << shift) + base) - (uint64_t)vm.heap_base) >> 3;
    return v && words < reach >> 3 ? (uint32_t)words + 1 : 0;
}

static void add_maybe(struct refs *r, uint32_t word) {
    if (!word || ((uint64_t)word - 1) * 8 & (vm.align - 1)) return;
    uint32_t *place = &r->seen[(word * 0x9e3779b1u) >> 18];
    if (*place == word) return;
    *place = word;
    if (r->maybes == REF_MAYBES)
        r->maybes_full = true;
    else
        r->maybe[r->maybes++] = word;
}

void refwalk_maybe(struct refs *r, uint64_t lo, uint64_t hi) {
    for (uint64_t p = lo; p + 8 <= hi && !r->maybes_full; p += 8) {
        if (!(p & 0xffff) && now_ns() > r->until) r->maybes_full = true; // a large stack
        const uint64_t v = rd64((void *)p), o = v - (uint64_t)vm.heap_base;
        if (!v) continue;
        if (o < reach && !(v & 7)) add_maybe(r, (uint32_t)(o >> 3) + 1);
        if (!vm.compressed_oops) continue;
        add_maybe(r, refwalk_word((uint32_t)v));
        if (v >> 32) add_maybe(r, refwalk_word((uint32_t)(v >> 32)));
    }
}

// ---- classes ------------------------------------------------------------------------------------
static uint64_t class_hash(const char *klass) { return ((uintptr_t)klass * 0x9e3779b97f4a7c15ull) >> 43; } // 2^21

uint32_t refwalk_class(const struct refs *r, const char *klass) {
    for (uint64_t i = class_hash(klass);; i = (i + 1) & (2 * REF_CLASSES - 1)) {
        uint32_t n = r->class_at[i];
        if (!n || r->class[n].klass == klass) return n;
    }
}

static uint32_t add_class(struct refs *r, char *klass, uint32_t type) {
    uint64_t i = class_hash(klass);
    for (; r->class_at[i]; i = (i + 1) & (2 * REF_CLASSES - 1))
        if (r->class[r->class_at[i]].klass == klass) return r->class_at[i];
    if (r->classes + 2 >= REF_CLASSES) violation("more classes than a reference listing can hold", r->classes);
    r->class[++r->classes] = (struct refclass){.klass = klass, .super = rdp(klass + at.super), .type = type};
    return r->class_at[i] = r->classes;
}

static uint64_t oop_of(const char *handle) {
    const char *place = rdp(handle);
    uint64_t oop = place ? rd64(place) : 0;
    return oop - (uint64_t)vm.heap_base < vm.heap_bytes ? oop : 0;
}

static void add_extra(struct refs *r, uint64_t from, uint64_t to, uint32_t kind) {
    if (r->extras == REF_EXTRA)
        r->extras_full = true;
    else
        r->extra[r->extras++] = (struct refextra){(uint32_t)WORD(from), (uint32_t)WORD(to), kind};
}

void refwalk_add_root(struct refs *r, uint32_t target, int32_t kind) {
    if (r->roots == REF_ROOTS)
        r->roots_full = true;
    else
        r->root[r->roots++] = (struct refroot){.target = target, .kind = kind, .bci = -1};
}

// A hidden class is held by its mirror alone: no loader holds it.
static void look_at_class(struct refs *r, char *klass, uint64_t loader, bool hidden) {
    const int32_t lh = (int32_t)rd32(klass + vm.k_layout);
    const struct centry *c = lh ? class_lookup(word_of(klass)) : NULL;
    add_class(r, klass, c && !(c->type & TF_DEAD) ? c->type & TYPE_MASK : 0);
    const uint64_t mirror = oop_of(klass + at.mirror);
    if (!mirror) return;
    if (!hidden && loader) add_extra(r, loader, mirror, HC_RE_DEFINES);
    if (!hidden && !loader) refwalk_add_root(r, (uint32_t)WORD(mirror) + 1, HC_RR_LOADER);
    if (lh < 0 || at.constants < 0 || at.cache < 0 || at.resolved < 0) return;
    const char *constants = rdp(klass + at.constants), *cache = constants ? rdp(constants + at.cache) : NULL;
    const uint64_t resolved = cache ? oop_of(cache + at.resolved) : 0;
    if (resolved) add_extra(r, mirror, resolved, HC_RE_RESOLVED);
}

static void look_at_loaders(struct refs *r) {
    enum { MOST = 1 << 22 };
    uint64_t n = 0;
    r->no_resolved = at.constants < 0 || at.cache < 0 || at.resolved < 0;
    for (char *cld = rdp(vm.cld_head); cld; cld = rdp(cld + vm.cld_next)) {
        const uint64_t loader = oop_of(cld + vm.cld_loader);
        const bool hidden = *(volatile uint8_t *)(cld + at.hidden) != 0;
        for (char *k = rdp(cld + vm.cld_klasses); k; k = rdp(k + vm.k_next)) {
            if (++n > MOST) violation("a list of classes has no end", (uint64_t)k);
            look_at_class(r, k, loader, hidden);
        }
        if (++n > MOST) violation("the list of class loaders has no end", (uint64_t)cld);
    }
}

// ---- where objects of a type have their references -----------------------------------------------
// PLAIN: two blocks at most, of few references each. The elements of an array are its first block.
enum { UNKNOWN, PLAIN, BLOCKS, MIRROR, CHUNK };
enum { FEW = 4, ROOM = 4 * FEW }; // ROOM: slots that an object may write to unasked

static uint32_t slot_bytes(void) { return vm.compressed_oops ? 4 : 8; }

// Copies the oop maps of a class, which stand behind its tables of methods.
static void read_maps(struct refs *r, struct reftype *t, const char *klass, uint32_t size) {
    const uint32_t n = rd32(klass + at.maps), v = rd32(klass + at.vtable), i = rd32(klass + at.itable);
    if (n > 4096 || v > 1 << 20 || i > 1 << 24 || r->blocks + 2 * n > 2 * REF_BLOCKS)
        violation("the tables of a class are invalid", (uint64_t)klass);
    const char *from = klass + at.class_size + 8 * ((uint64_t)v + i);
    uint64_t end = 8;
    t->block = r->blocks, t->nblocks = n;
    for (uint32_t b = 0; b < n; b++, from += 8) {
        uint32_t off = rd32(from), count = rd32(from + 4);
        // Of a Reference the map has the two fields behind the referent alone.
        if (b == 0 && t->kind == HC_RC_REFERENCE) {
            if (count < 2) violation("a Reference is not laid out as expected", (uint64_t)klass);
            off -= slot_bytes(), count++;
        }
        if (off < end || off % slot_bytes() || count > size || off + count * slot_bytes() > size)
            violation("the map of an object's references is invalid", (uint64_t)klass);
        end = off + count * slot_bytes();
        r->block[r->blocks++] = off, r->block[r->blocks++] = count;
        t->slots += count;
    }
}

static void put_map(struct refs *r, struct refmap *m, const struct reftype *t, int how) {
    m->slots = t->slots;
    m->nblocks = t->nblocks < 255 ? (uint8_t)t->nblocks : 255;
    m->more = t->block + 4;
    for (uint32_t b = 0; b < 2 && b < t->nblocks; b++)
        m->off[b] = r->block[t->block + 2 * b], m->count[b] = r->block[t->block + 2 * b + 1];
    if (t->nblocks >= 255) violation("a class has too many stretches of references", t->type);
    m->how = (uint8_t)(how == PLAIN && (t->nblocks > 2 || m->count[0] > FEW || m->count[1] > FEW) ? BLOCKS : how);
}

static __attribute__((noinline)) void learn_type(struct refs *r, struct refmap *m, uint32_t type, uint64_t word) {
    const struct tinfo *ti = &tinfo[TSLOT(type)];
    const struct centry *c = class_lookup(word);
    const bool dead = !c || c->type & TF_DEAD || (c->type & TYPE_MASK) != type;
    struct reftype *t = &r->type[r->types++];
    *t = (struct reftype){.type = type};
    if (!dead) {
        t->class = add_class(r, klass_of(word), type);
        r->class[t->class].of_type = r->types;
    }
    if (ti->lh < 0) {
        const bool objects = (uint32_t)ti->lh >> 30 == 2;
        t->kind = objects ? HC_RC_OBJARRAY : HC_RC_ARRAY;
        m->how = PLAIN;
        if (ti->flags & HC_TF_FILLER) t->kind = HC_RC_FILLER;
        if (t->kind != HC_RC_OBJARRAY) return;
        if (1u << (ti->lh & 31) != slot_bytes()) violation("an array is not laid out so", word);
        m->off[0] = (uint32_t)ti->lh >> 16 & 0xff;
        m->elements = ~0u;
        return;
    }
    const bool chunk = ti->flags & TI_CHUNK, mirror = !chunk && ti->flags & HC_TF_VARIABLE;
    if (dead) { // an object of a class that is gone is dead, too
        m->how = PLAIN;
        return;
    }
    const char *klass = klass_of(word);
    const uint8_t kind = *(volatile const uint8_t *)(klass + at.kind);
    if (kind && kind <= sizeof at.kinds && at.kinds[kind - 1])
        t->kind = HC_RC_REFERENCE, t->strength = at.kinds[kind - 1];
    if (chunk) t->kind = HC_RC_CHUNK;
    if (mirror) t->kind = HC_RC_MIRROR;
    if (ti->flags & HC_TF_FILLER) t->kind = HC_RC_FILLER;
    read_maps(r, t, klass, (uint32_t)ti->lh & ~1u);
    m->header = (uint16_t)((uint32_t)ti->lh & 0xfff8); // of a mirror: behind it stand the statics
    put_map(r, m, t, mirror ? MIRROR : chunk ? CHUNK : PLAIN);
}

// ---- the walk -----------------------------------------------------------------------------------
HOT uint32_t *copy(bool wide, uint32_t *s, uint64_t from, uint64_t n) {
    if (!wide) {
        const uint32_t *p = (const uint32_t *)from;
        for (uint64_t i = 0; i < n; i++) s[i] = p[i];
        return s + n;
    }
    const uint64_t *p = (const uint64_t *)from;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t o = p[i] - (uint64_t)vm.heap_base; // null, and what leads to where no object is: 0
        s[i] = o < reach ? (uint32_t)(o >> 3) + 1 : 0;
    }
    return s + n;
}

// n: references of the first block.
HOT uint32_t *copy_blocks(bool wide, const struct refs *r, uint32_t *s, uint64_t a, const struct refmap *m,
                          uint64_t n) {
    s = copy(wide, s, a + m->off[0], n);
    s = copy(wide, s, a + m->off[1], m->count[1]);
    for (uint32_t b = 2, at_block = m->more; b < m->nblocks; b++, at_block += 2)
        s = copy(wide, s, a + r->block[at_block], r->block[at_block + 1]);
    return s;
}

static bool need(struct refs *r, const uint32_t *s, uint64_t n) {
    if (LIKELY((uint64_t)(r->slot_end - s) >= n)) return true;
    r->full = true;
    return false;
}

static __attribute__((noinline)) uint32_t *put_counted(struct refs *r, uint32_t *s, uint64_t a, uint64_t size,
                                                       const struct refmap *m) {
    uint32_t class = 0, n = 0;
    if (m->how == MIRROR) {
        const char *klass = rdp((char *)a + (uint32_t)*at.mirror_class);
        class = klass ? refwalk_class(r, klass) : 0;
        n = rd32((char *)a + (uint32_t)*at.mirror_statics);
        if (m->header + (uint64_t)n * slot_bytes() > size) n = 0, r->odd_mirrors++;
        if (class) r->class[class].statics = n;
    } else { // before a collection has come to it, nothing says where its references are
        r->chunks++;
        refwalk_maybe(r, a + m->header, a + size);
    }
    if (!need(r, s, 2 + m->slots + (uint64_t)n) || &r->raw[r->raws] == r->raw_end) return r->full = true, s;
    r->raw[r->raws++] = (uint64_t)(s - r->slot);
    *s++ = class, *s++ = n;
    const bool wide = !vm.compressed_oops;
    s = copy_blocks(wide, r, s, a, m, m->count[0]);
    return copy(wide, s, a + m->header, n);
}

// What few objects need: of a type that was not met before, with many references, or at the end of a stretch.
static __attribute__((noinline)) uint32_t *put_slowly(struct refs *r, uint32_t *s, uint64_t a, uint64_t size,
                                                      uint32_t len, struct refmap *m) {
    if (m->how > BLOCKS) return put_counted(r, s, a, size, m);
    const uint64_t n = m->count[0] + (uint64_t)(len & m->elements);
    if (!need(r, s, n + m->slots - m->count[0])) return s;
    return copy_blocks(!vm.compressed_oops, r, s, a, m, n);
}

// Copies n references. It reads and writes FEW of them: no loop, whose end nobody could predict.
HOT uint32_t *copy_few(bool wide, uint32_t *s, uint64_t from, uint64_t n) {
    if (wide) return copy(wide, s, from, n);
    __builtin_memcpy(s, (const uint32_t *)from, 4 * FEW);
    return s + n;
}

// The next part begins at the object at a. false: the walk ends here.
static __attribute__((noinline)) bool next_part(struct refs *r, uint64_t a, const uint8_t *p, const uint32_t *s) {
    if (r->part + r->parts == r->part_end || r->token_end - p < REF_PART_TOKENS / 8) r->full = true;
    if (r->slot_end - s < 2 * ROOM) r->full = true;
    if (now_ns() > r->until) r->late = true;
    if (r->full || r->late) return false;
    r->part[r->parts++] = (struct refpart){WORD(a), (uint64_t)(p - r->token), (uint64_t)(s - r->slot)};
    return true;
}

struct stretch {
    uint64_t lo, hi;
    const uint64_t *bits; // marks of G1, NULL: none; they tell of what lies below seen
    uint64_t seen;
    bool holes;
};

// Returns the first address at or behind a where an object is, or hi.
static inline uint64_t to_object(const struct stretch *x, uint64_t a, uint32_t *hole) {
    for (;;) {
        if (x->bits && a < x->seen && !is_marked(x->bits, a)) a = marked_from(x->bits, a, x->seen);
        if (!x->holes) return a;
        while (*hole < nholes && holes[*hole].lo < a) ++*hole;
        if (*hole == nholes || holes[*hole].lo != a || a >= x->hi) return a;
        a = holes[*hole].hi;
    }
}

// dense: each object begins where the one before ends.
HOT void walk(int lay, bool wide, bool dense, struct refs *r, const struct stretch *x) {
    const uint64_t round = ~(vm.align - 1), hi = x->hi;
    struct refmap *const maps = r->map;
    struct hot spare;
    uint8_t *p = r->token + r->tokens, *p_limit = p;
    uint32_t *s = r->slot + r->slots, *s_limit = s;
    uint64_t prev = 0, n = 0;
    uint32_t hole = 0;
    for (uint64_t a = dense ? x->lo : to_object(x, x->lo, &hole); a < hi; a = dense ? a : to_object(x, a, &hole)) {
        uint32_t len;
        uint64_t next;
        __builtin_prefetch((void *)(a + AHEAD));
        if (!LIKELY(p < p_limit && s < s_limit)) {
            if (!next_part(r, a, p, s)) break;
            p_limit = r->token_end - p < 2 * REF_PART_TOKENS ? p + REF_PART_TOKENS / 16 : p + REF_PART_TOKENS;
            s_limit = r->slot_end - s < REF_PART_SLOTS + ROOM ? r->slot_end - ROOM : s + REF_PART_SLOTS;
            prev = a;
        }
        const uint64_t mark = rd64((void *)a);
        const struct hot *o = object_next(NULL, lay, a, mark, round, &spare, &len, &next);
        if (!LIKELY(o && next <= hi)) unknown_class("a class word in the heap is unknown", a);
        if (!dense && !LIKELY(a == prev)) {
            *p++ = HC_LIST_SKIP;
            p = leb_long(p, (a - prev) >> 3);
        }
        p = put4(p, o->list, o->nlist);
        p = put_len(p, o, len);
        struct refmap *m = &maps[TSLOT(o->type)];
        if (!LIKELY(m->how)) learn_type(r, m, o->type, word_at(lay, a, mark));
        const uint64_t refs = m->count[0] + (uint64_t)(len & m->elements);
        if (LIKELY((m->how == PLAIN) & (refs <= FEW) & (next + 4 * FEW <= hi))) {
            s = copy_few(wide, s, a + m->off[0], refs);
            if (m->nblocks > 1) s = copy_few(wide, s, a + m->off[1], m->count[1]);
        } else {
            s = put_slowly(r, s, a, next - a, len, m);
            if (r->full) break;
        }
        prev = a = next;
        n++;
    }
    r->tokens = (uint64_t)(p - r->token), r->slots = (uint64_t)(s - r->slot);
    r->objects += n;
}

static void walk_stretch(struct refs *r, const struct stretch *x) {
    need_memory(x->lo, x->hi);
    const bool dense = !x->bits && !x->holes;
#define DENSE(lay) walk(lay, false, true, r, x)
#define NARROW_OOPS(lay) walk(lay, false, false, r, x)
#define WIDE_OOPS(lay) walk(lay, true, false, r, x)
    if (vm.compressed_oops && dense)
        FOR_LAYOUT(DENSE);
    else if (vm.compressed_oops)
        FOR_LAYOUT(NARROW_OOPS);
    else
        FOR_LAYOUT(WIDE_OOPS);
#undef DENSE
#undef NARROW_OOPS
#undef WIDE_OOPS
}

static void walk_area(struct refs *r, const struct area *f) {
    struct stretch x = {.lo = f->bottom, .hi = f->top, .holes = f->kind == HC_SPACE_EDEN};
    if (f->kind == HC_SPACE_HUMONGOUS) x.hi = humongous_end(f->bottom);
    if (marks_there() && (f->kind == HC_SPACE_OLD || f->kind == HC_SPACE_ARCHIVE))
        x.bits = marks_of(x.lo, x.hi, &x.seen);
    if (x.lo < x.hi) walk_stretch(r, &x);
}

// Whether all objects are where reach ends or before that.
static bool within_reach(const struct heapmap *h) {
    for (uint32_t i = 0; i < h->n; i++)
        if (h->area[i].kind != HC_SPACE_FREE && h->area[i].top > h->area[i].bottom &&
            h->area[i].top - (uint64_t)vm.heap_base > reach)
            return false;
    return true;
}

// In the order of addresses; of Serial and Parallel the survivor space that is not in use is empty.
void refwalk_all(void *arg) {
    struct refs *r = arg;
    struct heapmap *h = &r->heap;
    classes_scan_new();
    heapmap()->read(h);
    refwalk_know_words();
    r->far = !within_reach(h);
    if (r->far) return;
    tlab_holes();
    look_at_loaders(r);
    uint32_t order[SPACES] = {EDEN, FROM, TO, OLD};
    for (int i = 1; !vm_has_regions() && i < SPACES; i++)
        for (int j = i; j && h->area[order[j - 1]].bottom > h->area[order[j]].bottom; j--) {
            uint32_t t = order[j];
            order[j] = order[j - 1], order[j - 1] = t;
        }
    for (uint32_t i = 0; i < h->n && !r->full && !r->late; i++) {
        const uint32_t k = vm_has_regions() ? i : order[i];
        const struct area *f = &h->area[k];
        if (f->kind == HC_SPACE_FREE || f->kind == HC_SPACE_HUMONGOUS_CONT) continue;
        if (!vm_has_regions() && k == TO) continue;
        walk_area(r, f);
    }
}
