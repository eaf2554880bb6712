// vm.h: the structures of a JVM as the probe sees them, and the tables that libjvm exports of them. For fakejvm.c
// alone.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef WITHOUT_TABLES // as in a VM of another kind
#define EXPORTED __attribute__((visibility("hidden")))
#elif defined _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif
enum {
    MB = 1 << 20,
    EDEN = 2 * MB,
    SURVIVOR = MB / 2,
    HEAP_SIZE = 32 * MB,
    TENURE = 3,
    EACH_SAMPLE = 400,
    EACH_FULL = 90,
    WEAKS = 1 << 14
};

// ---- the VM's structures: the probe knows no offset but those of the tables below -----------------------------------
struct symbol {
    uint16_t length;
    char body[30];
};
struct klass {
    struct klass *next;
    int32_t layout, pad;
    struct symbol *name;
    struct cld *cld;
};
struct cld {
    struct cld *next;
    struct klass *klasses;
    void **loader;
};
struct space {
    uint64_t bottom, top, end;
};
struct young {
    struct space *eden, *from, *to;
};
struct tenured {
    struct space *space;
};
static struct heap {
    struct young *young;
    struct tenured *old;
    uint64_t start, words;
    unsigned total;
} heap;
struct tlab {
    uint64_t top, pad, end, allocation_end, desired;
};
struct thread {
    uint64_t pad;
    struct tlab tlab;
};
static struct threads {
    uint32_t length;
    struct thread **threads;
} no_threads, *threads = &no_threads;
static struct flag {
    void *addr;
    const char *name;
    int pad[2];
} flags[6];

static struct symbol names[] = {{5, "Order"}, {4, "Line"}, {2, "[B"}, {8, "[LOrder;"}, {4, "Late"}};
enum { ORDER, LINE, BYTES, ORDERS, LATE, CLASSES };
static struct cld boot;
static struct klass klasses[CLASSES] = {
    [ORDER] = {NULL, 24, 0, &names[ORDER], &boot},
    [LINE] = {&klasses[ORDER], 40, 0, &names[LINE], &boot},
    [BYTES] = {&klasses[LINE], (int32_t)(3u << 30 | 16 << 16 | 8 << 8), 0, &names[BYTES], &boot},
    [ORDERS] = {&klasses[BYTES], (int32_t)(2u << 30 | 16 << 16 | 12 << 8 | 2), 0, &names[ORDERS], &boot},
    [LATE] = {&klasses[ORDERS], 32, 0, &names[LATE], &boot}, // loaded in the middle
};
static struct cld boot = {NULL, &klasses[ORDERS], NULL}, *clds = &boot;
static struct space eden, survivors[2], old;
static struct young young = {&eden, &survivors[0], &survivors[1]};
static struct tenured tenured = {&old};
static struct heap *the_heap = &heap;
static char *klass_base = (char *)klasses - 64;
static int klass_shift = 3, mirror_size, prefetch = 0;
static uint8_t on = 1;
static int32_t object_alignment = 8;
static uint64_t max_heap = HEAP_SIZE, nflags = 6;
static struct flag *all_flags = flags;
static struct {
    uint32_t magic, pad[5], first, entries;
    struct entry {
        uint32_t length, name, elements, type, data;
        char text[44];
        union {
            int64_t n;
            char s[32];
        };
    } e[3];
} perf = {0xc0c0feca,
          {0},
          32,
          3,
          {{96, 20, 0, 'J', 64, "sun.gc.collector.0.invocations", {0}},
           {96, 20, 0, 'J', 64, "sun.gc.collector.1.invocations", {0}},
           {96, 20, 32, 'B', 64, "sun.gc.cause", {.s = "Allocation Failure"}}}};
static void *perf_start = &perf, *perf_top = &perf + 1;
_Static_assert(sizeof(struct entry) == 96 && offsetof(struct entry, n) == 64, "an entry of PerfMemory");

// ---- the tables, as libjvm exports them -----------------------------------------------------------------------------
typedef struct {
    const char *type, *field, *of;
    int32_t is_static;
    uint64_t offset;
    void *address;
} field_entry;
typedef struct {
    const char *name, *super;
    int32_t a, b, c;
    uint64_t size;
} type_entry;
typedef struct {
    const char *name;
    int64_t value;
} constant_entry;
#define AT(type, field, of, s, member)                                                                                 \
    { type, field, of, 0, offsetof(struct s, member), NULL }
#define IS(type, field, of, variable)                                                                                  \
    { type, field, of, 1, 0, &(variable) }
