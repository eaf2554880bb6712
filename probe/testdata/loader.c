// loader.c: feeds the probe's loader (vmstructs.c, vmtable.c) with the tables of a real libjvm, damaged in many ways. No
// JVM is started: the library is
// opened, its tables are copied, and around them stands what a JVM has at VMInit (heap, flags, counters), as far as
// the loader reads it.
//
//   loader LIBJVM Serial|Parallel|G1 copy|guard random SEED COUNT    random damage, COUNT cases
//   loader LIBJVM Serial|Parallel|G1 copy|guard cases                one case a line of standard input, see directed()
//
// The environment variable LOADER_MAJOR is the major of the JDK.
// copy: safe_read works; guard: it is refused, as seccomp does. Each case runs in a process of its own and prints
// one line:
// NUMBER TAB WHAT WAS DAMAGED TAB loaded | refused: REASON | signal N | REASON IS NO LINE
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "heapcam_abi.h"
#include "options.h"
#include "os.h"
#include "vmstructs.h"

// ---- what os_posix.c and vmstructs.c need of the rest of the probe -------------------------------------
PER_RECORDING int none_here; // the section must not be empty
bool real_safe_read(void *dst, uint64_t addr, size_t n);
static bool refuse_copies;
bool safe_read(void *dst, uint64_t addr, size_t n) { return !refuse_copies && real_safe_read(dst, addr, n); }

static void *libjvm;
void *os_library_of(void *address) { return (void)address, libjvm; }

// ---- memory: blocks that end where none follows -------------------------------------------------
enum { PAGE = 4096 };
// n bytes in front of a page that cannot be read, `before` readable ones ahead of them
static char *block(size_t n, size_t before) {
    size_t size = (n + before + 2 * PAGE - 1) / PAGE * PAGE;
    char *m = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED || mprotect(m + size, PAGE, PROT_NONE)) abort();
    return m + size - n;
}
static char *closed; // a page that cannot be read; the one in front of it is full of the letter A

// ---- symbols ------------------------------------------------------------------------------------
enum { MAX_SYMBOLS = 64 };
static struct symbol {
    char name[80];
    uint64_t *at; // NULL: not exported
} symbols[MAX_SYMBOLS];
static int nsymbols;

static struct symbol *symbol_of(const char *name) {
    for (int i = 0; i < nsymbols; i++)
        if (!strcmp(symbols[i].name, name)) return &symbols[i];
    uint64_t *real = dlsym(libjvm, name);
    if (!real || nsymbols == MAX_SYMBOLS) return NULL;
    struct symbol *s = &symbols[nsymbols++];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->at = (uint64_t *)block(8, 0);
    *s->at = *real;
    return s;
}
void *os_symbol(void *library, const char *name) {
    (void)library;
    struct symbol *s = symbol_of(name);
    return s ? s->at : NULL;
}

// ---- tables -------------------------------------------------------------------------------------
struct fieldrow {
    const char *type, *field, *declared;
    int32_t is_static;
    uint64_t offset;
    void *address;
};
struct typerow {
    const char *name, *super;
    int32_t a, b, c;
    uint64_t size;
};
struct introw {
    const char *name;
    int32_t value;
};
struct longrow {
    const char *name;
    int64_t value;
};
enum { FIELDS, TYPES, INTS, LONGS, TABLES };
static struct {
    const char *symbol, *entry;
    size_t width;
    char *rows;
    size_t n;
} tables[TABLES] = {{"gHotSpotVMStructs", "gHotSpotVMStructEntry", sizeof(struct fieldrow), NULL, 0},
                    {"gHotSpotVMTypes", "gHotSpotVMTypeEntry", sizeof(struct typerow), NULL, 0},
                    {"gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry", sizeof(struct introw), NULL, 0},
                    {"gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntry", sizeof(struct longrow), NULL, 0}};
static struct fieldrow *fieldrows(void) { return (struct fieldrow *)tables[FIELDS].rows; }

