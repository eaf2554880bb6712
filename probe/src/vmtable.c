//go:build ignore

// vmtable.c: vmtable.h.
#include "vmtable.h"

#include <stdio.h>
#include <string.h>

#include "guard.h"
#include "os.h"

// ---- reading ------------------------------------------------------------------------------------
// The loader reads some 10,000 names and values, which lie in some 100 pages.
enum { PAGE = 4096, PAGES = 32 };
static struct {
    uint64_t at; // 0: none
    uint8_t bytes[PAGE];
} cached[PAGES];
static bool by_guard;

bool vm_peek_begin(void) {
    static const uint64_t here = 0x68656170;
    uint64_t copy = 0;
    for (int i = 0; i < PAGES; i++) cached[i].at = 0;
    by_guard = !safe_read(&copy, (uint64_t)(uintptr_t)&here, sizeof copy) || copy != here;
    return !by_guard;
}

static bool copy_page(uint8_t *to, uint64_t page) {
    if (!by_guard) return safe_read(to, page, PAGE);
    if (GUARD_ENTER()) {
        guard_arm();
        memcpy(to, (const void *)(uintptr_t)page, PAGE);
        guard_disarm();
        return true;
    }
    guard_disarm();
    return false;
}

static const uint8_t *page_at(uint64_t page) {
    uint64_t i = page / PAGE % PAGES;
    if (page == 0) return NULL;
    if (cached[i].at != page) {
        cached[i].at = 0;
        if (!copy_page(cached[i].bytes, page)) return NULL;
        cached[i].at = page;
    }
    return cached[i].bytes;
}

bool vm_peek(void *to, uint64_t from, size_t n) {
    if (from + n < from) return false;
    for (uint8_t *t = to; n;) {
        size_t in_page = from % PAGE, part = PAGE - in_page < n ? PAGE - in_page : n;
        const uint8_t *p = page_at(from - in_page);
        if (!p) return false;
        memcpy(t, p + in_page, part);
        t += part, from += part, n -= part;
    }
    return true;
}

bool vm_peek_string(char *to, size_t n, uint64_t from) {
    while (n) {
        size_t in_page = from % PAGE, part = PAGE - in_page < n ? PAGE - in_page : n;
        const uint8_t *p = page_at(from - in_page);
        if (!p) return false;
        const uint8_t *end = memchr(p + in_page, 0, part);
        if (end) {
            memcpy(to, p + in_page, (size_t)(end - p) - in_page + 1);
            return true;
        }
        memcpy(to, p + in_page, part);
        to += part, from += part, n -= part;
        if (from == 0) return false;
    }
    return false;
}

bool vm_peek_pointer(char **to, uint64_t from) {
    uint64_t p, byte = 0;
    if (!vm_peek(&p, from, sizeof p) || !p || p % 8 || !vm_peek(&byte, p, sizeof byte)) return false;
    *to = (char *)(uintptr_t)p;
    return true;
}

// ---- tables -------------------------------------------------------------------------------------
// 17 has 2,000 rows in all four tables, and its longest name 60 bytes.
enum { MAX_ROWS = 1 << 14, MAX_NAME = 512, MAX_STRIDE = 256, MAX_COLUMNS = 6 };

struct column {
    const char *name;
    unsigned width;
};
struct table {
    const char *name;
    uint64_t base, stride, at[MAX_COLUMNS], rows; // rows: read so far
    uint8_t row[MAX_STRIDE];
};

static bool symbol64(void *library, const char *name, uint64_t *to) {
    void *p = os_symbol(library, name);
    return p && vm_peek(to, (uint64_t)(uintptr_t)p, sizeof *to);
}

static bool table_open(struct table *t, void *library, const char *name, const char *entry,
                       const struct column *columns, int n, char *why) {
    char symbol[128];
    *t = (struct table){.name = name};
    if (!symbol64(library, name, &t->base) || !t->base) {
        snprintf(why, HC_MAX_REASON, "libjvm does not export %s", name);
        return false;
    }
    snprintf(symbol, sizeof symbol, "%sArrayStride", entry);
    if (!symbol64(library, symbol, &t->stride)) {
        snprintf(why, HC_MAX_REASON, "libjvm does not export %s", symbol);
        return false;
    }
    if (t->stride < 16 || t->stride > MAX_STRIDE || t->stride % 8 || t->base % 8) {
        snprintf(why, HC_MAX_REASON, "%s is at %#llx and has a stride of %llu bytes, which is invalid", name,
                 (unsigned long long)t->base, (unsigned long long)t->stride);
        return false;
    }
    for (int i = 0; i < n; i++) {
        snprintf(symbol, sizeof symbol, "%s%sOffset", entry, columns[i].name);
        if (!symbol64(library, symbol, &t->at[i])) {
            snprintf(why, HC_MAX_REASON, "libjvm does not export %s", symbol);
            return false;
        }
        if (t->at[i] > t->stride - columns[i].width || t->at[i] % columns[i].width) {
            snprintf(why, HC_MAX_REASON, "%s is %llu, which is invalid in rows of %llu bytes", symbol,
                     (unsigned long long)t->at[i], (unsigned long long)t->stride);
            return false;
        }
    }
    return true;
}

