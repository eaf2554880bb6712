//go:build ignore

// metadata.c: metadata.h.
#include "metadata.h"

#include <string.h>

#include "bytecode.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "recording.h"
#include "vmrows.h"
#include "vmstructs.h"

enum {
    BODY = 256 << 10, // bytes of a body with its tables
    LINE = 4 << 10,
    LINES = 384,
    INDEX = 4096,
    METHODS = 128, // that are looked at ahead, and those of the last class
    WARM = 8, // divides LINES
    MOST = 1 << 16,   // entries of a pool; methods of a class
    CLASS_RESOLVED = 7,
    TEXT = 2048,
    CLASS_BYTES = 512, // most of what is read of a class
    HAS_LINES = 1, // ConstMethodFlags::_misc_has_linenumber_table, ConstMethod::_has_linenumber_table
};

// Offsets, constant while something is recorded.
static struct {
    int64_t methods, pool, supers, primary;                 // of a class
    int64_t tags, resolved, holder, length, file;           // of a pool
    int64_t body, data, counters, code;                     // of a method
    int64_t body_pool, body_words, code_bytes, name, sig, flags; // of a body
    int64_t list_length, list_pointers, list_bytes;
    uint64_t pool_bytes, method_bytes, body_bytes;
} at;

// Copies of the present class.
static PER_RECORDING struct {
    uint8_t *body, *tags, *entries, *resolved;
    uint64_t pool, entries_at, resolved_at; // of the pool that the last three hold
    uint32_t length, nresolved;
    bool whole; // entries and resolved hold all of it
    uint64_t methods[META_METHODS];
} now;
// What was copied since metadata_begin, by address: a system call costs as much as 4 KiB that it copies, and classes
// that were loaded side by side lie side by side.
static PER_RECORDING uint8_t *lines;
static PER_RECORDING struct line {
    uint64_t from, turn;
    bool there;
} line[LINES];
static PER_RECORDING uint16_t newest[INDEX]; // by address: the line that may have it
static PER_RECORDING uint32_t lines_made, warm;
// Classes that are read ahead.
static PER_RECORDING struct {
    struct metaclass c[META_AHEAD];
    bool any[META_AHEAD]; // of its bodies some are to be read
    uint32_t step, classes;
} group;
static PER_RECORDING uint64_t turn, reads, read_at;
static PER_RECORDING uint64_t cloneable, throwable; // once found