static void copy_tables(void) {
    for (int t = 0; t < TABLES; t++) {
        char *real = *(char **)dlsym(libjvm, tables[t].symbol);
        size_t n = 0;
        while (*(char **)(real + n * tables[t].width)) n++;
        tables[t].n = n;
        tables[t].rows = block((n + 1) * tables[t].width, tables[t].width);
        memcpy(tables[t].rows, real, (n + 1) * tables[t].width);
        *symbol_of(tables[t].symbol)->at = (uint64_t)tables[t].rows;
        if (*symbol_of(t == FIELDS  ? "gHotSpotVMStructEntryArrayStride"
                       : t == TYPES ? "gHotSpotVMTypeEntryArrayStride"
                       : t == INTS  ? "gHotSpotVMIntConstantEntryArrayStride"
                                    : "gHotSpotVMLongConstantEntryArrayStride")
                 ->at != tables[t].width)
            abort();
    }
}

static void remove_row(int t, size_t i) {
    memmove(tables[t].rows + tables[t].width, tables[t].rows, i * tables[t].width);
    tables[t].rows += tables[t].width;
    tables[t].n--;
    *symbol_of(tables[t].symbol)->at = (uint64_t)tables[t].rows;
}
static char *repeat_row(int t, size_t i) { // in front of all others
    char *row = tables[t].rows + i * tables[t].width;
    tables[t].rows -= tables[t].width;
    tables[t].n++;
    *symbol_of(tables[t].symbol)->at = (uint64_t)tables[t].rows;
    return memcpy(tables[t].rows, row, tables[t].width);
}

static struct fieldrow *row_of(const char *type, const char *field) {
    for (struct fieldrow *r = fieldrows(); r->type; r++)
        if (!strcmp(r->type, type) && !strcmp(r->field, field)) return r;
    return NULL;
}

// ---- the JVM around them ------------------------------------------------------------------------
static char *heap;
static char *perf;
// gives a static field memory of its own
static uint64_t *cell_of(const char *type, const char *field, uint64_t value) {
    struct fieldrow *r = row_of(type, field);
    if (!r) return NULL;
    uint64_t *c = (uint64_t *)block(8, 0);
    *c = value;
    r->address = c;
    return c;
}
static uint64_t *perf_start_cell, *perf_top_cell, *heap_cell, *flags_cell, *flag_count_cell, *young_cell, *old_cell,
    *grain_cell;
static char *flag_rows;
static size_t nflags, flag_size;

static uint64_t offset_of(const char *type, const char *field) {
    struct fieldrow *r = row_of(type, field);
    return r ? r->offset : 0;
}
static uint64_t either(const char *type, const char *other, const char *field) {
    return row_of(type, field) ? offset_of(type, field) : offset_of(other, field);
}
static void put(char *object, uint64_t offset, const void *value) { memcpy(object + offset, &value, 8); }

static uint64_t *field_of_heap(const char *type, const char *field, void *value) {
    if (row_of(type, field)->is_static) return cell_of(type, field, (uint64_t)value);
    put(heap, offset_of(type, field), value);
    return (uint64_t *)(heap + offset_of(type, field));
}

static const char *const some_flags[] = {
    "MaxHeapSize", "ObjectAlignmentInBytes", "UseCompactObjectHeaders", "CheckJNICalls", "UseZGC", "UsePerfData"};
static void *some_values[6]; // found before anything is damaged

static void *flag_value(const char *name) {
    for (size_t i = 0; i < nflags; i++) {
        char *row = flag_rows + i * flag_size, *n = *(char **)(row + offset_of("JVMFlag", "_name"));
        if (n && !strcmp(n, name)) return *(char **)(row + offset_of("JVMFlag", "_addr"));
    }
    return NULL;
}

static char *space(char *base, int i, bool mutable) {
    const char *t = mutable ? "ImmutableSpace" : "Space", *u = mutable ? "MutableSpace" : "ContiguousSpace";
    char *s = block(128, 0);
    put(s, either(t, u, "_bottom"), base + (i << 20));
    put(s, offset_of(u, "_top"), base + (i << 20) + 4096);
    put(s, either(t, u, "_end"), base + ((i + 1) << 20));
    return s;
}

static size_t counter(char *at, const char *name, char type, uint32_t elements) {
    uint32_t length = 20 + 44 + (type == 'B' ? 96 : 8), head[] = {length, 20, elements, (uint32_t)type, 64};
    memcpy(at, head, sizeof head);
    strcpy(at + 20, name);
    if (type == 'B') strcpy(at + 64, "No GC");
    return length;
}

