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
#include "vmrows.h"
#include "vmtable.h"

struct vm vm;

// The young and the old generation: of Serial or of Parallel.
static char *young_generation, *old_generation;
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
    SHENANDOAH_MODE,
    CHECK_JNI,
    ALIGNMENT,
    MAX_HEAP, MAX_METASPACE,
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
    [SHENANDOAH_MODE] = {.name = "ShenandoahGCMode", .width = 8}, // address of a text
    [CHECK_JNI] = {.name = "CheckJNICalls", .width = 1},
    [ALIGNMENT] = {.name = "ObjectAlignmentInBytes", .width = 4}, // 8 bytes on 17, 4 later
    [MAX_HEAP] = {.name = "MaxHeapSize", .width = 8},
    [MAX_METASPACE] = {.name = "MaxMetaspaceSize", .width = 8},
};

static bool on(enum flag_name f) { return flags[f].found && flags[f].value; }

static bool read_flags(uint64_t stride, char *why) {
    enum { MAX_FLAGS = 1 << 14, MAX_FLAG_NAME = 256 };
    char name[MAX_FLAG_NAME], *array;
    uint64_t n;
    for (int f = 0; f < FLAGS; f++) flags[f].found = false, flags[f].value = 0;
    const uint64_t name_at = (uint64_t)vm_offset(SLOT_FLAG_NAME), value_at = (uint64_t)vm_offset(SLOT_FLAG_VALUE);
    if (stride < 16 || stride > 256 || stride % 8 || name_at > stride - 8 || value_at > stride - 8)
        return fail(why, "this JVM does not export the size of JVMFlag");
    if (!vm_peek_pointer(&array, vm_address(SLOT_FLAGS)) || !vm_peek(&n, vm_address(SLOT_FLAG_COUNT), 8) || !n ||
        n > MAX_FLAGS)
        return fail(why, "the flags of this JVM cannot be read (JVMFlag::flags, JVMFlag::numFlags)");
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = (uint64_t)array + i * stride, at, value;
        if (!vm_peek(&at, row + name_at, 8) || !vm_peek(&value, row + value_at, 8) ||
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
    // On a machine of one node the JVM has switched it off by now. G1 keeps its regions; Parallel parts eden by
    // node, which nobody has tested.
    if (on(PARALLEL_GC) && on(NUMA))
        return fail(why, "-XX:+UseNUMA splits Parallel's eden by node, which is untested; use G1 or -XX:-UseNUMA");
    char mode[32];
    if (on(SHENANDOAH_GC) && on(SHENANDOAH_MODE) &&
        (!vm_peek_string(mode, sizeof mode, flags[SHENANDOAH_MODE].value) || !strcmp(mode, "generational")))
        return fail(why, "Shenandoah with generations is untested; start without -XX:ShenandoahGCMode=generational");
    if (vm.major < 17 && (on(ZGC) || on(SHENANDOAH_GC) || on(EPSILON_GC)))
        return fail(why, "ZGC, Shenandoah and Epsilon are recorded from JDK 17 on; use Serial, Parallel or G1");
    vm.collector = on(SERIAL_GC)       ? HC_COLLECTOR_SERIAL
                   : on(PARALLEL_GC)   ? HC_COLLECTOR_PARALLEL
                   : on(G1_GC)         ? HC_COLLECTOR_G1
                   : on(ZGC)           ? HC_COLLECTOR_ZGC
                   : on(SHENANDOAH_GC) ? HC_COLLECTOR_SHENANDOAH
                   : on(EPSILON_GC)    ? HC_COLLECTOR_EPSILON
                                       : 0;
    return vm.collector || fail(why, "the collector is none of Serial, Parallel, G1, ZGC, Shenandoah and Epsilon");
}

// ---- the heap -----------------------------------------------------------------------------------
static uint64_t inside(const char *object, int64_t offset) { return (uint64_t)object + (uint64_t)offset; }

// Where a field of the heap is, be it static or the instance's.
static uint64_t field_of_heap(enum vm_slot s) { return vm_address(s) ? vm_address(s) : inside(vm.heap, vm_offset(s)); }

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
    vm.space_bottom = parallel ? vm_offset(SLOT_MUTABLE_BOTTOM) : vm_offset(SLOT_CONTIGUOUS_BOTTOM);
    vm.space_top = parallel ? vm_offset(SLOT_MUTABLE_TOP) : vm_offset(SLOT_CONTIGUOUS_TOP);
    vm.space_end = parallel ? vm_offset(SLOT_MUTABLE_END) : vm_offset(SLOT_CONTIGUOUS_END);
    const uint64_t young = parallel ? field_of_heap(SLOT_PARALLEL_YOUNG) : field_of_heap(SLOT_SERIAL_YOUNG);
    const uint64_t old = parallel ? field_of_heap(SLOT_PARALLEL_OLD) : field_of_heap(SLOT_SERIAL_OLD);
    if (!vm_peek_pointer(&young_generation, young))
        return fail(why, "the _young_gen of this JVM's heap cannot be read");
    if (!vm_peek_pointer(&old_generation, old)) return fail(why, "the _old_gen of this JVM's heap cannot be read");
    if (parallel)
        return space_at(young_generation, vm_offset(SLOT_PARALLEL_EDEN), "PSYoungGen::_eden_space", why) &&
               space_at(young_generation, vm_offset(SLOT_PARALLEL_FROM), "PSYoungGen::_from_space", why) &&
               space_at(young_generation, vm_offset(SLOT_PARALLEL_TO), "PSYoungGen::_to_space", why) &&
               space_at(old_generation, vm_offset(SLOT_PARALLEL_OLD_SPACE), "PSOldGen::_object_space", why);
    return space_at(young_generation, vm_offset(SLOT_SERIAL_EDEN), "DefNewGeneration::_eden_space", why) &&
           space_at(young_generation, vm_offset(SLOT_SERIAL_FROM), "DefNewGeneration::_from_space", why) &&
           space_at(young_generation, vm_offset(SLOT_SERIAL_TO), "DefNewGeneration::_to_space", why) &&
           space_at(old_generation, vm_offset(SLOT_TENURED_SPACE), "TenuredGeneration::_the_space", why);
}

