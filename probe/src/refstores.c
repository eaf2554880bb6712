//go:build ignore

// refstores.c: refstores.h.
#include "refstores.h"

#include <stdlib.h>
#include <string.h>

#include "classtable.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "log.h"
#include "marks.h"
#include "object.h"
#include "os.h"
#include "recording.h"
#include "tokens.h"
#include "vmrows.h"
#include "vmstructs.h"

// A block of a store has room for 64 references, then says which of them are in use, and whose block it is. A store
// begins with its name and with the list of its blocks: room in it, count, users, blocks.
enum { OBJECTS = 64, USED = 8 * OBJECTS, OWNER = USED + 8, BLOCK = OWNER + 8, NAME = 0, LIST = 8 };
enum { COUNT = 8, BLOCKS = 24, MOST_BLOCKS = 1 << 16, LINE = 64 };
enum { REACH = 16 << 20, PIECE = 4096 }; // how far the variables of the JVM are searched

static PER_RECORDING struct {
    uint64_t globals, mine, jvm, threads; // stores; the block of our global
    bool tried;
} stores;

static bool is_named(uint64_t store, const char *name) {
    uint64_t at;
    char text[32] = {0};
    const size_t n = strlen(name) + 1;
    return store && !(store & 7) && safe_read(&at, store + NAME, 8) && at && safe_read(text, at, n) &&
           !memcmp(text, name, n);
}

static void find_mine(jobject global) {
    uint64_t block = (uintptr_t)global & ~(uint64_t)(LINE - 1), owner;
    for (int i = 0; i <= 8 * OBJECTS / LINE; i++, block -= LINE)
        if (safe_read(&owner, block + OWNER, 8) && is_named(owner, "JNI Global")) {
            stores.globals = owner, stores.mine = block;
            return;
        }
}

// The stores stand side by side in a variable of the JVM. This is one place of it; its neighbours are looked at.
static void find_others(uint64_t place) {
    enum { NEAR = 16 };
    for (int i = -NEAR; i <= NEAR; i++) {
        uint64_t store;
        if (!safe_read(&store, place + (uint64_t)(8 * (int64_t)i), 8)) continue;
        if (is_named(store, "VM Global")) stores.jvm = store;
        if (is_named(store, "Thread OopStorage")) stores.threads = store;
    }
}

static void search(void) {
    const uint64_t some = vm_address(SLOT_MIRROR_CLASS) & ~(uint64_t)(PIECE - 1);
    uint64_t words[PIECE / 8];
    for (int64_t off = -REACH; off < REACH; off += PIECE) {
        const uint64_t at = some + (uint64_t)off;
        if (!safe_read(words, at, PIECE)) continue;
        for (uint64_t i = 0; i < PIECE / 8; i++)
            if (words[i] == stores.globals) find_others(at + 8 * i);
        if (stores.jvm && stores.threads) return;
    }
}

bool refstores_find(jobject global) {
    if (!stores.tried) {
        stores.tried = true;
        if (global) find_mine(global);
        if (stores.globals) search();
    }
    return stores.jvm && stores.threads;
}

struct reading {
    struct refs *r;
    uint64_t store;
    int32_t kind; // of roots, < 0: none are wanted
    bool mine;    // the block of our global was there
};

static void add_root(struct refs *r, uint64_t oop, int32_t kind) {
    const uint64_t a = oop - (uint64_t)vm.heap_base;
    if (!oop) return;
    if (a >= vm.heap_bytes || oop & (vm.align - 1)) violation("a root of the JVM is no object", oop);
    refwalk_add_root(r, (uint32_t)WORD(oop) + 1, kind);
}

