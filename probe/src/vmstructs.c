//go:build ignore

// vmstructs.c: reads the tables of libjvm into struct vm.
#include "vmstructs.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "heapcam_abi.h"
#include "guard.h"
#include "log.h"
#include "os.h"
#include "perfmemory.h"
#include "vmtable.h"

struct vm vm;

// ---- what is read from the tables ---------------------------------------------------------------
static char *static_heap, *static_flags, *static_flag_count;
static char *static_parallel_young, *static_parallel_old, *static_g1_grain;
static char *static_lab_reserve, *static_prefetch_reserve, *static_mirror_size, *static_klass_base, *static_klass_shift;
static char *static_loaders, *static_threads, *static_perf_start, *static_perf_top;
static int64_t off_heap_reserved, off_range_start, off_range_words, off_total_collections;
static int64_t off_flag_name, off_flag_value;
static int64_t off_parallel_eden, off_parallel_from, off_parallel_to, off_parallel_old;
static int64_t off_mutable_bottom, off_mutable_top, off_mutable_end;
static int64_t off_serial_young, off_serial_old, off_serial_eden, off_serial_from, off_serial_to, off_tenured_space;
static int64_t off_contiguous_bottom, off_contiguous_top, off_contiguous_end;
static int64_t off_g1_manager, off_g1_regions, off_g1_base, off_g1_length, off_region_type, off_region_tag;
static int64_t off_tlab_desired, off_processed_thread;
// The young and the old generation: of Serial or of Parallel.
static char *young_generation, *old_generation;

enum {
    SERIAL = 1 << HC_COLLECTOR_SERIAL,
    PARALLEL = 1 << HC_COLLECTOR_PARALLEL,
    G1 = 1 << HC_COLLECTOR_G1,
    ALL = SERIAL | PARALLEL | G1,
    // the first rows: without them it is not known which collector runs, and so which of the others are needed
    FLAG_FIELDS = 4,
};
#define FIELD(needed_by, shape_, to, ...)                                                                              \
    {                                                                                                                  \
        .collectors = needed_by, .shape = shape_, .offset = &to, .name = { __VA_ARGS__ }                               \
    }
#define EMBEDDED(needed_by, type, to, ...)                                                                             \
    {                                                                                                                  \
        .collectors = needed_by, .shape = VM_STRUCT, .inner = type, .offset = &to, .name = { __VA_ARGS__ }             \
    }
#define STATIC(needed_by, shape_, to, ...)                                                                             \
    {                                                                                                                  \
        .collectors = needed_by, .shape = shape_, .address = &to, .name = { __VA_ARGS__ }                              \
    }
#define OPTIONAL .optional = true

// Where a row has two names the second is the newer one: 25 renamed most. A field whose kind or type changes is
// refused by name, as ParallelScavengeHeap::_young_gen on 27, which is no longer static there.
static struct vm_field fields[] = {
    STATIC(ALL, VM_POINTER, static_flags, {"JVMFlag", "flags"}),
    STATIC(ALL, VM_SIZE, static_flag_count, {"JVMFlag", "numFlags"}),
    FIELD(ALL, VM_POINTER, off_flag_name, {"JVMFlag", "_name"}),
    FIELD(ALL, VM_UNTYPED_POINTER, off_flag_value, {"JVMFlag", "_addr"}),

    STATIC(ALL, VM_POINTER, static_heap, {"Universe", "_collectedHeap"}),
    EMBEDDED(ALL, "MemRegion", off_heap_reserved, {"CollectedHeap", "_reserved"}),
    FIELD(ALL, VM_INT, off_total_collections, {"CollectedHeap", "_total_collections"}),
    FIELD(ALL, VM_POINTER, off_range_start, {"MemRegion", "_start"}),
    FIELD(ALL, VM_SIZE, off_range_words, {"MemRegion", "_word_size"}),