static bool find_regions(char *why) {
    char *table;
    uint64_t length;
    const int64_t regions = vm_offset(SLOT_G1_MANAGER) + vm_offset(SLOT_G1_REGIONS);
    vm.g1_table = (char **)inside(vm.heap, regions + vm_offset(SLOT_G1_BASE));
    vm.g1_len = (uint64_t *)inside(vm.heap, regions + vm_offset(SLOT_G1_LENGTH));
    if (!vm_peek(&vm.region_bytes, vm_address(SLOT_REGION_BYTES), 8) || vm.region_bytes < 65536 ||
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
    if (!vm_peek(&start, vm_address(SLOT_HEAP), 8) || !start) return fail(why, "the heap does not exist yet");
    if (!vm_peek_pointer(&vm.heap, vm_address(SLOT_HEAP)) ||
        !vm_peek(&start, inside(vm.heap, vm_offset(SLOT_HEAP_RESERVED) + vm_offset(SLOT_RANGE_START)), 8) ||
        !vm_peek(&words, inside(vm.heap, vm_offset(SLOT_HEAP_RESERVED) + vm_offset(SLOT_RANGE_WORDS)), 8) ||
        !vm_peek(&total, inside(vm.heap, vm_offset(SLOT_TOTAL_COLLECTIONS)), 4))
        return fail(why, "the heap of this JVM cannot be read (Universe::_collectedHeap)");
    if (!start || start % 4096 || !words || words > max / 8 || start + words * 8 < start)
        return fail(why, "the reserved range of the heap is invalid");
    vm.heap_base = (char *)start;
    vm.heap_bytes = words * 8;
    vm.total_collections = (unsigned *)inside(vm.heap, vm_offset(SLOT_TOTAL_COLLECTIONS));
    vm.max_heap = flags[MAX_HEAP].found ? flags[MAX_HEAP].value : vm.heap_bytes;
    vm.max_metaspace = flags[MAX_METASPACE].found ? flags[MAX_METASPACE].value : UINT64_MAX;
    if (!vm.max_heap || vm.max_heap > max) return fail(why, "MaxHeapSize is invalid");
    return vm.collector == HC_COLLECTOR_G1 ? find_regions(why) : find_generations(why);
}

// vm_spaces_now reads the space objects anew: Serial and Parallel swap from and to.
void vm_spaces_now(void) {
    if (vm.collector == HC_COLLECTOR_PARALLEL) {
        vm.eden = rdp(young_generation + vm_offset(SLOT_PARALLEL_EDEN));
        vm.from = rdp(young_generation + vm_offset(SLOT_PARALLEL_FROM));
        vm.to = rdp(young_generation + vm_offset(SLOT_PARALLEL_TO));
        vm.old = rdp(old_generation + vm_offset(SLOT_PARALLEL_OLD_SPACE));
    } else if (vm.collector == HC_COLLECTOR_SERIAL) {
        vm.eden = rdp(young_generation + vm_offset(SLOT_SERIAL_EDEN));
        vm.from = rdp(young_generation + vm_offset(SLOT_SERIAL_FROM));
        vm.to = rdp(young_generation + vm_offset(SLOT_SERIAL_TO));
        vm.old = rdp(old_generation + vm_offset(SLOT_TENURED_SPACE));
    }
}

// ---- loading ------------------------------------------------------------------------------------
static bool find_counters(char *why);
static bool find_cycle_counters(char *why);

// Says what to do about a layout that was refused: it is the JDK that differs, and not this JVM's options.
static bool unknown_layout(char *why) {
    char majors[64];
    size_t n = strlen(why);
    snprintf(why + n, HC_MAX_REASON - n, "; this heapcam does not support this build of JDK %d (it supports JDK %s)",
             vm.major, vm_tested_majors(majors, sizeof majors));
    return false;
}

// What the other files read at each object, class or thread.
static void set_offsets(void) {
    vm.hr_bottom = vm_offset(SLOT_REGION_BOTTOM), vm.hr_top = vm_offset(SLOT_REGION_TOP);
    vm.hr_end = vm_offset(SLOT_REGION_END), vm.hr_tag = vm_offset(SLOT_REGION_TYPE) + vm_offset(SLOT_REGION_TAG);
    vm.g1_eden = vm_value(VALUE_TAG_EDEN), vm.g1_surv = vm_value(VALUE_TAG_SURVIVOR);
    vm.g1_free = vm_value(VALUE_TAG_FREE), vm.g1_archive_mask = vm_value(VALUE_MASK_ARCHIVE);
    vm.g1_hum_start = vm_value(VALUE_TAG_HUMONGOUS), vm.g1_hum_cont = vm_value(VALUE_TAG_CONTINUES);
    vm.cld_head = (char **)vm_address(SLOT_LOADERS);
    vm.cld_next = vm_offset(SLOT_LOADER_NEXT), vm.cld_klasses = vm_offset(SLOT_LOADER_CLASSES);
    vm.cld_loader = vm_offset(SLOT_LOADER_OBJECT);
    vm.k_next = vm_offset(SLOT_CLASS_NEXT), vm.k_layout = vm_offset(SLOT_CLASS_LAYOUT);
    vm.k_name = vm_offset(SLOT_CLASS_NAME), vm.k_cld = vm_offset(SLOT_CLASS_LOADER);
    vm.sym_len = vm_offset(SLOT_SYMBOL_LENGTH), vm.sym_body = vm_offset(SLOT_SYMBOL_BODY);
    vm.narrow_klass_base = (char **)vm_address(SLOT_CLASS_BASE);
    vm.narrow_klass_shift = (int *)vm_address(SLOT_CLASS_SHIFT);
    vm.klass_shift = vm_value(VALUE_MARK_CLASS);
    vm.hash_shift = vm_value(VALUE_MARK_HASH);
    vm.mirror_size_offset = (int *)vm_address(SLOT_MIRROR_SIZE);
    vm.perf_start = (char **)vm_address(SLOT_PERF_START);
    vm.perf_top = (char **)vm_address(SLOT_PERF_TOP);
}

// _gc_id is the next field on 11 to 28; vm_gc_number looks at what it finds there.
static void find_gc_id(void) {
    const int64_t processed = vm_offset(SLOT_PROCESSED_THREAD);
    vm.thread_gc = processed > 0 && (uint64_t)processed + 12 <= vm_size_of("NamedThread") ? processed + 8 : 0;
}

static bool find_threads(char *why) {
    vm.thread_list = (char **)vm_address(SLOT_THREADS);
    vm.tl_length = vm_offset(SLOT_THREAD_COUNT), vm.tl_threads = vm_offset(SLOT_THREAD_ARRAY);
    vm.first_thread = (char **)vm_address(SLOT_FIRST_THREAD);
    vm.thread_next = vm_offset(SLOT_NEXT_THREAD);
    if (!vm_has_thread_list() && (!vm.first_thread || vm.thread_next < 0))
        return fail(why, "this JVM exports neither ThreadsSMRSupport::_java_thread_list nor Threads::_thread_list");
    if (vm_has_thread_list() && (vm.tl_length < 0 || vm.tl_threads < 0))
        return fail(why, "this JVM does not export ThreadsList::_length and ThreadsList::_threads");
    vm.thread_tlab = vm_offset(SLOT_THREAD_TLAB), vm.tlab_top = vm_offset(SLOT_TLAB_TOP);
    // While allocation is sampled, _end is where the next sample is due; the buffer's real end is _allocation_end,
    // which no table names.
    // It lies between _end and _desired_size; any other distance is a layout that nobody has looked at.
    if (vm_offset(SLOT_TLAB_DESIRED) != vm_offset(SLOT_TLAB_END) + 16)
        return fail(why, "the layout of ThreadLocalAllocBuffer is unknown");
    vm.tlab_end = vm_offset(SLOT_TLAB_END) + 8;
    find_gc_id();
    return true;
}

bool vm_load(void *addr, bool any_major, char why[HC_MAX_REASON]) {
    guard_without_handler = false;
    vm = (struct vm){.major = vm.major}; // a JVM that was refused may be asked again
    char majors[64];
    if (vm.major < vm_oldest()) {
        snprintf(why, HC_MAX_REASON, "JDK %d is too old: heapcam records JDK %d and later", vm.major, vm_oldest());
        return false;
    }
    void *jvm = os_library_of(addr);
    if (!jvm) return fail(why, "libjvm was not found in this process");
    const bool copies = vm_peek_begin();
    uint64_t flag_size = 0;
    if (!vm_rows_read(jvm, vm.major, &flag_size, why) || !vm_rows_take_first(why) || !read_flags(flag_size, why))
        return unknown_layout(why);
    if (!know_collector(why)) return false;
    if (!vm_rows_take(vm.collector, why) || (!vm_has_no_addresses() && !find_threads(why))) return unknown_layout(why);
    if (!any_major) {
        snprintf(why, HC_MAX_REASON, "JDK %d is untested (tested: %s); use --allow-untested-jdk to try it", vm.major,
                 vm_tested_majors(majors, sizeof majors));
        return false;
    }
    set_offsets();
    if (flags[PERF_DATA].found && !on(PERF_DATA))
        return fail(why,
                    "-XX:-UsePerfData hides the counters by which the probe tells pauses apart; start without it");
    vm.compressed_oops = on(COMPRESSED_OOPS);
    vm.compressed_class = flags[COMPRESSED_CLASSES].found ? on(COMPRESSED_CLASSES) : true;
    vm.compact_headers = on(COMPACT_HEADERS);
    if (vm.compact_headers && !vm.klass_shift && !vm_has_no_addresses())
        return fail(why, "compact headers, but markWord::klass_shift is not exported");
    vm.align = flags[ALIGNMENT].found ? flags[ALIGNMENT].value : 8;
    if (vm.align < 8 || vm.align > 256 || vm.align & (vm.align - 1))
        return fail(why, "ObjectAlignmentInBytes is invalid");
    if (vm_has_no_addresses() ? !find_cycle_counters(why) : !find_heap(why) || !find_counters(why)) return false;
    // Last: as long as it is false the guard may swap handlers, which is all that is left where safe_read is refused.
    guard_without_handler = vm.check_jni = on(CHECK_JNI);
    if (vm.check_jni && !copies)
        return fail(why, "-Xcheck:jni forbids the probe's signal handler, and neither process_vm_readv nor a file "
                         "in /dev/shm copies memory in its place (seccomp, or no descriptor is left)");
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
        {"sun.gc.generation.0.space.0.used", 'J', NULL},
        {"sun.gc.generation.0.space.1.used", 'J', NULL},
        {"sun.gc.generation.0.space.2.used", 'J', NULL},
        {"sun.gc.generation.1.space.0.used", 'J', NULL},
        {"java.cls.unloadedClasses", 'J', NULL},
        {"java.cls.sharedUnloadedClasses", 'J', NULL},
    };
    if (!perf_find((uint64_t)vm.perf_start, (uint64_t)vm.perf_top, c, COUNT(c)) || !c[0].at || !c[1].at || !c[3].at)
        return fail(why, "the collection counters (sun.gc.collector.*) were not found");
    // _end of a TLAB lies before its hard end by the reserve: 2 words up to 21, a variable from 25 on, or the prefetch
    // reserve if that is larger, which 27 no longer has.
    uint64_t lab = 2;
    uint32_t prefetch = 0;
    const uint64_t lab_at = vm_address(SLOT_TLAB_RESERVE), prefetch_at = vm_address(SLOT_TLAB_PREFETCH);
    if ((lab_at && !vm_peek(&lab, lab_at, 8)) || lab > 64 || (prefetch_at && !vm_peek(&prefetch, prefetch_at, 4)) ||
        prefetch > 4096)
        return fail(why, "the reserve behind a TLAB is invalid");
    vm.tlab_reserve = 8 * (lab > prefetch ? lab : prefetch);
    for (int i = 0; i < 3; i++) vm.perf_inv[i] = (int64_t *)c[i].at;
    vm.perf_cause = c[3].at;
    vm.perf_last_cause = c[4].at;
    for (int i = 0; i < 4; i++) vm.perf_left[i] = vm_has_regions() ? NULL : (int64_t *)c[5 + i].at;
    for (int i = 0; i < 2; i++) vm.perf_unloaded[i] = (int64_t *)c[9 + i].at;
    return true;
}