static void build(const char *collector) {
    copy_tables();
    const bool parallel = !strcmp(collector, "Parallel"), g1 = !strcmp(collector, "G1");
    char flag[32], *base = (char *)0xe0000000, *young = block(1024, 0), *old = block(512, 0);
    heap = block(2048, 0);
    heap_cell = cell_of("Universe", "_collectedHeap", (uint64_t)heap);
    put(heap, offset_of("CollectedHeap", "_reserved") + offset_of("MemRegion", "_start"), base);
    put(heap, offset_of("CollectedHeap", "_reserved") + offset_of("MemRegion", "_word_size"),
        (void *)(uintptr_t)((64 << 20) / 8));
    // flags: the library's own, with a row that ends at the end of a page
    nflags = *(uint64_t *)row_of("JVMFlag", "numFlags")->address;
    char *real = *(char **)row_of("JVMFlag", "flags")->address;
    for (struct typerow *r = (struct typerow *)tables[TYPES].rows; r->name; r++)
        if (!strcmp(r->name, "JVMFlag")) flag_size = r->size;
    flag_rows = memcpy(block(nflags * flag_size, 0), real, nflags * flag_size);
    flags_cell = cell_of("JVMFlag", "flags", (uint64_t)flag_rows);
    flag_count_cell = cell_of("JVMFlag", "numFlags", nflags);
    snprintf(flag, sizeof flag, "Use%sGC", collector);
    *(bool *)flag_value(flag) = true;
    *(uint64_t *)flag_value("MaxHeapSize") = 64 << 20;
    for (int i = 0; i < 6; i++) some_values[i] = flag_value(some_flags[i]);
    if (g1) {
        char *table = block(64 * 8, 0), *at = heap + offset_of("G1CollectedHeap", "_hrm") +
                                              either("HeapRegionManager", "G1HeapRegionManager", "_regions");
        put(at, offset_of("G1HeapRegionTable", "_base"), table);
        put(at, offset_of("G1HeapRegionTable", "_length"), (void *)64);
        grain_cell = cell_of("HeapRegion", "GrainBytes", 1 << 20);
        if (!grain_cell) grain_cell = cell_of("G1HeapRegion", "GrainBytes", 1 << 20);
    } else if (parallel) {
        put(young, offset_of("PSYoungGen", "_eden_space"), space(base, 0, true));
        put(young, offset_of("PSYoungGen", "_from_space"), space(base, 1, true));
        put(young, offset_of("PSYoungGen", "_to_space"), space(base, 2, true));
        put(old, offset_of("PSOldGen", "_object_space"), space(base, 3, true));
        young_cell = field_of_heap("ParallelScavengeHeap", "_young_gen", young);
        old_cell = field_of_heap("ParallelScavengeHeap", "_old_gen", old);
    } else {
        put(young, offset_of("DefNewGeneration", "_eden_space"), space(base, 0, false));
        put(young, offset_of("DefNewGeneration", "_from_space"), space(base, 1, false));
        put(young, offset_of("DefNewGeneration", "_to_space"), space(base, 2, false));
        put(old, offset_of("TenuredGeneration", "_the_space"), space(base, 3, false));
        young_cell = (uint64_t *)(heap + either("GenCollectedHeap", "SerialHeap", "_young_gen"));
        old_cell = (uint64_t *)(heap + either("GenCollectedHeap", "SerialHeap", "_old_gen"));
        *young_cell = (uint64_t)young, *old_cell = (uint64_t)old;
    }
    // counters
    enum { PERF = 32 + 3 * 72 + 2 * 160 };
    perf = block(PERF, 0);
    uint32_t header[] = {0xc0c0feca, 0, 0, 0, 0, 0, 32, 5};
    memcpy(perf, header, sizeof header);
    char *at = perf + 32;
    at += counter(at, "sun.gc.collector.0.invocations", 'J', 0);
    at += counter(at, "sun.gc.collector.1.invocations", 'J', 0);
    at += counter(at, "sun.gc.cause", 'B', 96);
    at += counter(at, "sun.gc.lastCause", 'B', 96);
    at += counter(at, "sun.gc.collector.2.invocations", 'J', 0);
    if (at != perf + PERF) abort();
    perf_start_cell = cell_of("PerfMemory", "_start", (uint64_t)perf);
    perf_top_cell = cell_of("PerfMemory", "_top", (uint64_t)at);
    if (row_of("CollectedHeap", "_lab_alignment_reserve")) cell_of("CollectedHeap", "_lab_alignment_reserve", 2);
    char *page = block(2 * PAGE, 0);
    memset(page, 'A', PAGE);
    closed = page + PAGE;
    if (mprotect(closed, PAGE, PROT_NONE)) abort();
}