static uint64_t cell64(const struct table *t, int column) {
    uint64_t v;
    memcpy(&v, t->row + t->at[column], sizeof v);
    return v;
}
static uint32_t cell32(const struct table *t, int column) {
    uint32_t v;
    memcpy(&v, t->row + t->at[column], sizeof v);
    return v;
}

// 1: the next row has been read, 0: there is none, -1: why says what is wrong.
static int next_row(struct table *t, char *why) {
    if (t->rows == MAX_ROWS) {
        snprintf(why, HC_MAX_REASON, "%s does not end after %d rows", t->name, MAX_ROWS);
        return -1;
    }
    if (!vm_peek(t->row, t->base + t->rows * t->stride, t->stride)) {
        snprintf(why, HC_MAX_REASON, "row %llu of %s cannot be read", (unsigned long long)t->rows, t->name);
        return -1;
    }
    t->rows++;
    return cell64(t, 0) != 0;
}

static bool name_in(struct table *t, int column, char name[MAX_NAME], char *why) {
    if (vm_peek_string(name, MAX_NAME, cell64(t, column))) return true;
    snprintf(why, HC_MAX_REASON, "row %llu of %s has a name that cannot be read, or does not end within %d bytes",
             (unsigned long long)t->rows - 1, t->name, MAX_NAME);
    return false;
}

// Most of the 2,000 names that are compared with 100 of ours differ in their first letter.
static bool same(const char *a, const char *b) { return *a == *b && !strcmp(a, b); }

static char *bare_type(char *s);
static bool is_inner(const struct vm_field *f, const char *type) {
    return same(type, f->inner) || (type[0] == 'G' && type[1] == '1' && same(type + 2, f->inner));
}

static bool read_type_sizes(void *library, struct vm_field *f, size_t n, uint64_t *flag_size, char *why) {
    static const struct column columns[] = {{"TypeName", 8}, {"Size", 8}};
    struct table t;
    char name[MAX_NAME];
    int more;
    if (!table_open(&t, library, "gHotSpotVMTypes", "gHotSpotVMTypeEntry", columns, 2, why)) return false;
    *flag_size = 0;
    while ((more = next_row(&t, why)) > 0) {
        if (!name_in(&t, 0, name, why)) return false;
        uint64_t size = cell64(&t, 1);
        if (!strcmp(name, "JVMFlag")) *flag_size = size;
        for (size_t i = 0; i < n; i++)
            for (int a = 0; a < 2 && f[i].name[a].type; a++)
                if (same(name, f[i].name[a].type)) f[i].type_size[a] = size;
        const char *bare = bare_type(name);
        for (size_t i = 0; i < n; i++)
            if (f[i].inner && is_inner(&f[i], bare)) f[i].inner_size = size;
    }
    return more == 0;
}

bool vm_read_fields(void *library, struct vm_field *f, size_t n, uint64_t *flag_size, char why[HC_MAX_REASON]) {
    static const struct column columns[] = {{"TypeName", 8}, {"FieldName", 8}, {"TypeString", 8},
                                            {"IsStatic", 4}, {"Offset", 8},    {"Address", 8}};
    struct table t;
    char type[MAX_NAME], field[MAX_NAME];
    int more;
    for (size_t i = 0; i < n; i++) {
        f[i].found = 0, f[i].differs = false, f[i].type_size[0] = f[i].type_size[1] = f[i].inner_size = 0;
        if (f[i].offset) *f[i].offset = -1;
        if (f[i].address) *f[i].address = NULL;
    }
    if (!read_type_sizes(library, f, n, flag_size, why)) return false;
    if (!table_open(&t, library, "gHotSpotVMStructs", "gHotSpotVMStructEntry", columns, 6, why)) return false;
    while ((more = next_row(&t, why)) > 0 && cell64(&t, 1)) {
        if (!name_in(&t, 0, type, why) || !name_in(&t, 1, field, why)) return false;
        for (size_t i = 0; i < n; i++) {
            for (int a = 0; a < 2 && f[i].name[a].type; a++) {
                if (!same(type, f[i].name[a].type) || !same(field, f[i].name[a].field)) continue;
                uint32_t is_static = cell32(&t, 3);
                uint64_t offset = cell64(&t, 4), address = cell64(&t, 5);
                if (f[i].found &&
                    (is_static != f[i].is_static || offset != f[i].at_offset || address != f[i].at_address))
                    f[i].differs = true;
                f[i].found = a + 1, f[i].is_static = is_static, f[i].at_offset = offset, f[i].at_address = address,
                f[i].declared = cell64(&t, 2);
            }
        }
    }
    return more >= 0;
}