// What is read of a JVM whose objects have no address: its own counters alone. Which there are differs: Epsilon has no
// collection, ZGC without generations has no young one.
static bool find_cycle_counters(char *why) {
    struct perf_counter c[] = {
        {"sun.gc.collector.0.invocations", 'J', NULL},    {"sun.gc.generation.0.space.0.used", 'J', NULL},
        {"sun.gc.generation.1.space.0.used", 'J', NULL}, {"sun.gc.cause", 'B', NULL},
        {"sun.gc.collector.1.invocations", 'J', NULL},
    };
    if (!perf_find((uint64_t)vm.perf_start, (uint64_t)vm.perf_top, c, COUNT(c)) || !c[3].at)
        return fail(why, "the counter of the collections' cause (sun.gc.cause) was not found");
    find_gc_id();
    if (!vm.thread_gc) return fail(why, "the number of a collection cannot be read (NamedThread::_processed_thread)");
    vm.perf_inv[0] = vm.collector == HC_COLLECTOR_ZGC && !c[4].at ? (int64_t *)c[0].at : NULL;
    vm.perf_used[0] = (int64_t *)c[1].at;
    vm.perf_used[1] = (int64_t *)c[2].at;
    vm.perf_cause = c[3].at;
    vm.max_heap = flags[MAX_HEAP].found ? flags[MAX_HEAP].value : 0;
    if (!vm.max_heap || vm.max_heap > 1ull << 46) return fail(why, "MaxHeapSize is invalid");
    return true;
}

