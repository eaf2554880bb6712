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

void vm_apply(void *rows, size_t width, size_t n, int major) {
#define USE(i) ((struct vm_use *)((char *)rows + (i) * width))
    for (size_t i = 0, end; i < n; i = end) {
        int first = USE(i)->first, last = USE(i)->last;
        bool any = false;
        for (end = i; end < n && USE(end)->slot == USE(i)->slot; end++) {
            struct vm_use *u = USE(end);
            u->applies = u->first <= major && major <= u->last;
            any = any || u->applies;
            first = u->first < first ? u->first : first, last = u->last > last ? u->last : last;
        }
        for (size_t k = i; k < end; k++) {
            USE(k)->applies = USE(k)->applies || !any;
            USE(k)->required = !USE(k)->optional && (any || (first <= major && major <= last));
        }
    }
#undef USE
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
            if (same(name, f[i].type)) f[i].type_size = size;
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
    for (size_t i = 0; i < n; i++) f[i].use.found = f[i].use.differs = false, f[i].type_size = f[i].inner_size = 0;
    if (!read_type_sizes(library, f, n, flag_size, why)) return false;
    if (!table_open(&t, library, "gHotSpotVMStructs", "gHotSpotVMStructEntry", columns, 6, why)) return false;
    while ((more = next_row(&t, why)) > 0 && cell64(&t, 1)) {
        if (!name_in(&t, 0, type, why) || !name_in(&t, 1, field, why)) return false;
        for (size_t i = 0; i < n; i++) {
            if (!same(type, f[i].type) || !same(field, f[i].field)) continue;
            uint32_t is_static = cell32(&t, 3);
            uint64_t offset = cell64(&t, 4), address = cell64(&t, 5);
            if (f[i].use.found &&
                (is_static != f[i].says_static || offset != f[i].at_offset || address != f[i].at_address))
                f[i].use.differs = true;
            f[i].use.found = true, f[i].says_static = is_static, f[i].at_offset = offset, f[i].at_address = address,
            f[i].declared = cell64(&t, 2);
        }
    }
    return more >= 0;
}