static void read_store(void *arg) {
    struct reading *x = arg;
    need_memory(x->store, x->store + LIST + 8);
    const char *list = rdp((const char *)x->store + LIST);
    need_memory((uint64_t)list, (uint64_t)list + BLOCKS);
    const uint64_t n = rd64(list + COUNT);
    if (n > MOST_BLOCKS) violation("a store of roots has too many blocks", n);
    need_memory((uint64_t)list, (uint64_t)list + BLOCKS + 8 * n);
    for (uint64_t i = 0; i < n; i++) {
        const char *block = rdp(list + BLOCKS + 8 * i);
        need_memory((uint64_t)block, (uint64_t)block + BLOCK);
        if (rd64(block + OWNER) != x->store) violation("a store of roots has another's block", (uint64_t)block);
        x->mine |= (uint64_t)block == stores.mine;
        const uint64_t used = rd64(block + USED);
        for (uint32_t k = 0; x->kind >= 0 && k < OBJECTS; k++)
            if (used >> k & 1) add_root(x->r, rd64(block + (uint64_t)8 * k), x->kind);
    }
}

bool refstores_read(struct refs *r) {
    if (!stores.jvm || !stores.threads) return false;
    const uint32_t before = r->roots;
    struct reading known = {.r = r, .store = stores.globals, .kind = -1};
    struct reading jvm = {.r = r, .store = stores.jvm, .kind = HC_RR_OTHER};
    struct reading threads = {.r = r, .store = stores.threads, .kind = HC_RR_THREAD};
    if (guarded(read_store, &known) && known.mine && guarded(read_store, &jvm) && guarded(read_store, &threads))
        return true;
    r->roots = before;
    return false;
}

// ---- stacks -------------------------------------------------------------------------------------
// JNI references of native code that has called Java: the call keeps the thread, then where they are, on the stack.
// What looks like one and is none does no harm: what is read counts if it is an object.
static void read_locals(struct refs *r, uint64_t block) {
    enum { WORDS = 32, NEXT = WORDS + 1, MOST = 1 << 10 };
    uint64_t words[NEXT + 1];
    for (int i = 0; i < MOST && block && !(block & 7) && safe_read(words, block, sizeof words); i++) {
        refwalk_maybe(r, (uintptr_t)words, (uintptr_t)&words[WORDS]);
        block = words[NEXT];
        if (now_ns() > r->until) r->maybes_full = true;
        if (r->maybes_full) return;
    }
}

static void read_calls(struct refs *r, uint64_t thread, uint64_t lo, uint64_t hi) {
    const int64_t anchor = vm_offset(SLOT_WRAPPER_ANCHOR);
    enum { BEFORE = 24 }; // where they are, before the anchor
    for (uint64_t p = lo; anchor == BEFORE + 8 && p + (uint64_t)anchor + 8 <= hi && !r->maybes_full; p += 8) {
        if (!(p & 0xffff) && now_ns() > r->until) r->maybes_full = true;
        if (rd64((void *)p) != thread) continue;
        const uint64_t sp = rd64((void *)(p + (uint64_t)anchor)); // of the frames of Java before
        if (!sp || (sp > p && sp < hi && !(sp & 7))) read_locals(r, rd64((void *)(p + 8)));
    }
}

static void read_stacks(void *arg) {
    enum { MOST = 1 << 16 };
    const int64_t base = vm_offset(SLOT_STACK_BASE), bytes = vm_offset(SLOT_STACK_BYTES);
    const int64_t sp = vm_offset(SLOT_THREAD_ANCHOR) + vm_offset(SLOT_ANCHOR_SP);
    const char *list = rdp(vm.thread_list), *threads = rdp(list + vm.tl_threads);
    const uint32_t n = rd32(list + vm.tl_length);
    if (n > MOST) violation("more threads than the probe can hold", n);
    struct refs *r = arg;
    for (uint32_t i = 0; i < n; i++) {
        if (now_ns() > r->until) r->maybes_full = true; // as if there were more than it has room for
        if (r->maybes_full) return;
        const char *t = rdp(threads + (size_t)8 * i);
        const uint64_t lo = rd64(t + sp), hi = rd64(t + base);
        if (!lo) continue; // no frame of Java
        if (lo & 7 || lo >= hi || hi - lo > rd64(t + bytes)) violation("a thread's stack is invalid", lo);
        need_memory(lo, hi);
        refwalk_maybe(r, lo, hi);
        read_calls(r, (uint64_t)t, lo, hi);
    }
}