bool vm_late(char why[HC_MAX_REASON]) {
    if (vm.perf_inv[0]) return true;
    return fail(why, "the collection counters (sun.gc.collector.*) were not found");
}

static _Atomic int thread_key = -1; // the control thread finds it, others use it

void vm_know_thread(void *thread) {
    for (unsigned k = 0; thread && k < OS_KEYS; k++)
        if (os_thread_value(k) == thread) {
            // a number alone: nothing is published with it
            atomic_store_explicit(&thread_key, (int)k, memory_order_relaxed);
            return;
        }
}

void *vm_this_thread(void) {
    const int key = atomic_load_explicit(&thread_key, memory_order_relaxed);
    return key >= 0 ? os_thread_value((unsigned)key) : NULL;
}

// Each collection takes a number, and so does each concurrent cycle of G1, which no counter shows. So what the
// thread itself says is read there, and
// believed if it can be true: a cycle begins with a collection of its own.
uint64_t vm_gc_number(bool concurrent) {
    static uint64_t cycles;
    uint64_t young = rd64(vm.perf_inv[0]), all = young + rd64(vm.perf_inv[1]);
    if (all == 0) return 0;
    if (vm.collector != HC_COLLECTOR_G1) return all - 1;
    char *t = vm.thread_gc ? vm_this_thread() : NULL;
    uint64_t id = t ? rd32(t + vm.thread_gc) : UINT32_MAX;
    if (concurrent) return id < all + young ? id : UINT64_MAX;
    if (id >= all - 1 && id < all + young) cycles = id - (all - 1);
    return all - 1 + cycles;
}

uint32_t vm_gc_of_thread(void) {
    char *t = vm.thread_gc ? vm_this_thread() : NULL;
    return t ? rd32(t + vm.thread_gc) : UINT32_MAX;
}