    STATIC(PARALLEL, VM_POINTER, static_parallel_young, {"ParallelScavengeHeap", "_young_gen"}),
    STATIC(PARALLEL, VM_POINTER, static_parallel_old, {"ParallelScavengeHeap", "_old_gen"}),
    FIELD(PARALLEL, VM_POINTER, off_parallel_eden, {"PSYoungGen", "_eden_space"}),
    FIELD(PARALLEL, VM_POINTER, off_parallel_from, {"PSYoungGen", "_from_space"}),
    FIELD(PARALLEL, VM_POINTER, off_parallel_to, {"PSYoungGen", "_to_space"}),
    FIELD(PARALLEL, VM_POINTER, off_parallel_old, {"PSOldGen", "_object_space"}),
    FIELD(PARALLEL, VM_POINTER, off_mutable_bottom, {"MutableSpace", "_bottom"}),
    FIELD(PARALLEL, VM_POINTER, off_mutable_top, {"MutableSpace", "_top"}),
    FIELD(PARALLEL, VM_POINTER, off_mutable_end, {"MutableSpace", "_end"}),

    FIELD(SERIAL, VM_POINTER, off_serial_young, {"GenCollectedHeap", "_young_gen"}, {"SerialHeap", "_young_gen"}),
    FIELD(SERIAL, VM_POINTER, off_serial_old, {"GenCollectedHeap", "_old_gen"}, {"SerialHeap", "_old_gen"}),
    FIELD(SERIAL, VM_POINTER, off_serial_eden, {"DefNewGeneration", "_eden_space"}),
    FIELD(SERIAL, VM_POINTER, off_serial_from, {"DefNewGeneration", "_from_space"}),
    FIELD(SERIAL, VM_POINTER, off_serial_to, {"DefNewGeneration", "_to_space"}),
    FIELD(SERIAL, VM_POINTER, off_tenured_space, {"TenuredGeneration", "_the_space"}),
    FIELD(SERIAL, VM_POINTER, off_contiguous_bottom, {"Space", "_bottom"}, {"ContiguousSpace", "_bottom"}),
    FIELD(SERIAL, VM_POINTER, off_contiguous_end, {"Space", "_end"}, {"ContiguousSpace", "_end"}),
    FIELD(SERIAL, VM_POINTER, off_contiguous_top, {"ContiguousSpace", "_top"}),

    EMBEDDED(G1, "HeapRegionManager", off_g1_manager, {"G1CollectedHeap", "_hrm"}),
    EMBEDDED(G1, "HeapRegionTable", off_g1_regions, {"HeapRegionManager", "_regions"},
             {"G1HeapRegionManager", "_regions"}),
    FIELD(G1, VM_POINTER, off_g1_base, {"G1HeapRegionTable", "_base"}),
    FIELD(G1, VM_SIZE, off_g1_length, {"G1HeapRegionTable", "_length"}),
    FIELD(G1, VM_POINTER, vm.hr_bottom, {"HeapRegion", "_bottom"}, {"G1HeapRegion", "_bottom"}),
    FIELD(G1, VM_POINTER, vm.hr_top, {"HeapRegion", "_top"}, {"G1HeapRegion", "_top"}),
    FIELD(G1, VM_POINTER, vm.hr_end, {"HeapRegion", "_end"}, {"G1HeapRegion", "_end"}),
    EMBEDDED(G1, "HeapRegionType", off_region_type, {"HeapRegion", "_type"}, {"G1HeapRegion", "_type"}),
    EMBEDDED(G1, "HeapRegionType::Tag", off_region_tag, {"HeapRegionType", "_tag"}, {"G1HeapRegionType", "_tag"}),
    STATIC(G1, VM_SIZE, static_g1_grain, {"HeapRegion", "GrainBytes"}, {"G1HeapRegion", "GrainBytes"}),

