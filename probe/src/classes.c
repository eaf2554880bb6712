//go:build ignore

// classes.c: classes.h.
#include "classes.h"

#include <string.h>

#include "classtable.h"
#include "encode.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "heapmap.h"
#include "object.h"
#include "recording.h"
#include "sidetable.h"
#include "tops.h"

static PER_RECORDING uint32_t nloaders;
static PER_RECORDING struct cld_seen {
    uint64_t cld, head;
    uint32_t loader;
} * clds, *clds_before; // open addressing; made anew whenever classes may have died
enum { CLDS_FIRST = 1 << 12, CLDS_MOST = 1 << 18 };
static PER_RECORDING uint32_t clds_size, clds_size_before; // powers of two; an eighth at least stays empty
static PER_RECORDING uint32_t *slots, *slots_before; // places in use in clds and in clds_before
static PER_RECORDING uint32_t nclds, nclds_before, nclds_kept; // how many; of those before, how many stay
// Types of classes that died and that have not gone, with what is not known yet of the objects that they have left.
enum { DYING_UNMEASURED = INT32_MIN, DYING_UNSEEN = 1 << 30, DYING_EDEN = 1 << 29 };
static PER_RECORDING uint32_t *dying, ndying;

bool classes_init(void) {
    dying = memory(MAX_TYPES * sizeof *dying);
    clds = memory(CLDS_MOST * sizeof *clds);
    clds_before = memory(CLDS_MOST * sizeof *clds);
    slots = memory(CLDS_MOST * sizeof *slots);
    slots_before = memory(CLDS_MOST * sizeof *slots);
    clds_size = clds_size_before = CLDS_FIRST;
    return classtable_init() && side_init() && tops_init(heapmap()->areas()) &&
           dying && clds && clds_before && slots && slots_before;
}

static struct cld_seen *cld_slot(struct cld_seen *t, uint32_t size, uint64_t cld) {
    uint64_t i = (cld * 0x9e3779b97f4a7c15ull) >> 32 & (size - 1);
    while (t[i].cld && t[i].cld != cld) i = (i + 1) & (size - 1);
    return &t[i];
}

// The loader that was seen before at this address, if it is the same one: the class that headed its list then is still
// in it. Without this each full collection of a long life would define all loaders anew.
static uint32_t loader_before(char *cld, char *head) {
    struct cld_seen *s = cld_slot(clds_before, clds_size_before, (uint64_t)cld);
    if (!s->cld) return 0;
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
        if (!head) continue; // a loader without a class may die unnoticed, and another one take its place
        struct cld_seen *s = cld_slot(clds, clds_size, (uint64_t)cld);
        const bool known = s->cld, room = nclds < clds_size / 8 * 7;
        if (known && only_new && s->head == (uint64_t)head) continue;
        const uint64_t stop = known && only_new ? s->head : 0;
        uint32_t loader = known ? s->loader : only_new ? 0 : loader_before(cld, head);
        if (!loader && room) loader = define_loader(cld); // without room it would be defined in each pause
        uint64_t kn = 0;
        for (char *k = head; k && (uint64_t)k != stop; k = rdp(k + vm.k_next)) {
            if (++kn > 1u << 22) violation("a list of classes has no end", (uint64_t)k);
            class_insert(k, word_of(k), loader);
        }
        if (!known && !room) continue;
        if (!known) slots[nclds++] = (uint32_t)(s - clds);
        *s = (struct cld_seen){(uint64_t)cld, (uint64_t)head, loader};
    }
}

// Empties clds_before.
static void forget_before(void) {
    for (uint32_t i = 0; i < nclds_before; i++) clds_before[slots_before[i]] = (struct cld_seen){0, 0, 0};
    nclds_before = 0;
}

static void swap_loaders(void) {
    struct cld_seen *t = clds;
    uint32_t *places = slots, n = nclds, size = clds_size;
    clds = clds_before, slots = slots_before, nclds = nclds_before, clds_size = clds_size_before;
    clds_before = t, slots_before = places, nclds_before = n, clds_size_before = size;
}

static void grow_loaders(void) {
    forget_before();
    clds_size_before = 2 * clds_size;
    for (uint32_t i = 0; i < nclds; i++) {
        struct cld_seen *s = cld_slot(clds_before, clds_size_before, clds[slots[i]].cld);
        *s = clds[slots[i]];
        slots_before[nclds_before++] = (uint32_t)(s - clds_before);
    }
    swap_loaders();
    forget_before();
}

void classes_scan_new(void) {
    if (nclds > clds_size / 2 && clds_size < CLDS_MOST) grow_loaders();
    scan(true);
}

// What the log has no room for is kept for ever.
static void emit_gone(int tag, uint32_t id) {
    uint8_t buf[16];
    struct enc e = {buf, buf, buf + sizeof buf, false};
    put8(&e, (uint8_t)tag);
    put_u(&e, id);
    (void)deflog_append(&type_log, buf, (size_t)(e.p - buf));
}

// Makes clds those of before, and empties it, with room for several times as many.
static void begin_loaders(void) {
    forget_before();
    swap_loaders();
    for (clds_size = CLDS_FIRST; clds_size < 4 * nclds_before && clds_size < CLDS_MOST;) clds_size *= 2;
    nclds_kept = 0;
}

uint32_t classes_scan_all(void) {
    scan_no++;
    begin_loaders();
    uint32_t before = ntypes;
    scan(false);
    uint32_t died = 0;
    const uint64_t now = now_ns() - probe_epoch_ns;
    for (uint32_t i = 0; nclds_kept < nclds_before && i < nclds_before; i++) {
        const struct cld_seen *s = &clds_before[slots_before[i]];
        if (s->loader) emit_gone(HC_EV_LOADERGONE, s->loader);
    }
    for (uint32_t i = 0; i < nwords; i++) {
        struct centry *c = &ctab[word_places[i]];
        if (c->type & TF_DEAD) continue;
        uint32_t id = c->type & TYPE_MASK;
        if (id <= before && tinfo[TSLOT(id)].scan != scan_no && !(tinfo[TSLOT(id)].flags & TI_ARCHIVED)) {
            class_died(c, now);
            dying[ndying++] = id | (uint32_t)DYING_UNMEASURED | DYING_EDEN;
            died++;
        }
    }
    if (died) hots_forget();
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

void classes_forget(bool eden_emptied, bool all, bool samples_sent) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < ndying; i++) {
        uint32_t d = dying[i], t = d & TYPE_MASK;
        if (all) d = t;
        if (eden_emptied) d &= ~(uint32_t)DYING_EDEN;
        if (d != t || tinfo[TSLOT(t)].held || !samples_sent) {
            dying[n++] = d;
            continue;
        }
        emit_gone(HC_EV_TYPEGONE, t);
        tinfo[TSLOT(t)].id = 0;
        nused--;
    }
    ndying = n;
}