static field_entry fields[] = {
    IS("Universe", "_collectedHeap", "CollectedHeap*", the_heap),
    AT("CollectedHeap", "_reserved", "MemRegion", heap, start),
    AT("CollectedHeap", "_total_collections", "unsigned int", heap, total),
    {"MemRegion", "_start", "HeapWord*", 0, 0, NULL},
    {"MemRegion", "_word_size", "size_t", 0, 8, NULL},
    IS("JVMFlag", "flags", "JVMFlag*", all_flags),
    IS("JVMFlag", "numFlags", "size_t", nflags),
    AT("JVMFlag", "_name", "const char*", flag, name),
    AT("JVMFlag", "_addr", NULL, flag, addr),
    AT("GenCollectedHeap", "_young_gen", "Generation*", heap, young),
    AT("GenCollectedHeap", "_old_gen", "Generation*", heap, old),
    AT("DefNewGeneration", "_eden_space", "ContiguousSpace*", young, eden),
    AT("DefNewGeneration", "_from_space", "ContiguousSpace*", young, from),
    AT("DefNewGeneration", "_to_space", "ContiguousSpace*", young, to),
    AT("TenuredGeneration", "_the_space", "ContiguousSpace*", tenured, space),
    AT("Space", "_bottom", "HeapWord*", space, bottom),
    AT("Space", "_end", "HeapWord*", space, end),
    AT("ContiguousSpace", "_top", "HeapWord*", space, top),
    IS("ClassLoaderDataGraph", "_head", "ClassLoaderData*", clds),
    AT("ClassLoaderData", "_next", "ClassLoaderData*", cld, next),
    AT("ClassLoaderData", "_klasses", "Klass*", cld, klasses),
    AT("ClassLoaderData", "_class_loader", "OopHandle", cld, loader),
    AT("Klass", "_next_link", "Klass*", klass, next),
    AT("Klass", "_layout_helper", "jint", klass, layout),
    AT("Klass", "_name", "Symbol*", klass, name),
    AT("Klass", "_class_loader_data", "ClassLoaderData*", klass, cld),
    AT("Symbol", "_length", "u2", symbol, length),
    AT("Symbol", "_body", "u1", symbol, body),
    IS("CompressedKlassPointers", "_narrow_klass._base", "address", klass_base),
    IS("CompressedKlassPointers", "_narrow_klass._shift", "int", klass_shift),
    IS("java_lang_Class", "_oop_size_offset", "int", mirror_size),
    IS("ThreadsSMRSupport", "_java_thread_list", "ThreadsList*", threads),
    AT("ThreadsList", "_length", "const uint", threads, length),
    AT("ThreadsList", "_threads", "JavaThread *const *const", threads, threads),
    AT("Thread", "_tlab", "ThreadLocalAllocBuffer", thread, tlab),
    AT("ThreadLocalAllocBuffer", "_top", "HeapWord*", tlab, top),
    AT("ThreadLocalAllocBuffer", "_end", "HeapWord*", tlab, end),
    AT("ThreadLocalAllocBuffer", "_desired_size", "size_t", tlab, desired),
    IS("ThreadLocalAllocBuffer", "_reserve_for_allocation_prefetch", "int", prefetch),
    IS("PerfMemory", "_start", "char*", perf_start),
    IS("PerfMemory", "_top", "char*", perf_top),
    {NULL, NULL, NULL, 0, 0, NULL},
};
#define TYPE(name, size)                                                                                               \
    { name, NULL, 0, 0, 0, size }
static type_entry types[] = {
    TYPE("JVMFlag", sizeof(struct flag)),
    TYPE("MemRegion", 16),
    TYPE("OopHandle", 8),
    TYPE("Klass", sizeof(struct klass)),
    TYPE("Symbol", 8),
    TYPE("ThreadLocalAllocBuffer", sizeof(struct tlab)),
    TYPE("Thread", sizeof(struct thread)),
    {NULL, NULL, 0, 0, 0, 0},
};
static constant_entry no_constants[] = {{NULL, 0}},
                      mark_constants[] = {{"markWord::marked_value", 3}, {"markWord::age_shift", 3}, {NULL, 0}};
EXPORTED field_entry *gHotSpotVMStructs = fields;
EXPORTED type_entry *gHotSpotVMTypes = types;
EXPORTED constant_entry *gHotSpotVMIntConstants = no_constants, *gHotSpotVMLongConstants = mark_constants;
#define COLUMN(table, column, s, member) EXPORTED uint64_t table##column##Offset = offsetof(s, member);
#define STRIDE(table, s) EXPORTED uint64_t table##ArrayStride = sizeof(s);
STRIDE(gHotSpotVMStructEntry, field_entry)
COLUMN(gHotSpotVMStructEntry, TypeName, field_entry, type)
COLUMN(gHotSpotVMStructEntry, FieldName, field_entry, field)
COLUMN(gHotSpotVMStructEntry, TypeString, field_entry, of)
COLUMN(gHotSpotVMStructEntry, IsStatic, field_entry, is_static)
COLUMN(gHotSpotVMStructEntry, Offset, field_entry, offset)
COLUMN(gHotSpotVMStructEntry, Address, field_entry, address)
STRIDE(gHotSpotVMTypeEntry, type_entry)
COLUMN(gHotSpotVMTypeEntry, TypeName, type_entry, name)
COLUMN(gHotSpotVMTypeEntry, Size, type_entry, size)
STRIDE(gHotSpotVMIntConstantEntry, constant_entry)
COLUMN(gHotSpotVMIntConstantEntry, Name, constant_entry, name)
COLUMN(gHotSpotVMIntConstantEntry, Value, constant_entry, value)
STRIDE(gHotSpotVMLongConstantEntry, constant_entry)
COLUMN(gHotSpotVMLongConstantEntry, Name, constant_entry, name)
COLUMN(gHotSpotVMLongConstantEntry, Value, constant_entry, value)