    STATIC(ALL, VM_POINTER, static_loaders, {"ClassLoaderDataGraph", "_head"}),
    FIELD(ALL, VM_POINTER, vm.cld_next, {"ClassLoaderData", "_next"}),
    FIELD(ALL, VM_POINTER, vm.cld_klasses, {"ClassLoaderData", "_klasses"}),
    EMBEDDED(ALL, "OopHandle", vm.cld_loader, {"ClassLoaderData", "_class_loader"}),
    FIELD(ALL, VM_POINTER, vm.k_next, {"Klass", "_next_link"}),
    FIELD(ALL, VM_INT, vm.k_layout, {"Klass", "_layout_helper"}),
    FIELD(ALL, VM_POINTER, vm.k_name, {"Klass", "_name"}),
    FIELD(ALL, VM_POINTER, vm.k_cld, {"Klass", "_class_loader_data"}),
    FIELD(ALL, VM_SHORT, vm.sym_len, {"Symbol", "_length"}),
    FIELD(ALL, VM_UNTYPED_BYTES, vm.sym_body, {"Symbol", "_body"}, {"Symbol", "_body[0]"}),
    STATIC(ALL, VM_POINTER, static_klass_base, {"CompressedKlassPointers", "_narrow_klass._base"},
           {"CompressedKlassPointers", "_base"}),
    STATIC(ALL, VM_INT, static_klass_shift, {"CompressedKlassPointers", "_narrow_klass._shift"},
           {"CompressedKlassPointers", "_shift"}),
    STATIC(ALL, VM_INT, static_mirror_size, {"java_lang_Class", "_oop_size_offset"}),

    STATIC(ALL, VM_POINTER, static_threads, {"ThreadsSMRSupport", "_java_thread_list"}),
    FIELD(ALL, VM_INT, vm.tl_length, {"ThreadsList", "_length"}),
    FIELD(ALL, VM_POINTER, vm.tl_threads, {"ThreadsList", "_threads"}),
    EMBEDDED(ALL, "ThreadLocalAllocBuffer", vm.thread_tlab, {"Thread", "_tlab"}),
    {.collectors = ALL,
     OPTIONAL,
     .shape = VM_POINTER,
     .offset = &off_processed_thread,
     .name = {{"NamedThread", "_processed_thread"}}},
    FIELD(ALL, VM_POINTER, vm.tlab_top, {"ThreadLocalAllocBuffer", "_top"}),
    FIELD(ALL, VM_POINTER, vm.tlab_end, {"ThreadLocalAllocBuffer", "_end"}),
    FIELD(ALL, VM_SIZE, off_tlab_desired, {"ThreadLocalAllocBuffer", "_desired_size"}),
    STATIC(ALL, VM_INT, static_prefetch_reserve, {"ThreadLocalAllocBuffer", "_reserve_for_allocation_prefetch"}),
    {.collectors = ALL,
     OPTIONAL,
     .shape = VM_SIZE,
     .address = &static_lab_reserve,
     .name = {{"CollectedHeap", "_lab_alignment_reserve"}}},

    STATIC(ALL, VM_POINTER, static_perf_start, {"PerfMemory", "_start"}),
    STATIC(ALL, VM_POINTER, static_perf_top, {"PerfMemory", "_top"}),
};

#define CONSTANT(needed_by, to_, lo, hi, ...)                                                                          \
    {                                                                                                                  \
        .collectors = needed_by, .to = to_, .least = lo, .most = hi, .name = { __VA_ARGS__ }                           \
    }