bool vm_read_constants(void *library, const char *kind, struct vm_constant *c, size_t n, char why[HC_MAX_REASON]) {
    const bool is_long = kind[0] == 'L';
    const struct column columns[] = {{"Name", 8}, {"Value", is_long ? 8 : 4}};
    char symbol[64], entry[64], name[MAX_NAME];
    struct table t;
    int more;
    snprintf(symbol, sizeof symbol, "gHotSpotVM%sConstants", kind);
    snprintf(entry, sizeof entry, "gHotSpotVM%sConstantEntry", kind);
    for (size_t i = 0; i < n; i++) c[i].found = 0, c[i].differs = false;
    if (!table_open(&t, library, symbol, entry, columns, 2, why)) return false;
    while ((more = next_row(&t, why)) > 0) {
        if (!name_in(&t, 0, name, why)) return false;
        int64_t v = is_long ? (int64_t)cell64(&t, 1) : (int32_t)cell32(&t, 1);
        for (size_t i = 0; i < n; i++)
            for (int a = 0; a < 2 && c[i].name[a]; a++)
                if (same(name, c[i].name[a])) {
                    if (c[i].found && v != c[i].value) c[i].differs = true;
                    c[i].found = a + 1, c[i].value = v;
                }
    }
    return more == 0;
}

// ---- checks -------------------------------------------------------------------------------------
static bool one_of(const char *s, const char *const names[]) {
    for (; *names; names++)
        if (!strcmp(s, *names)) return true;
    return false;
}

// The type without what does not change its layout: const and volatile on the outside, and Atomic<>, which JDK 27 has.
static char *bare_type(char *s) {
    static const char *const around[] = {"const", "volatile"};
    for (bool again = true; again;) {
        size_t n = strlen(s);
        again = false;
        if (n && s[n - 1] == ' ') s[n - 1] = 0, again = true;
        if (*s == ' ') s++, again = true;
        if (again) continue;
        for (int i = 0; i < 2; i++) {
            size_t k = strlen(around[i]);
            // In front of a pointer it belongs to what is pointed at.
            if (n > k && !strncmp(s, around[i], k) && s[k] == ' ' && !strchr(s, '*')) s += k, n -= k, again = true;
            if (n > k && !strcmp(s + n - k, around[i]) && (s[n - k - 1] == ' ' || s[n - k - 1] == '*'))
                s[n -= k] = 0, again = true;
        }
        if (n > 8 && !strncmp(s, "Atomic<", 7) && s[n - 1] == '>') s[n - 1] = 0, s += 7, again = true;
    }
    return s;
}

static bool has_shape(const struct vm_field *f, const char *type) {
    static const char *const sizes[] = {"size_t", "uintptr_t", "intptr_t", "uintx", "intx", "uint64_t", "julong", NULL};
    static const char *const ints[] = {"int", "uint", "jint", "unsigned", "unsigned int", "int32_t", "uint32_t", NULL};
    static const char *const shorts[] = {"u2", "jushort", "unsigned short", "uint16_t", NULL};
    static const char *const bytes[] = {"u1", "jbyte", "uint8_t", NULL};
    size_t n = strlen(type);
    bool pointer = (n && type[n - 1] == '*') || !strcmp(type, "address");
    switch (f->shape) {
    case VM_POINTER:
    case VM_UNTYPED_POINTER: return pointer;
    case VM_SIZE: return one_of(type, sizes);
    case VM_INT: return one_of(type, ints);
    case VM_SHORT: return one_of(type, shorts);
    case VM_UNTYPED_BYTES: return one_of(type, bytes);
    case VM_STRUCT: return is_inner(f, type);
    }
    return false;
}

static bool no_type_needed(const struct vm_field *f) {
    return f->shape == VM_UNTYPED_POINTER || f->shape == VM_UNTYPED_BYTES;
}

static uint64_t width_of(const struct vm_field *f) {
    static const unsigned width[] = {[VM_POINTER] = 8,         [VM_SIZE] = 8,         [VM_INT] = 4, [VM_SHORT] = 2,
                                     [VM_UNTYPED_POINTER] = 8, [VM_UNTYPED_BYTES] = 1};
    return f->shape == VM_STRUCT ? f->inner_size : width[f->shape];
}

static uint64_t alignment_of(const struct vm_field *f) {
    uint64_t w = width_of(f);
    return w >= 8 && w % 8 == 0 ? 8 : w % 4 == 0 ? 4 : w % 2 == 0 ? 2 : 1;
}