bool refstores_stacks(struct refs *r) {
    return vm_has_thread_list() && vm_offset(SLOT_STACK_BASE) >= 0 && vm_offset(SLOT_STACK_BYTES) >= 0 &&
           vm_offset(SLOT_THREAD_ANCHOR) >= 0 && vm_offset(SLOT_ANCHOR_SP) >= 0 && guarded(read_stacks, r);
}

static int by_word(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t leb(const uint8_t **p) {
    uint64_t v = 0;
    for (int s = 0;; s += 7) {
        v |= (uint64_t)(**p & 127) << s;
        if (*(*p)++ < 128) return v;
    }
}

static uint64_t words_of(const struct tinfo *ti, const uint8_t **p) {
    const uint64_t len = ti->lh < 0 || ti->flags & (HC_TF_VARIABLE | TI_CHUNK) ? leb(p) : 0;
    if (ti->lh < 0) return align_up(((uint32_t)ti->lh >> 16 & 0xff) + (len << ((uint32_t)ti->lh & 63))) / 8;
    return ti->flags & (HC_TF_VARIABLE | TI_CHUNK) ? len : align_up((uint32_t)ti->lh & ~1u) / 8;
}

// What is archived is never collected, whether something refers to it or not.
static bool has_archived(const struct refs *r, uint64_t lo, uint64_t hi) {
    for (uint32_t i = 0; vm_has_regions() && i < r->heap.n; i++) {
        const struct area *f = &r->heap.area[i];
        if (f->kind == HC_SPACE_ARCHIVE && WORD(f->bottom) < hi && WORD(f->top) > lo) return true;
    }
    return false;
}

static bool is_archived(const struct refs *r, uint64_t word) { return has_archived(r, word, word + 1); }

// The objects of a part: each that is archived becomes a root, and each of the candidates that is one. The candidates
// from first on are not behind it. Returns the first behind it.
static uint32_t settle_part(struct refs *r, uint32_t part, uint32_t first, bool archived) {
    const struct refpart *x = &r->part[part];
    const uint8_t *p = r->token + x->token, *end = r->token + (part + 1 < r->parts ? x[1].token : r->tokens);
    uint32_t i = first;
    for (uint64_t word = x->word; p < end && (archived || i < r->maybes);) {
        const uint64_t tok = leb(&p);
        if (tok == HC_LIST_SKIP) {
            word += leb(&p);
            continue;
        }
        while (i < r->maybes && r->maybe[i] < word + 1) i++;
        if (archived && is_archived(r, word))
            refwalk_add_root(r, (uint32_t)word + 1, HC_RR_OTHER);
        else if (i < r->maybes && r->maybe[i] == word + 1)
            refwalk_add_root(r, r->maybe[i], HC_RR_STACK);
        word += words_of(&tinfo[TSLOT(tok - HC_LIST_TYPE + 1)], &p);
    }
    return i;
}

void refstores_settle(struct refs *r) {
    qsort(r->maybe, r->maybes, sizeof *r->maybe, by_word);
    uint32_t i = 0;
    for (uint32_t part = 0; part < r->parts; part++) {
        const uint64_t lo = r->part[part].word, hi = part + 1 < r->parts ? r->part[part + 1].word : UINT64_MAX;
        const bool archived = has_archived(r, lo, hi);
        while (i < r->maybes && r->maybe[i] < lo + 1) i++;
        if (archived || (i < r->maybes && r->maybe[i] - 1 < hi)) i = settle_part(r, part, i, archived);
    }
}