static struct vm_constant long_constants[] = {
    // What walk.c holds for true of a mark word: 3 in its two low bits is a forwarding pointer, the age is in bits 3
    // to 6.
    CONSTANT(ALL, NULL, 3, 3, "markWord::marked_value"),
    CONSTANT(ALL, NULL, 3, 3, "markWord::age_shift"),
    // before 24 there is none
    {.collectors = ALL, OPTIONAL, .to = &vm.klass_shift, .least = 1, .most = 63, .name = {"markWord::klass_shift"}},
};
static struct vm_constant int_constants[] = {
    CONSTANT(G1, &vm.g1_eden, 0, 255, "HeapRegionType::EdenTag", "G1HeapRegionType::EdenTag"),
    CONSTANT(G1, &vm.g1_surv, 0, 255, "HeapRegionType::SurvTag", "G1HeapRegionType::SurvTag"),
    CONSTANT(G1, &vm.g1_old_mask, 1, 255, "HeapRegionType::OldMask", "G1HeapRegionType::OldMask"),
    CONSTANT(G1, &vm.g1_free, 0, 255, "HeapRegionType::FreeTag", "G1HeapRegionType::FreeTag"),
    CONSTANT(G1, &vm.g1_hum_start, 1, 255, "HeapRegionType::StartsHumongousTag",
             "G1HeapRegionType::StartsHumongousTag"),
    CONSTANT(G1, &vm.g1_hum_cont, 1, 255, "HeapRegionType::ContinuesHumongousTag",
             "G1HeapRegionType::ContinuesHumongousTag"),
    // until 20
    {.collectors = G1,
     OPTIONAL,
     .to = &vm.g1_archive_mask,
     .least = 1,
     .most = 255,
     .name = {"HeapRegionType::ArchiveMask"}},
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool fail(char *why, const char *what) {
    snprintf(why, HC_MAX_REASON, "%s", what);
    return false;
}

// ---- flags --------------------------------------------------------------------------------------
enum flag_name {
    SERIAL_GC,
    PARALLEL_GC,
    G1_GC,
    ZGC,
    SHENANDOAH_GC,
    EPSILON_GC,
    NUMA,
    PERF_DATA,
    COMPRESSED_OOPS,
    COMPRESSED_CLASSES,
    COMPACT_HEADERS,
    CHECK_JNI,
    ALIGNMENT,
    MAX_HEAP,
    FLAGS
};
static struct flag {
    const char *name;
    unsigned width;
    bool found;
    uint64_t value;
} flags[FLAGS] = {
    [SERIAL_GC] = {.name = "UseSerialGC", .width = 1},
    [PARALLEL_GC] = {.name = "UseParallelGC", .width = 1},
    [G1_GC] = {.name = "UseG1GC", .width = 1},
    [ZGC] = {.name = "UseZGC", .width = 1},
    [SHENANDOAH_GC] = {.name = "UseShenandoahGC", .width = 1},
    [EPSILON_GC] = {.name = "UseEpsilonGC", .width = 1},
    [NUMA] = {.name = "UseNUMA", .width = 1},
    [PERF_DATA] = {.name = "UsePerfData", .width = 1},
    [COMPRESSED_OOPS] = {.name = "UseCompressedOops", .width = 1},
    [COMPRESSED_CLASSES] = {.name = "UseCompressedClassPointers", .width = 1},
    [COMPACT_HEADERS] = {.name = "UseCompactObjectHeaders", .width = 1},
    [CHECK_JNI] = {.name = "CheckJNICalls", .width = 1},
    [ALIGNMENT] = {.name = "ObjectAlignmentInBytes", .width = 4}, // 8 bytes on 17, 4 later
    [MAX_HEAP] = {.name = "MaxHeapSize", .width = 8},
};

static bool on(enum flag_name f) { return flags[f].found && flags[f].value; }

static bool read_flags(uint64_t stride, char *why) {
    enum { MAX_FLAGS = 1 << 14, MAX_FLAG_NAME = 256 };
    char name[MAX_FLAG_NAME], *array;
    uint64_t n;
    for (int f = 0; f < FLAGS; f++) flags[f].found = false, flags[f].value = 0;
    if (stride < 16 || stride > 256 || stride % 8 || (uint64_t)off_flag_name > stride - 8 ||
        (uint64_t)off_flag_value > stride - 8)
        return fail(why, "this JVM does not export the size of JVMFlag");
    if (!vm_peek_pointer(&array, (uint64_t)static_flags) || !vm_peek(&n, (uint64_t)static_flag_count, 8) || !n ||
        n > MAX_FLAGS)
        return fail(why, "the flags of this JVM cannot be read (JVMFlag::flags, JVMFlag::numFlags)");
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = (uint64_t)array + i * stride, at, value;
        if (!vm_peek(&at, row + (uint64_t)off_flag_name, 8) || !vm_peek(&value, row + (uint64_t)off_flag_value, 8) ||
            (at && !vm_peek_string(name, sizeof name, at))) {
            snprintf(why, HC_MAX_REASON, "flag %llu of this JVM cannot be read (JVMFlag::_name, JVMFlag::_addr)",
                     (unsigned long long)i);
            return false;
        }
        for (int f = 0; at && f < FLAGS; f++) {
            if (flags[f].found || *name != *flags[f].name || strcmp(name, flags[f].name)) continue;
            if (!vm_peek(&flags[f].value, value, flags[f].width)) {
                snprintf(why, HC_MAX_REASON, "the flag %s of this JVM cannot be read (JVMFlag::_addr)", name);
                return false;
            }
            flags[f].found = true;
        }
    }
    return true;
}