// ---- damage -------------------------------------------------------------------------------------
static uint64_t state;
static uint64_t any(void) { // xorshift64*
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
}
static uint64_t below(uint64_t n) { return (any() >> 11) % n; }

static uint64_t bad_address(void) {
    const uint64_t page_end = (uint64_t)closed;
    switch (below(14)) {
    case 0: return 0;
    case 1: return 8;
    case 2: return page_end;
    case 3: return page_end - 1;
    case 4: return page_end - 4;
    case 5: return page_end - 8;
    case 6: return page_end - 100;
    case 7: return page_end + 8;
    case 8: return any();
    case 9: return any() >> 17;
    case 10: return UINT64_MAX - below(16);
    case 11: return (uint64_t)heap + below(64);
    case 12: return (uint64_t)tables[FIELDS].rows + below(4096);
    default: return 0xffff800000000000u + below(1 << 20);
    }
}
static uint64_t bad_number(void) {
    static const uint64_t some[] = {0,          1,
                                    2,          3,
                                    4,          7,
                                    8,          15,
                                    16,         17,
                                    24,         48,
                                    64,         255,
                                    256,        257,
                                    4095,       4096,
                                    65536,      1 << 20,
                                    INT32_MAX,  UINT32_MAX,
                                    1ull << 46, INT64_MAX,
                                    UINT64_MAX, UINT64_MAX - 7};
    return below(4) ? some[below(sizeof some / 8)] : any() >> below(64);
}

// The names that the loader looks for are hit as often as all the others together.
static size_t some_field(void) {
    static const char *const types[] = {"Universe",
                                        "CollectedHeap",
                                        "MemRegion",
                                        "JVMFlag",
                                        "ParallelScavengeHeap",
                                        "PSYoungGen",
                                        "PSOldGen",
                                        "MutableSpace",
                                        "ImmutableSpace",
                                        "GenCollectedHeap",
                                        "SerialHeap",
                                        "DefNewGeneration",
                                        "TenuredGeneration",
                                        "Space",
                                        "ContiguousSpace",
                                        "G1CollectedHeap",
                                        "HeapRegion",
                                        "G1HeapRegion",
                                        "HeapRegionManager",
                                        "G1HeapRegionManager",
                                        "G1HeapRegionTable",
                                        "HeapRegionType",
                                        "G1HeapRegionType",
                                        "ClassLoaderDataGraph",
                                        "ClassLoaderData",
                                        "Klass",
                                        "Symbol",
                                        "CompressedKlassPointers",
                                        "java_lang_Class",
                                        "ThreadsSMRSupport",
                                        "ThreadsList",
                                        "Thread",
                                        "NamedThread",
                                        "ThreadLocalAllocBuffer",
                                        "PerfMemory"};
    for (int i = 0; i < 1000 && below(8); i++) {
        size_t r = below(tables[FIELDS].n);
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            if (!strcmp(fieldrows()[r].type, types[k])) return r;
    }
    return below(tables[FIELDS].n);
}

static char mutation[600];
static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#include <stdarg.h>
static void note(const char *fmt, ...) {
    va_list ap;
    size_t n = strlen(mutation);
    va_start(ap, fmt);
    vsnprintf(mutation + n, sizeof mutation - n, fmt, ap);
    va_end(ap);
}

struct options opt = {.newsites = 1}; // with the rows of proven sites

static bool last; // of the damage of one case: only then a name may be lost by which the harness itself finds rows