bool metadata_init(void) {
    const struct {
        int64_t *to;
        enum vm_slot slot;
    } all[] = {
        {&at.methods, SLOT_CLASS_METHODS},   {&at.pool, SLOT_CLASS_CONSTANTS},
        {&at.supers, SLOT_CLASS_SECONDARY},  {&at.primary, SLOT_CLASS_PRIMARY},
        {&at.tags, SLOT_POOL_TAGS},          {&at.resolved, SLOT_POOL_RESOLVED},
        {&at.holder, SLOT_POOL_HOLDER},      {&at.length, SLOT_POOL_LENGTH},
        {&at.file, SLOT_POOL_FILE},          {&at.body, SLOT_METHOD_BODY},
        {&at.data, SLOT_METHOD_DATA},        {&at.counters, SLOT_METHOD_COUNTERS},
        {&at.code, SLOT_METHOD_CODE},        {&at.body_pool, SLOT_BODY_POOL},
        {&at.body_words, SLOT_BODY_WORDS},   {&at.code_bytes, SLOT_BODY_CODE},
        {&at.name, SLOT_BODY_NAME},          {&at.sig, SLOT_BODY_SIGNATURE},
        {&at.flags, SLOT_BODY_FLAGS},        {&at.list_length, SLOT_LIST_LENGTH},
        {&at.list_pointers, SLOT_LIST_POINTERS}, {&at.list_bytes, SLOT_LIST_BYTES},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((*all[i].to = vm_offset(all[i].slot)) < 0) return false;
    at.pool_bytes = vm_size_of("ConstantPool");
    at.method_bytes = vm_size_of("Method");
    at.body_bytes = vm_size_of("ConstMethod");
    if ((vm.major != 17 && vm.major != 25) || vm_has_no_addresses()) return false;
    if (at.pool_bytes < 16 || at.pool_bytes > 256 || at.method_bytes < 32 || at.method_bytes > 256 ||
        at.body_bytes < 16 || at.body_bytes > 256)
        return false;
    lines = memory_sparse((size_t)LINE * LINES);
    now.body = memory(BODY);
    now.tags = memory(MOST);
    now.entries = memory(8 * MOST);
    now.resolved = memory(8 * MOST);
    return lines && now.body && now.tags && now.entries && now.resolved;
}

static uint64_t get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

// How many classes the JVM has unloaded, which it counts before it gives their metadata back. Else a number of its own
// for each pause.
static uint64_t unloaded(uint64_t gc) {
    return vm.perf_unloaded[0] && vm.perf_unloaded[1] ? rd64(vm.perf_unloaded[0]) + rd64(vm.perf_unloaded[1]) : gc;
}

void metadata_begin(uint64_t gc) { turn++, read_at = unloaded(gc), group.step = 0; }

bool metadata_keep(uint64_t gc) {
    if (read_at == unloaded(gc)) return true;
    return metadata_begin(gc), false;
}

uint64_t metadata_reads(void) { return reads; }

static uint16_t *place_of(uint64_t begin) { return &newest[begin / LINE * 0x9e3779b97f4a7c15ull >> 52]; }

static uint8_t *copy_of(const struct line *l) { return lines + (size_t)(l - line) * LINE; }

static struct line *known(uint64_t begin) {
    struct line *l = &line[*place_of(begin)];
    return l->from == begin && l->turn == turn ? l : NULL;
}

// The oldest line, for something new. It is not there yet.
static struct line *new_line(uint64_t begin) {
    struct line *l = &line[lines_made++ % LINES];
    *place_of(begin) = (uint16_t)(l - line);
    *l = (struct line){.from = begin, .turn = turn};
    return l;
}

// The copy of the 4 KiB around from; NULL: not all of them can be read.
static const uint8_t *line_of(uint64_t from) {
    const uint64_t begin = from & ~(uint64_t)(LINE - 1);
    struct line *l = known(begin);
    if (!l) {
        l = new_line(begin);
        l->there = safe_read(copy_of(l), begin, LINE);
        reads++;
    }
    return l->there ? copy_of(l) : NULL;
}

static bool get(void *to, uint64_t from, size_t n) {
    if (from > UINT64_MAX / 2 || n > UINT64_MAX / 4) return false;
    for (uint8_t *p = to; n;) {
        const size_t in = (size_t)(from & (LINE - 1)), k = n < LINE - in ? n : LINE - in;
        const uint8_t *l = line_of(from);
        if (l)
            memcpy(p, l + in, k);
        else if (!safe_read(p, from, k))
            return false;
        p += k, from += k, n -= k;
    }
    return true;
}

// ---- ahead ---------------------------------------------------------------------------------------
// Lines that are wanted soon, to be copied by one system call.
static PER_RECORDING struct {
    struct line *line[READ_MANY];
    size_t n;
} ahead;

static void fetch(void) {
    void *to[READ_MANY];
    uint64_t from[READ_MANY];
    for (size_t i = 0; i < ahead.n; i++) to[i] = copy_of(ahead.line[i]), from[i] = ahead.line[i]->from;
    for (size_t i = 0; i < ahead.n; i++) {
        const size_t got = safe_read_many(to + i, from + i, ahead.n - i, LINE);
        reads += 1 + got / 8; // which takes as long
        for (const size_t end = i + got; i < end; i++) ahead.line[i]->there = true;
        if (i < ahead.n) ahead.line[i]->from = 0; // it is copied alone when it is needed
    }
    ahead.n = 0;
}

static void want(uint64_t from, size_t n) {
    if (from > UINT64_MAX / 2 || !from) return;
    for (uint64_t a = from & ~(uint64_t)(LINE - 1); a < from + n; a += LINE) {
        if (known(a)) continue;
        ahead.line[ahead.n++] = new_line(a);
        if (ahead.n == READ_MANY) fetch();
    }
}

static bool pointer(uint64_t from, int64_t offset, uint64_t *to) {
    return get(to, from + (uint64_t)offset, 8) && *to && *to % 8 == 0;
}

bool metadata_class(struct metaclass *c, uint64_t klass) {
    uint32_t n;
    c->klass = klass;
    now.pool = 0;
    if (!pointer(klass, vm.k_name, &c->name) || !pointer(klass, at.pool, &c->pool) ||
        !pointer(klass, at.methods, &c->methods) || !get(&n, c->methods + (uint64_t)at.list_length, 4) || n >= MOST)
        return false;
    c->count = n;
    return true;
}

static void want_pool(const struct metaclass *c) {
    uint64_t tags, resolved;
    uint32_t length;
    if (!get(&tags, c->pool + (uint64_t)at.tags, 8) || !get(&resolved, c->pool + (uint64_t)at.resolved, 8) ||
        !get(&length, c->pool + (uint64_t)at.length, 4) || length > MOST)
        return;
    want(tags, (size_t)at.list_bytes + length);
    want(c->pool, at.pool_bytes + 8ull * length);
    want(resolved, (size_t)at.list_pointers + length); // it has fewer entries than the pool
}

static uint64_t method_at(const struct metaclass *c, uint32_t i) {
    uint64_t m;
    return get(&m, c->methods + (uint64_t)at.list_pointers + 8ull * i, 8) && m % 8 == 0 ? m : 0;
}

static bool executed(const uint8_t *m) { return get64(m + at.code) || get64(m + at.data) || get64(m + at.counters); }

static uint64_t body_to_read(uint64_t method, bool always) {
    uint8_t m[256];
    if (!method || !get(m, method, at.method_bytes)) return 0;
    return always || executed(m) ? get64(m + at.body) : 0;
}

// The bodies that are to be read. Whether there are any.
static bool want_bodies(const struct metaclass *c, uint32_t class, metadata_need *need) {
    bool any = false;
    for (uint32_t m = 0; m < c->count && m < READ_MANY; m++) {
        const enum meta_need n = need(class, m);
        const uint64_t body = n == META_NOTHING ? 0 : body_to_read(method_at(c, m), n == META_BODY);
        want(body, at.body_bytes);
        any |= body != 0;
    }
    return any;
}

static void want_methods(uint32_t n, metadata_need *need) {
    uint32_t methods = 0, i = 0;
    for (; i < n && methods < METHODS; i++) {
        struct metaclass *k = &group.c[i];
        if (!k->methods || !get(&k->count, k->methods + (uint64_t)at.list_length, 4) || k->count >= MOST) k->count = 0;
        for (uint32_t m = 0; m < k->count && m < READ_MANY; m++)
            if (need(i, m)) want(method_at(k, m), at.method_bytes), methods++;
    }
    group.classes = i;
}

uint32_t metadata_ahead(const uint64_t *klass, uint32_t n, metadata_need *need) {
    const uint32_t step = group.step++;
    struct metaclass *const c = group.c;
    if (step == 0) {
        for (uint32_t i = 0; i < n; i++) want(klass[i], CLASS_BYTES);
    } else if (step == 1) {
        for (uint32_t i = 0; i < n; i++) {
            if (!pointer(klass[i], at.pool, &c[i].pool) || !pointer(klass[i], at.methods, &c[i].methods))
                c[i].methods = 0;
            want(c[i].methods, (size_t)at.list_pointers + 8ull * META_METHODS);
        }
    } else if (step == 2) {
        want_methods(n, need);
    } else if (step == 3) {
        for (uint32_t i = 0; i < group.classes; i++)
            if ((group.any[i] = want_bodies(&c[i], i, need))) want(c[i].pool, at.pool_bytes);
    } else {
        for (uint32_t i = 0; i < group.classes; i++)
            if (group.any[i]) want_pool(&c[i]);
        group.step = 0;
    }
    fetch();
    return group.step ? 0 : group.classes;
}

bool metadata_warm(void) {
    if (warm == LINES) return true;
    uint8_t *const p = lines + (size_t)warm * LINE;
    os_have(p, WARM * LINE);
    for (uint32_t i = 0; i < WARM; i++) p[(size_t)i * LINE] = 0;
    return (warm += WARM) == LINES;
}

// ---- methods and their bodies --------------------------------------------------------------------
bool metadata_methods(const struct metaclass *c, uint32_t first, uint32_t n) {
    return n <= META_METHODS && first <= c->count && n <= c->count - first &&
           get(now.methods, c->methods + (uint64_t)at.list_pointers + 8ull * first, 8ull * n);
}

bool metadata_body(const struct metaclass *c, uint32_t i, bool always, struct metabody *b) {
    uint8_t m[256], *h = now.body;
    const uint64_t method = now.methods[i];
    if (!method || method % 8 || !get(m, method, at.method_bytes)) return false;
    const uint64_t body = get64(m + at.body);
    b->executed = executed(m);
    if (!b->executed && !always) return true;
    if (!body || body % 8 || !get(h, body, at.body_bytes) || get64(h + at.body_pool) != c->pool) return false;
    const uint64_t bytes = 8ull * get32(h + at.body_words);
    b->code_bytes = get16(h + at.code_bytes);
    b->name = get16(h + at.name), b->sig = get16(h + at.sig);
    const bool has_lines = h[at.flags] & HAS_LINES;
    if (bytes > BODY || bytes < at.body_bytes + b->code_bytes || !get(h, body, bytes)) return false;
    b->code = h + at.body_bytes;
    b->lines = b->code + b->code_bytes;
    b->lines_bytes = has_lines ? (size_t)(bytes - at.body_bytes) - b->code_bytes : 0;
    return true;
}

struct bytecode_lines metadata_lines(const struct metabody *b) {
    return (struct bytecode_lines){.p = b->lines, .end = b->lines + b->lines_bytes, .excess = vm.major >= 20};
}

// ---- the pool ------------------------------------------------------------------------------------
static bool open_pool(const struct metaclass *c) {
    if (now.pool == c->pool) return true;
    uint8_t h[256];
    uint64_t tags;
    now.pool = 0;
    if (!get(h, c->pool, at.pool_bytes) || get64(h + at.holder) != c->klass) return false;
    tags = get64(h + at.tags), now.resolved_at = get64(h + at.resolved);
    now.length = get32(h + at.length);
    if (!tags || !now.resolved_at || now.length > MOST || !now.length ||
        !get(now.tags, tags + (uint64_t)at.list_bytes, now.length) ||
        !get(&now.nresolved, now.resolved_at + (uint64_t)at.list_length, 4) || now.nresolved > MOST)
        return false;
    now.entries_at = c->pool + at.pool_bytes;
    now.whole = now.length <= 4096 && get(now.entries, now.entries_at, 8ull * now.length) &&
                get(now.resolved, now.resolved_at + (uint64_t)at.list_pointers, 8ull * now.nresolved);
    now.pool = c->pool;
    return true;
}

static bool entry(uint32_t index, uint64_t *to) {
    if (index >= now.length) return false;
    if (!now.whole) return get(to, now.entries_at + 8ull * index, 8);
    *to = get64(now.entries + 8 * (size_t)index);
    return true;
}

bool metadata_resolved(const struct metaclass *c, uint32_t index, uint64_t *klass) {
    uint64_t e, symbol;
    *klass = 0;
    if (!open_pool(c) || index >= now.length) return false;
    if (now.tags[index] != CLASS_RESOLVED) return true;
    if (!entry(index, &e)) return false;
    const uint32_t place = (uint32_t)e & 0xffff, name = (uint32_t)e >> 16;
    if (place >= now.nresolved) return false;
    if (now.whole)
        *klass = get64(now.resolved + 8 * (size_t)place);
    else if (!get(klass, now.resolved_at + (uint64_t)at.list_pointers + 8ull * place, 8))
        return false;
    // The name is the same symbol; a hidden class has another one in itself.
    return !*klass || !entry(name, &symbol) || *klass == c->klass || metadata_name(*klass) == symbol;
}

uint64_t metadata_name(uint64_t klass) {
    uint64_t name;
    return pointer(klass, vm.k_name, &name) ? name : 0;
}

static bool is_named(uint64_t klass, const char *name) {
    char text[64];
    uint16_t length;
    const uint64_t symbol = metadata_name(klass);
    const size_t n = strlen(name);
    return symbol && get(&length, symbol + (uint64_t)vm.sym_len, 2) && length == n &&
           get(text, symbol + (uint64_t)vm.sym_body, n) && !memcmp(text, name, n);
}

static bool is_it(uint64_t klass, uint64_t *known, const char *name) {
    if (!*known && is_named(klass, name)) *known = klass;
    return klass == *known;
}

bool metadata_flags(uint64_t klass, uint32_t *flags) {
    uint64_t second, supers, list[256];
    uint32_t n;
    *flags = 0;
    // Object is the first of the primary ones.
    if (!get(&second, klass + (uint64_t)at.primary + 8, 8) || !pointer(klass, at.supers, &supers) ||
        !get(&n, supers + (uint64_t)at.list_length, 4) || n > sizeof list / sizeof *list ||
        !get(list, supers + (uint64_t)at.list_pointers, 8ull * n))
        return false;
    if (second && is_it(second, &throwable, "java/lang/Throwable")) *flags |= HC_MADE_THROWABLE;
    for (uint32_t i = 0; i < n; i++)
        if (is_it(list[i], &cloneable, "java/lang/Cloneable")) *flags |= HC_MADE_CLONEABLE;
    return true;
}

// ---- texts ---------------------------------------------------------------------------------------
static size_t text(uint64_t symbol, char to[TEXT]) {
    uint16_t n;
    if (!symbol || !get(&n, symbol + (uint64_t)vm.sym_len, 2)) return 0;
    if (n > TEXT) n = TEXT;
    return get(to, symbol + (uint64_t)vm.sym_body, n) ? n : 0;
}

void metadata_put_entry(const struct metaclass *c, struct enc *e, uint32_t index) {
    char s[TEXT];
    uint64_t symbol = 0;
    if (!open_pool(c) || !entry(index, &symbol)) symbol = 0;
    put_str(e, s, text(symbol, s));
}

void metadata_put_signature(struct enc *e, uint64_t symbol) {
    char s[TEXT + 2];
    const size_t n = text(symbol, s + 1);
    s[0] = 'L', s[n + 1] = ';';
    put_str(e, s, n + 2);
}

void metadata_put_file(const struct metaclass *c, struct enc *e) {
    uint16_t index = 0;
    if (!get(&index, c->pool + (uint64_t)at.file, 2)) index = 0;
    if (index)
        metadata_put_entry(c, e, index);
    else
        put_str(e, "", 0);
}