bool vm_read_constants(void *library, bool is_long, struct vm_constant *c, size_t n, char why[HC_MAX_REASON]) {
    const struct column columns[] = {{"Name", 8}, {"Value", is_long ? 8 : 4}};
    const char *symbol = is_long ? "gHotSpotVMLongConstants" : "gHotSpotVMIntConstants";
    const char *entry = is_long ? "gHotSpotVMLongConstantEntry" : "gHotSpotVMIntConstantEntry";
    char name[MAX_NAME];
    struct table t;
    int more;
    for (size_t i = 0; i < n; i++)
        if (c[i].is_long == is_long) c[i].use.found = c[i].use.differs = false;
    if (!table_open(&t, library, symbol, entry, columns, 2, why)) return false;
    while ((more = next_row(&t, why)) > 0) {
        if (!name_in(&t, 0, name, why)) return false;
        int64_t v = is_long ? (int64_t)cell64(&t, 1) : (int32_t)cell32(&t, 1);
        for (size_t i = 0; i < n; i++)
            if (c[i].is_long == is_long && same(name, c[i].name)) {
                if (c[i].use.found && v != c[i].value) c[i].use.differs = true;
                c[i].use.found = true, c[i].value = v;
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
    static const char *const ints[] = {"int",     "uint",     "jint", "unsigned", "unsigned int",
                                       "int32_t", "uint32_t", "u4",   NULL};
    static const char *const shorts[] = {"u2", "jushort", "unsigned short", "uint16_t", NULL};
    static const char *const bytes[] = {"u1", "jbyte", "uint8_t", "bool", NULL};
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

// other: a second name that would do; NULL: there is none
static bool not_exported(char *why, const char *what, const char *type, const char *name, const char *other_type,
                         const char *other) {
    int n = snprintf(why, HC_MAX_REASON, "this JVM does not export the %s %s%s%s", what, type, *type ? "::" : "", name);
    if (other && n > 0 && n < HC_MAX_REASON)
        snprintf(why + n, HC_MAX_REASON - (size_t)n, " (or %s%s%s)", other_type, *other_type ? "::" : "", other);
    return false;
}

static bool has_known_type(const struct vm_field *f, char *why) {
    char declared[MAX_NAME], bare[MAX_NAME];
    if (!f->declared && no_type_needed(f)) return true;
    if (!f->declared || !vm_peek_string(declared, sizeof declared, f->declared)) {
        snprintf(why, HC_MAX_REASON, "the type of %s::%s cannot be read in this JVM", f->type, f->field);
        return false;
    }
    memcpy(bare, declared, strlen(declared) + 1);
    if (has_shape(f, bare_type(bare))) return true;
    for (char *c = declared; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?'; // the reason is one line, whatever a JVM calls its types
    snprintf(why, HC_MAX_REASON, "%s::%s has the type \"%.100s\" in this JVM, which the probe does not know", f->type,
             f->field, declared);
    return false;
}

// The row of a slot to read; NULL: there is none, and why says so if the slot is needed.
static const struct vm_field *field_of_slot(const struct vm_field *f, const struct vm_field *end, char *why) {
    const struct vm_field *names[2] = {NULL, NULL}, *other_kind = NULL;
    const int slot = f->use.slot;
    why[0] = 0;
    for (; f < end && f->use.slot == slot; f++) {
        if (!f->use.applies) continue;
        if (!names[0])
            names[0] = f;
        else if (!names[1])
            names[1] = f;
        if (!f->use.found) continue;
        if (f->use.differs) {
            snprintf(why, HC_MAX_REASON, "this JVM lists %s::%s twice, with different values", f->type, f->field);
            return NULL;
        }
        if (f->says_static > 1) {
            snprintf(why, HC_MAX_REASON, "this JVM does not say whether %s::%s is static (it says %u)", f->type,
                     f->field, (unsigned)f->says_static);
            return NULL;
        }
        if (f->says_static == f->is_static) return f;
        if (!other_kind) other_kind = f;
    }
    if (other_kind)
        snprintf(why, HC_MAX_REASON, "%s::%s is %sstatic in this JVM", other_kind->type, other_kind->field,
                 other_kind->says_static ? "" : "not ");
    else if (names[0]->use.required)
        not_exported(why, "field", names[0]->type, names[0]->field, names[1] ? names[1]->type : NULL,
                     names[1] ? names[1]->field : NULL);
    return NULL;
}

bool vm_take_field(const struct vm_field *rows, const struct vm_field *end, struct vm_place *to,
                   char why[HC_MAX_REASON]) {
    enum { UNKNOWN_SIZE = 1 << 16, MAX_SIZE = 1 << 20 }; // no type of HotSpot's that the probe reads has 64 KiB
    *to = (struct vm_place){.offset = -1};
    const struct vm_field *f = field_of_slot(rows, end, why);
    if (!f) return !why[0];
    if (!has_known_type(f, why)) return false;
    const uint64_t width = width_of(f), size = f->type_size;
    const char *t = f->type, *n = f->field;
    if (f->shape == VM_STRUCT && (!width || width > MAX_SIZE)) {
        snprintf(why, HC_MAX_REASON, "this JVM does not export the size of %s, the type of %s::%s", f->inner, t, n);
        return false;
    }
    if (f->is_static) {
        uint8_t bytes[8];
        if (f->at_address % alignment_of(f) || !vm_peek(bytes, f->at_address, width < 8 ? width : 8)) {
            snprintf(why, HC_MAX_REASON, "%s::%s is at %#llx in this JVM, which cannot be read", t, n,
                     (unsigned long long)f->at_address);
            return false;
        }
        to->address = (char *)(uintptr_t)f->at_address;
        return to->found = true;
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
    to->offset = (int64_t)f->at_offset;
    return to->found = true;
}

bool vm_take_constant(const struct vm_constant *c, const struct vm_constant *end, int *to, char why[HC_MAX_REASON]) {
    const struct vm_constant *names[2] = {NULL, NULL}, *k = NULL;
    const int slot = c->use.slot;
    for (; c < end && c->use.slot == slot && !k; c++) {
        if (!c->use.applies) continue;
        names[names[0] != NULL] = c;
        if (c->use.found) k = c;
    }
    if (!k)
        return !names[0]->use.required ||
               not_exported(why, "constant", "", names[0]->name, "", names[1] ? names[1]->name : NULL);
    if (k->use.differs) {
        snprintf(why, HC_MAX_REASON, "this JVM lists the constant %s twice, with different values", k->name);
        return false;
    }
    if (k->value < k->least || k->value > k->most) {
        snprintf(why, HC_MAX_REASON, "the constant %s is %lld in this JVM; the probe knows %lld to %lld", k->name,
                 (long long)k->value, (long long)k->least, (long long)k->most);
        return false;
    }
    *to = (int)k->value;
    return true;
}