static void damage_field(void) {
    static const char *const types[] = {"int",      "bool",    "HeapWord*", "size_t", "",         "u2",       "const",
                                        "volatile", "Atomic<", "Atomic<>",  "*",      "A\x1b[2J", "MemRegion"};
    size_t i = some_field();
    struct fieldrow *r = &fieldrows()[i];
    uint64_t v;
    note("%s::%s ", r->type, r->field);
    switch (last ? below(9) : below(7)) {
    case 0:
        note("static %d;", !r->is_static);
        r->is_static = !r->is_static;
        if (below(2)) r->address = (void *)bad_address(), r->offset = bad_number();
        break;
    case 1: r->offset = v = bad_number(), note("offset %" PRIx64 ";", v); break;
    case 2: r->address = (void *)(v = bad_address()), note("address %" PRIx64 ";", v); break;
    case 3: r->declared = types[v = below(sizeof types / sizeof *types)], note("type %" PRIu64 ";", v); break;
    case 4: r->declared = (char *)(v = bad_address()), note("type at %" PRIx64 ";", v); break;
    case 5: remove_row(FIELDS, i), note("removed;"); break;
    case 6:
        r = (struct fieldrow *)repeat_row(FIELDS, i);
        r->is_static ^= (int32_t)below(2), r->offset += below(2) * 8, r->address = (char *)r->address + below(2) * 8;
        note("twice;");
        break;
    case 7:
        v = bad_address();
        if (below(2))
            r->type = (char *)v;
        else
            r->field = (char *)v;
        note("name at %" PRIx64 ";", v);
        break;
    default: r->is_static = (int32_t)(v = any()), note("static %d;", (int32_t)v); break;
    }
}

static void damage_other(void) {
    uint64_t v;
    int t = (int)below(TABLES);
    size_t i = below(tables[t].n);
    char *row = tables[t].rows + i * tables[t].width;
    switch (below(last ? 7 : 6)) {
    case 0: {
        struct symbol *s = &symbols[below((uint64_t)nsymbols)];
        note("%s ", s->name);
        if (!below(3))
            s->at = NULL, note("missing;");
        else if (!below(3))
            s->at = (uint64_t *)(v = bad_address() & ~7ull), note("at %" PRIx64 ";", v);
        else
            *s->at = v = below(2) ? bad_number() : bad_address(), note("is %" PRIx64 ";", v);
        break; // the harness itself does not ask for symbols again
    }
    case 6:
        *(uint64_t *)row = v = bad_address(), note("%s row %zu name at %" PRIx64 ";", tables[t].symbol, i, v);
        break;
    case 2: remove_row(t, i), note("%s row %zu removed;", tables[t].symbol, i); break;
    case 3: // the last row is no end
        if (last)
            memcpy(tables[t].rows + tables[t].n * tables[t].width, row, tables[t].width),
                note("%s endless;", tables[t].symbol);
        break;
    case 4: {
        struct typerow *y = (struct typerow *)tables[TYPES].rows + below(tables[TYPES].n);
        for (int k = 0; k < 500 && below(8) && !row_of(y->name, "_top") && !row_of(y->name, "_name") &&
                        !row_of(y->name, "_regions");
             k++)
            y = (struct typerow *)tables[TYPES].rows + below(tables[TYPES].n);
        y->size = v = bad_number();
        note("size of %s %" PRIx64 ";", y->name, v);
        break;
    }
    case 5: {
        struct longrow *y = (struct longrow *)tables[LONGS].rows;
        for (int k = 0; k < 500 && strncmp(y->name, "markWord", 8); k++)
            y = (struct longrow *)tables[LONGS].rows + below(tables[LONGS].n);
        y->value = (int64_t)(v = bad_number());
        note("%s is %" PRIx64 ";", y->name, v);
        break;
    }
    default: {
        struct introw *y = (struct introw *)tables[INTS].rows;
        for (int k = 0; k < 500 && !strstr(y->name, "HeapRegionType"); k++)
            y = (struct introw *)tables[INTS].rows + below(tables[INTS].n);
        y->value = (int32_t)(v = bad_number());
        note("%s is %" PRIx64 ";", y->name, v);
    }
    }
}