static bool know_collector(char *why) {
    if (on(ZGC))
        return fail(
            why, "ZGC is not supported: its barriers leave no evacuated copies to read; use Serial, Parallel or G1");
    // On a machine of one node the JVM has switched it off by now. G1 keeps its regions; Parallel parts eden by
    // node, which nobody has tested.
    if (on(PARALLEL_GC) && on(NUMA))
        return fail(why, "-XX:+UseNUMA splits Parallel's eden by node, which is untested; use G1 or -XX:-UseNUMA");
    if (on(SHENANDOAH_GC)) return fail(why, "Shenandoah is not supported; use Serial, Parallel or G1");
    if (on(EPSILON_GC)) return fail(why, "Epsilon is not supported: it never collects");
    vm.collector = on(SERIAL_GC)     ? HC_COLLECTOR_SERIAL
                   : on(PARALLEL_GC) ? HC_COLLECTOR_PARALLEL
                   : on(G1_GC)       ? HC_COLLECTOR_G1
                                     : 0;
    return vm.collector || fail(why, "the collector is none of Serial, Parallel and G1");
}

// ---- the heap -----------------------------------------------------------------------------------
static uint64_t inside(const char *object, int64_t offset) { return (uint64_t)object + (uint64_t)offset; }

// Follows a pointer, and the three of a space that it leads to: a wrong one is found here and not in the first pause.
static bool space_at(const char *generation, int64_t offset, const char *name, char *why) {
    char *space;
    uint64_t bottom, top, end;
    if (vm_peek_pointer(&space, inside(generation, offset)) && vm_peek(&bottom, inside(space, vm.space_bottom), 8) &&
        vm_peek(&top, inside(space, vm.space_top), 8) && vm_peek(&end, inside(space, vm.space_end), 8))
        return true;
    snprintf(why, HC_MAX_REASON, "%s does not point to a space of the heap in this JVM", name);
    return false;
}

static bool find_generations(char *why) {
    const bool parallel = vm.collector == HC_COLLECTOR_PARALLEL;
    vm.space_bottom = parallel ? off_mutable_bottom : off_contiguous_bottom;
    vm.space_top = parallel ? off_mutable_top : off_contiguous_top;
    vm.space_end = parallel ? off_mutable_end : off_contiguous_end;
    const uint64_t young = parallel ? (uint64_t)static_parallel_young : inside(vm.heap, off_serial_young);
    const uint64_t old = parallel ? (uint64_t)static_parallel_old : inside(vm.heap, off_serial_old);
    if (!vm_peek_pointer(&young_generation, young))
        return fail(why, "the _young_gen of this JVM's heap cannot be read");
    if (!vm_peek_pointer(&old_generation, old)) return fail(why, "the _old_gen of this JVM's heap cannot be read");
    if (parallel)
        return space_at(young_generation, off_parallel_eden, "PSYoungGen::_eden_space", why) &&
               space_at(young_generation, off_parallel_from, "PSYoungGen::_from_space", why) &&
               space_at(young_generation, off_parallel_to, "PSYoungGen::_to_space", why) &&
               space_at(old_generation, off_parallel_old, "PSOldGen::_object_space", why);
    return space_at(young_generation, off_serial_eden, "DefNewGeneration::_eden_space", why) &&
           space_at(young_generation, off_serial_from, "DefNewGeneration::_from_space", why) &&
           space_at(young_generation, off_serial_to, "DefNewGeneration::_to_space", why) &&
           space_at(old_generation, off_tenured_space, "TenuredGeneration::_the_space", why);
}