static void not_exported(char *why, const char *what, const char *name, const char *other, const char *type,
                         const char *other_type) {
    int n = snprintf(why, HC_MAX_REASON, "this JVM does not export the %s %s%s%s", what, type, *type ? "::" : "", name);
    if (other && n > 0 && n < HC_MAX_REASON)
        snprintf(why + n, HC_MAX_REASON - (size_t)n, " (or %s%s%s)", other_type, *other_type ? "::" : "", other);
}

bool vm_take_field(struct vm_field *f, char why[HC_MAX_REASON]) {
    enum { UNKNOWN_SIZE = 1 << 16, MAX_SIZE = 1 << 20 }; // no type of HotSpot's that the probe reads has 64 KiB
    if (!f->found) {
        if (f->optional) return true;
        not_exported(why, "field", f->name[0].field, f->name[1].field, f->name[0].type, f->name[1].type);
        return false;
    }
    const int a = f->found - 1;
    const char *t = f->name[a].type, *n = f->name[a].field;
    if (f->differs) {
        snprintf(why, HC_MAX_REASON, "this JVM lists %s::%s twice, with different values", t, n);
        return false;
    }
    if (f->is_static > 1) {
        snprintf(why, HC_MAX_REASON, "this JVM does not say whether %s::%s is static (it says %u)", t, n,
                 (unsigned)f->is_static);
        return false;
    }
    if (f->is_static != (f->address != NULL)) {
        snprintf(why, HC_MAX_REASON, "%s::%s is %sstatic in this JVM", t, n, f->is_static ? "" : "not ");
        return false;
    }
    if (f->declared || !no_type_needed(f)) {
        char declared[MAX_NAME], bare[MAX_NAME];
        if (!f->declared || !vm_peek_string(declared, sizeof declared, f->declared)) {
            snprintf(why, HC_MAX_REASON, "the type of %s::%s cannot be read in this JVM", t, n);
            return false;
        }
        memcpy(bare, declared, strlen(declared) + 1);
        if (!has_shape(f, bare_type(bare))) {
            for (char *c = declared; *c; c++)
                if (*c < ' ' || *c > '~') *c = '?'; // the reason is one line, whatever a JVM calls its types
            snprintf(why, HC_MAX_REASON, "%s::%s has the type \"%.100s\" in this JVM, which the probe does not know", t,
                     n, declared);
            return false;
        }
    }
    const uint64_t width = width_of(f), size = f->type_size[a];
    if (f->shape == VM_STRUCT && (!width || width > MAX_SIZE)) {
        snprintf(why, HC_MAX_REASON, "this JVM does not export the size of %s, the type of %s::%s", f->inner, t, n);
        return false;
    }
    if (f->address) {
        uint8_t bytes[8];
        if (f->at_address % alignment_of(f) || !vm_peek(bytes, f->at_address, width < 8 ? width : 8)) {
            snprintf(why, HC_MAX_REASON, "%s::%s is at %#llx in this JVM, which cannot be read", t, n,
                     (unsigned long long)f->at_address);
            return false;
        }
        *f->address = (char *)(uintptr_t)f->at_address;
        return true;
    }
    if (size > MAX_SIZE) {
        snprintf(why, HC_MAX_REASON,
                 "%s, the type that has the field %s, has %llu bytes in this JVM, which is invalid", t, n,
                 (unsigned long long)size);
        return false;
    }
    // VM_UNTYPED_BYTES: only the first one must lie inside; a symbol's characters go on behind its type.
    const uint64_t room = size ? size : UNKNOWN_SIZE;
    if (f->at_offset % alignment_of(f) || room < width || f->at_offset > room - width) {
        snprintf(why, HC_MAX_REASON,
                 "%s::%s has the offset %lld in this JVM, which is not inside a %s of %llu bytes, or not aligned", t, n,
                 (long long)f->at_offset, t, (unsigned long long)room);
        return false;
    }
    *f->offset = (int64_t)f->at_offset;
    return true;
}

bool vm_take_constant(struct vm_constant *c, char why[HC_MAX_REASON]) {
    if (!c->found) {
        if (c->optional) return true;
        not_exported(why, "constant", c->name[0], c->name[1], "", "");
        return false;
    }
    const char *n = c->name[c->found - 1];
    if (c->differs) {
        snprintf(why, HC_MAX_REASON, "this JVM lists the constant %s twice, with different values", n);
        return false;
    }
    if (c->value < c->least || c->value > c->most) {
        snprintf(why, HC_MAX_REASON, "the constant %s is %lld in this JVM; the probe knows %lld to %lld", n,
                 (long long)c->value, (long long)c->least, (long long)c->most);
        return false;
    }
    if (c->to) *c->to = (int)c->value;
    return true;
}