static void damage_value(void) {
    uint64_t *cells[] = {perf_start_cell, perf_top_cell, heap_cell, flags_cell,
                         flag_count_cell, young_cell,    old_cell,  grain_cell};
    uint64_t v, *c;
    switch (below(5)) {
    case 0:
        while (!(c = cells[below(8)])) {
        }
        *c = v = below(2) ? bad_number() : bad_address();
        note("value at %p is %" PRIx64 ";", (void *)c, v);
        break;
    case 1:
        c = (uint64_t *)(heap + below(256) * 8);
        *c = v = below(2) ? bad_number() : bad_address();
        note("heap + %td is %" PRIx64 ";", (char *)c - heap, v);
        break;
    case 2: {
        uint32_t *p = (uint32_t *)perf + below(142);
        *p = (uint32_t)(v = bad_number());
        note("PerfMemory + %td is %x;", (char *)p - perf, *p);
        break;
    }
    case 4: {
        if (!last) break;
        char *row = flag_rows + below(nflags) * flag_size;
        *(uint64_t *)(row + below(2) * 8) = v = bad_address();
        note("flag %td at %" PRIx64 ";", (row - flag_rows) / (ptrdiff_t)flag_size, v);
        break;
    }
    default: {
        static const unsigned width[] = {8, 4, 1, 1, 1, 1};
        uint64_t i = below(6);
        void *p = some_values[i];
        v = bad_number();
        if (p) memcpy(p, &v, width[i]);
        note("%s is %" PRIx64 ";", some_flags[i], v);
    }
    }
}

// One line of standard input: false if it says nothing that can be done here.
static bool directed(char *line) {
    char op[32], a[100] = "", b[100] = "";
    long long v = 0;
    snprintf(mutation, sizeof mutation, "%s", line);
    if (sscanf(line, "%31s %99s %99s %lli", op, a, b, &v) < 1) return false;
    struct fieldrow *r = row_of(a, b);
    if (!strcmp(op, "nothing")) return true;
    if (!strcmp(op, "nosymbol")) {
        struct symbol *s = symbol_of(a);
        return s && (s->at = NULL, true);
    }
    if (!strcmp(op, "symbol")) {
        struct symbol *s = symbol_of(a);
        return s && (*s->at = strtoull(b, NULL, 0), true);
    }
    if (!strcmp(op, "noconstant") || !strcmp(op, "constant"))
        for (int t = INTS; t <= LONGS; t++)
            for (size_t i = 0; i < tables[t].n; i++) {
                char *row = tables[t].rows + i * tables[t].width;
                if (strcmp(*(char **)row, a)) continue;
                if (op[0] == 'n') return remove_row(t, i), true;
                *(int32_t *)(row + 8) = (int32_t)strtoll(b, NULL, 0);
                return true;
            }
    if (!strcmp(op, "flag")) {
        char *p = flag_value(a);
        return p && (*p = (char)atoi(b), true);
    }
    if (!r) return false;
    if (!strcmp(op, "remove")) return remove_row(FIELDS, (size_t)(r - fieldrows())), true;
    if (!strcmp(op, "flip")) { // what was an offset stands where an address is expected, and the other way round
        uint64_t offset = r->offset;
        r->is_static = !r->is_static;
        r->offset = r->is_static ? 0 : 64;
        r->address = r->is_static ? (void *)offset : NULL;
        return true;
    }
    if (!strcmp(op, "twice")) {
        struct fieldrow *s = (struct fieldrow *)repeat_row(FIELDS, (size_t)(r - fieldrows()));
        s->offset += 8, s->address = (char *)s->address + 8;
        return true;
    }
    if (!strcmp(op, "untyped")) return r->declared = "Widget", true;
    if (!strcmp(op, "offset")) return r->offset = (uint64_t)v, true;
    // v: from the page that cannot be read
    if (!strcmp(op, "address")) return r->address = v ? (void *)(closed + v) : NULL, true;
    return false;
}

// ---- one case -----------------------------------------------------------------------------------
static char *answer; // shared with the process of the case

