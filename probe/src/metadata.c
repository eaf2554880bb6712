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
    LINES = 512,
    MOST = 1 << 16,   // entries of a pool; methods of a class
    CLASS_RESOLVED = 7,
    TEXT = 2048,
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
static PER_RECORDING uint64_t turn, reads;
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

void metadata_begin(void) { turn++; }
uint64_t metadata_reads(void) { return reads; }

void metadata_rest(void) {
    turn++;
    os_give_back(lines, (size_t)LINE * LINES);
}

// The copy of the 4 KiB around from; NULL: not all of them can be read.
static const uint8_t *line_of(uint64_t from) {
    const uint64_t begin = from & ~(uint64_t)(LINE - 1);
    const size_t i = (size_t)(begin / LINE) % LINES;
    uint8_t *to = lines + i * LINE;
    if (line[i].from != begin || line[i].turn != turn) {
        line[i] = (struct line){begin, turn, safe_read(to, begin, LINE)};
        reads++;
    }
    return line[i].there ? to : NULL;
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

// ---- methods and their bodies --------------------------------------------------------------------
bool metadata_methods(const struct metaclass *c, uint32_t first, uint32_t n) {
    return n <= META_METHODS && first <= c->count && n <= c->count - first &&
           get(now.methods, c->methods + (uint64_t)at.list_pointers + 8ull * first, 8ull * n);
}

bool metadata_body(const struct metaclass *c, uint32_t i, struct metabody *b) {
    uint8_t m[256], *h = now.body;
    const uint64_t method = now.methods[i];
    if (!method || method % 8 || !get(m, method, at.method_bytes)) return false;
    const uint64_t body = get64(m + at.body);
    b->executed = get64(m + at.code) || get64(m + at.data) || get64(m + at.counters);
    if (!b->executed) return true;
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