static bool find_regions(char *why) {
    char *table;
    uint64_t length;
    vm.hr_tag = off_region_type + off_region_tag;
    vm.g1_table = (char **)inside(vm.heap, off_g1_manager + off_g1_regions + off_g1_base);
    vm.g1_len = (uint64_t *)inside(vm.heap, off_g1_manager + off_g1_regions + off_g1_length);
    if (!vm_peek(&vm.region_bytes, (uint64_t)static_g1_grain, 8) || vm.region_bytes < 65536 ||
        vm.region_bytes > vm.heap_bytes || vm.region_bytes & (vm.region_bytes - 1))
        return fail(why, "G1's region size is invalid");
    if (!vm_peek_pointer(&table, (uint64_t)vm.g1_table) || !vm_peek(&length, (uint64_t)vm.g1_len, 8) || !length ||
        length > vm.heap_bytes / 65536)
        return fail(why, "G1's region table is invalid (G1HeapRegionTable::_base, G1HeapRegionTable::_length)");
    return true;
}

static bool find_heap(char *why) {
    const uint64_t max = 1ull << 46;
    uint64_t words, start;
    uint32_t total;
    if (!vm_peek(&start, (uint64_t)static_heap, 8) || !start) return fail(why, "the heap does not exist yet");
    if (!vm_peek_pointer(&vm.heap, (uint64_t)static_heap) ||
        !vm_peek(&start, inside(vm.heap, off_heap_reserved + off_range_start), 8) ||
        !vm_peek(&words, inside(vm.heap, off_heap_reserved + off_range_words), 8) ||
        !vm_peek(&total, inside(vm.heap, off_total_collections), 4))
        return fail(why, "the heap of this JVM cannot be read (Universe::_collectedHeap)");
    if (!start || start % 4096 || !words || words > max / 8 || start + words * 8 < start)
        return fail(why, "the reserved range of the heap is invalid");
    vm.heap_base = (char *)start;
    vm.heap_bytes = words * 8;
    vm.total_collections = (unsigned *)inside(vm.heap, off_total_collections);
    vm.max_heap = flags[MAX_HEAP].found ? flags[MAX_HEAP].value : vm.heap_bytes;
    if (!vm.max_heap || vm.max_heap > max) return fail(why, "MaxHeapSize is invalid");
    return vm.collector == HC_COLLECTOR_G1 ? find_regions(why) : find_generations(why);
}

// vm_spaces_now reads the space objects anew: Serial and Parallel swap from and to.
void vm_spaces_now(void) {
    if (vm.collector == HC_COLLECTOR_PARALLEL) {
        vm.eden = rdp(young_generation + off_parallel_eden);
        vm.from = rdp(young_generation + off_parallel_from);
        vm.to = rdp(young_generation + off_parallel_to);
        vm.old = rdp(old_generation + off_parallel_old);
    } else if (vm.collector == HC_COLLECTOR_SERIAL) {
        vm.eden = rdp(young_generation + off_serial_eden);
        vm.from = rdp(young_generation + off_serial_from);
        vm.to = rdp(young_generation + off_serial_to);
        vm.old = rdp(old_generation + off_tenured_space);
    }
}