// What the probe does with a loaded vm: outside the guard only what the loader vouches for.
static void use(void) {
    volatile uint64_t sum = *vm.total_collections;
    for (int i = 0; i < 3; i++) sum += vm.perf_inv[i] ? rd64(vm.perf_inv[i]) : 0;
    sum += strnlen(vm.perf_cause, 80) + (vm.perf_last_cause ? strnlen(vm.perf_last_cause, 80) : 0);
    if (GUARD_ENTER()) {
        guard_arm();
        vm_spaces_now();
        char *spaces[] = {vm.eden, vm.from, vm.to, vm.old};
        for (int i = 0; i < 4 && vm.collector != HC_COLLECTOR_G1; i++) sum += rd64(spaces[i] + vm.space_top);
        if (vm.collector == HC_COLLECTOR_G1) sum += rd64(vm.g1_len) + rd64(rdp(vm.g1_table));
        sum += vm_gc_number(false) + rd64(vm.cld_head) + rd64(vm.thread_list) + rd32(vm.mirror_size_offset) +
               rd32(vm.narrow_klass_shift);
    }
    guard_disarm();
}

static void run(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    alarm(20);
    char why[HC_MAX_REASON] = "";
    vm.major = atoi(getenv("LOADER_MAJOR"));
    bool ok = vm_load(answer, true, why) && vm_late(why);
    if (ok) use();
    bool line = ok || (why[0] && strnlen(why, sizeof why) < sizeof why - 1);
    for (char *c = why; *c && line && !ok; c++) line = *c >= ' ' && *c <= '~';
    snprintf(answer, PAGE, "%s%s", ok ? "loaded" : line ? "refused: " : "REASON IS NO LINE", ok || !line ? "" : why);
}

int main(int argc, char **argv) {
    if (argc < 5 || !(libjvm = dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL)))
        return fprintf(stderr, "loader: %s\n", argc < 5 ? "usage" : dlerror()), 2;
    const bool random = !strcmp(argv[4], "random") && argc == 7;
    build(argv[2]);
    refuse_copies = !strcmp(argv[3], "guard");
    answer = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *what = answer + PAGE, line[300];
    uint64_t seed = random ? strtoull(argv[5], NULL, 0) : 0, count = random ? strtoull(argv[6], NULL, 0) : UINT64_MAX;
    for (uint64_t i = 0; i < count && (random || fgets(line, sizeof line, stdin)); i++) {
        line[random ? 0 : strcspn(line, "\n")] = 0;
        snprintf(answer, PAGE, "nothing to damage");
        what[0] = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child < 0) return perror("loader: fork"), 2;
        if (child == 0) {
            state = (seed + i) * 0x9e3779b97f4a7c15ull + 1;
            bool go = true;
            if (random) {
                // The symbols are known by name once they have been asked for.
                for (int t = 0; t < TABLES; t++) symbol_of(tables[t].symbol);
                static const char *const more[] = {
                    "gHotSpotVMStructEntryTypeNameOffset",   "gHotSpotVMStructEntryFieldNameOffset",
                    "gHotSpotVMStructEntryTypeStringOffset", "gHotSpotVMStructEntryIsStaticOffset",
                    "gHotSpotVMStructEntryOffsetOffset",     "gHotSpotVMStructEntryAddressOffset",
                    "gHotSpotVMTypeEntryTypeNameOffset",     "gHotSpotVMTypeEntrySizeOffset",
                    "gHotSpotVMIntConstantEntryNameOffset",  "gHotSpotVMIntConstantEntryValueOffset",
                    "gHotSpotVMLongConstantEntryNameOffset", "gHotSpotVMLongConstantEntryValueOffset"};
                for (size_t k = 0; k < sizeof more / sizeof *more; k++) symbol_of(more[k]);
                for (uint64_t k = 1 + below(3); k; k--) {
                    uint64_t kind = below(10);
                    last = k == 1;
                    if (kind < 5)
                        damage_field();
                    else if (kind < 7)
                        damage_other();
                    else
                        damage_value();
                }
            } else {
                go = directed(line);
            }
            snprintf(what, PAGE, "%s", mutation);
            snprintf(answer, PAGE, go ? "no answer" : "nothing to damage");
            if (go) run();
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child) return perror("loader: waitpid"), 2;
        for (char *c = what; *c; c++)
            if (*c < ' ' || *c > '~') *c = '?';
        if (WIFSIGNALED(status))
            printf("%" PRIu64 "\t%s\tsignal %d\n", i, what, WTERMSIG(status));
        else
            printf("%" PRIu64 "\t%s\t%s\n", i, what, answer);
    }
    return 0;
}