// ---- loading ------------------------------------------------------------------------------------
static bool take_fields(int first, int end, int collectors, char *why) {
    for (int i = first; i < end; i++)
        if (fields[i].collectors & (unsigned)collectors && !vm_take_field(&fields[i], why)) return false;
    return true;
}

static bool take_constants(struct vm_constant *c, size_t n, char *why) {
    for (size_t i = 0; i < n; i++)
        if (c[i].collectors & 1u << vm.collector && !vm_take_constant(&c[i], why)) return false;
    return true;
}

static uint64_t size_of(const char *type) {
    for (size_t i = 0; i < COUNT(fields); i++)
        for (int a = 0; a < 2 && fields[i].name[a].type; a++)
            if (!strcmp(fields[i].name[a].type, type)) return fields[i].type_size[a];
    return 0;
}

static bool find_counters(char *why);

// Says what to do about a layout that was refused: it is the JDK that differs, and not this JVM's options.
static bool unknown_layout(char *why) {
    size_t n = strlen(why);
    snprintf(why + n, HC_MAX_REASON - n,
             "; this heapcam does not support this build of JDK %d (it supports JDK 17 and 25)", vm.major);
    return false;
}

bool vm_load(void *addr, bool any_major, char why[HC_MAX_REASON]) {
    guard_without_handler = false;
    vm = (struct vm){.major = vm.major}; // a JVM that was refused may be asked again
    void *jvm = os_library_of(addr);
    if (!jvm) return fail(why, "libjvm was not found in this process");
    const bool copies = vm_peek_begin();
    uint64_t flag_size = 0;
    if (!vm_read_fields(jvm, fields, COUNT(fields), &flag_size, why) || !take_fields(0, FLAG_FIELDS, ALL, why) ||
        !read_flags(flag_size, why))
        return unknown_layout(why);
    if (!know_collector(why)) return false;
    if (!take_fields(FLAG_FIELDS, COUNT(fields), 1 << vm.collector, why) ||
        !vm_read_constants(jvm, "Long", long_constants, COUNT(long_constants), why) ||
        !take_constants(long_constants, COUNT(long_constants), why) ||
        !vm_read_constants(jvm, "Int", int_constants, COUNT(int_constants), why) ||
        !take_constants(int_constants, COUNT(int_constants), why))
        return unknown_layout(why);
    if (!any_major) {
        snprintf(why, HC_MAX_REASON, "JDK %d is untested (tested: 17 and 25); use --allow-untested-jdk to try it",
                 vm.major);
        return false;
    }
    if (flags[PERF_DATA].found && !on(PERF_DATA))
        return fail(why,
                    "-XX:-UsePerfData hides the counters by which the probe tells pauses apart; start without it");
    vm.compressed_oops = on(COMPRESSED_OOPS);
    vm.compressed_class = flags[COMPRESSED_CLASSES].found ? on(COMPRESSED_CLASSES) : true;
    vm.compact_headers = on(COMPACT_HEADERS);
    if (vm.compact_headers && !vm.klass_shift)
        return fail(why, "compact headers, but markWord::klass_shift is not exported");
    vm.align = flags[ALIGNMENT].found ? flags[ALIGNMENT].value : 8;
    if (vm.align < 8 || vm.align > 256 || vm.align & (vm.align - 1))
        return fail(why, "ObjectAlignmentInBytes is invalid");
    if (!find_heap(why)) return false;
    // While allocation is sampled, _end is where the next sample is due; the buffer's real end is _allocation_end,
    // which no table names.
    // It lies between _end and _desired_size; any other distance is a layout that nobody has looked at.
    if (off_tlab_desired != vm.tlab_end + 16)
        return fail(why, "the layout of ThreadLocalAllocBuffer is unknown");
    vm.tlab_end += 8;
    vm.cld_head = (char **)static_loaders;
    vm.narrow_klass_base = (char **)static_klass_base;
    vm.narrow_klass_shift = (int *)static_klass_shift;
    vm.mirror_size_offset = (int *)static_mirror_size;
    vm.thread_list = (char **)static_threads;
    // _gc_id is the next field on 17 to 25; vm_gc_number looks at what it finds there.
    vm.thread_gc = off_processed_thread > 0 && (uint64_t)off_processed_thread + 12 <= size_of("NamedThread")
                       ? off_processed_thread + 8
                       : 0;
    vm.perf_start = (char **)static_perf_start;
    vm.perf_top = (char **)static_perf_top;
    if (!find_counters(why)) return false;
    // Last: as long as it is false the guard may swap handlers, which is all that is left where safe_read is refused.
    guard_without_handler = vm.check_jni = on(CHECK_JNI);
    if (vm.check_jni && !copies)
        return fail(why, "-Xcheck:jni forbids the probe's signal handler, and seccomp forbids process_vm_readv in "
                         "its place");
    return true;
}

// ---- counters ----------------------------------------------------------------------------------
static bool find_counters(char *why) {
    struct perf_counter c[] = {
        {"sun.gc.collector.0.invocations", 'J', NULL},
        {"sun.gc.collector.1.invocations", 'J', NULL},
        {"sun.gc.collector.2.invocations", 'J', NULL},
        {"sun.gc.cause", 'B', NULL},
        {"sun.gc.lastCause", 'B', NULL},
    };
    if (!perf_find((uint64_t)vm.perf_start, (uint64_t)vm.perf_top, c, COUNT(c)) || !c[0].at || !c[1].at || !c[3].at)
        return fail(why, "the collection counters (sun.gc.collector.*) were not found");
    // _end of a TLAB lies before its hard end by the reserve: 2 words on 17, a variable on 25, or the prefetch
    // reserve if that is larger.
    uint64_t lab = 2;
    uint32_t prefetch;
    if ((static_lab_reserve && !vm_peek(&lab, (uint64_t)static_lab_reserve, 8)) || lab > 64 ||
        !vm_peek(&prefetch, (uint64_t)static_prefetch_reserve, 4) || prefetch > 4096)
        return fail(why, "the reserve behind a TLAB is invalid");
    vm.tlab_reserve = 8 * (lab > prefetch ? lab : prefetch);
    for (int i = 0; i < 3; i++) vm.perf_inv[i] = (int64_t *)c[i].at;
    vm.perf_cause = c[3].at;
    vm.perf_last_cause = c[4].at;
    return true;
}

bool vm_late(char why[HC_MAX_REASON]) {
    if (vm.perf_inv[0]) return true;
    return fail(why, "the collection counters (sun.gc.collector.*) were not found");
}

static _Atomic int thread_key = -1; // the control thread finds it, the VM thread uses it

void vm_know_thread(void *thread) {
    for (unsigned k = 0; thread && k < OS_KEYS; k++)
        if (os_thread_value(k) == thread) {
            // a number alone: nothing is published with it
            atomic_store_explicit(&thread_key, (int)k, memory_order_relaxed);
            return;
        }
}

// Each collection takes a number, and so does each concurrent cycle of G1, which no counter tells. So what the
// thread itself says is read there, and
// believed if it can be true: a cycle begins with a collection of its own.
uint64_t vm_gc_number(bool concurrent) {
    static uint64_t cycles;
    uint64_t young = rd64(vm.perf_inv[0]), all = young + rd64(vm.perf_inv[1]);
    if (all == 0) return 0;
    if (vm.collector != HC_COLLECTOR_G1) return all - 1;
    const int key = atomic_load_explicit(&thread_key, memory_order_relaxed);
    char *t = key >= 0 && vm.thread_gc ? os_thread_value((unsigned)key) : NULL;
    uint64_t id = t ? rd32(t + vm.thread_gc) : UINT32_MAX;
    if (concurrent) return id < all + young ? id : UINT64_MAX;
    if (id >= all - 1 && id < all + young) cycles = id - (all - 1);
    return all - 1 + cycles;
}
