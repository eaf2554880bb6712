//go:build ignore

// vm.c: reads the tables of libjvm into struct vm.
#define _GNU_SOURCE
#include "vm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heapcam_abi.h"
#include "os.h"

struct vm vm;

static void *jvm;

static uint64_t u64sym(const char *name) {
    uint64_t *p = os_symbol(jvm, name);
    return p ? *p : 0;
}

// One of the four tables: base pointer, stride, offsets of its columns.
struct table {
    char *base;
    uint64_t stride, c[5];
};

static bool table_open(struct table *t, const char *name, const char *entry, const char *const cols[], char *why) {
    char s[128];
    char **b = os_symbol(jvm, name);
    if (!b || !*b) {
        snprintf(why, HC_MAX_REASON, "libjvm does not export %s", name);
        return false;
    }
    t->base = *b;
    snprintf(s, sizeof s, "%sArrayStride", entry);
    t->stride = u64sym(s);
    for (int i = 0; cols[i]; i++) {
        snprintf(s, sizeof s, "%s%sOffset", entry, cols[i]);
        if (!os_symbol(jvm, s)) {
            snprintf(why, HC_MAX_REASON, "libjvm does not export %s", s);
            return false;
        }
        t->c[i] = u64sym(s);
    }
    if (t->stride < 16 || t->stride > 256) {
        snprintf(why, HC_MAX_REASON, "%s has a stride of %llu bytes", name, (unsigned long long)t->stride);
        return false;
    }
    return true;
}

// wanted is a field that the probe needs: where it may be found (two names: HotSpot renames), where its offset or address goes.
// A field list: one row a field, alternatives are rows with the same destination.
enum need { MUST, MAY };
struct wanted {
    const char *type, *field;
    void *to;
    enum need need;
};

static int64_t off_reserved = -1, off_mr_start = -1, off_mr_size = -1, off_total = -1;
static char *st_heap, *st_flags, *st_numflags, *st_young, *st_oldgen, *st_grain;
static int64_t off_ps_eden = -1, off_ps_from = -1, off_ps_to = -1, off_ps_old = -1;
static int64_t off_ms_bottom = -1, off_ms_top = -1, off_ms_end = -1;
static int64_t off_gc_young = -1, off_gc_old = -1, off_dn_eden = -1, off_dn_from = -1, off_dn_to = -1, off_tg_space = -1;
static int64_t off_cs_bottom = -1, off_cs_top = -1, off_cs_end = -1;
static int64_t off_hrm = -1, off_hrm_regions = -1, off_tab_base = -1, off_tab_len = -1, off_hr_type = -1, off_type_tag = -1;
static int64_t off_tlab_desired = -1;
static int64_t off_processed = -1;
static int64_t off_f_name = -1, off_f_addr = -1;
static char *st_lab_reserve, *st_prefetch, *st_mirror, *st_nkbase, *st_nkshift, *st_cldhead, *st_threads, *st_perf, *st_perf_top;
static char *ps_young_gen, *ps_old_gen, *g_young, *g_old;

static struct wanted fields[] = {
    {"Universe", "_collectedHeap", &st_heap, MUST},
    {"CollectedHeap", "_reserved", &off_reserved, MUST},
    {"CollectedHeap", "_total_collections", &off_total, MUST},
    {"CollectedHeap", "_lab_alignment_reserve", &st_lab_reserve, MAY},
    {"MemRegion", "_start", &off_mr_start, MUST},
    {"MemRegion", "_word_size", &off_mr_size, MUST},
    {"JVMFlag", "flags", &st_flags, MUST},
    {"JVMFlag", "numFlags", &st_numflags, MUST},
    {"JVMFlag", "_name", &off_f_name, MUST},
    {"JVMFlag", "_addr", &off_f_addr, MUST},
    {"ParallelScavengeHeap", "_young_gen", &st_young, MAY},
    {"ParallelScavengeHeap", "_old_gen", &st_oldgen, MAY},
    {"PSYoungGen", "_eden_space", &off_ps_eden, MAY},
    {"PSYoungGen", "_from_space", &off_ps_from, MAY},
    {"PSYoungGen", "_to_space", &off_ps_to, MAY},
    {"PSOldGen", "_object_space", &off_ps_old, MAY},
    {"MutableSpace", "_bottom", &off_ms_bottom, MAY},
    {"MutableSpace", "_top", &off_ms_top, MAY},
    {"MutableSpace", "_end", &off_ms_end, MAY},
    {"GenCollectedHeap", "_young_gen", &off_gc_young, MAY},
    {"SerialHeap", "_young_gen", &off_gc_young, MAY},
    {"GenCollectedHeap", "_old_gen", &off_gc_old, MAY},
    {"SerialHeap", "_old_gen", &off_gc_old, MAY},
    {"DefNewGeneration", "_eden_space", &off_dn_eden, MAY},
    {"DefNewGeneration", "_from_space", &off_dn_from, MAY},
    {"DefNewGeneration", "_to_space", &off_dn_to, MAY},
    {"TenuredGeneration", "_the_space", &off_tg_space, MAY},
    {"Space", "_bottom", &off_cs_bottom, MAY},
    {"ContiguousSpace", "_bottom", &off_cs_bottom, MAY},
    {"Space", "_end", &off_cs_end, MAY},
    {"ContiguousSpace", "_end", &off_cs_end, MAY},
    {"ContiguousSpace", "_top", &off_cs_top, MAY},
    {"G1CollectedHeap", "_hrm", &off_hrm, MAY},
    {"HeapRegionManager", "_regions", &off_hrm_regions, MAY},
    {"G1HeapRegionManager", "_regions", &off_hrm_regions, MAY},
    {"G1HeapRegionTable", "_base", &off_tab_base, MAY},
    {"G1HeapRegionTable", "_length", &off_tab_len, MAY},
    {"HeapRegion", "_bottom", &vm.hr_bottom, MAY},
    {"G1HeapRegion", "_bottom", &vm.hr_bottom, MAY},
    {"HeapRegion", "_top", &vm.hr_top, MAY},
    {"G1HeapRegion", "_top", &vm.hr_top, MAY},
    {"HeapRegion", "_end", &vm.hr_end, MAY},
    {"G1HeapRegion", "_end", &vm.hr_end, MAY},
    {"HeapRegion", "_type", &off_hr_type, MAY},
    {"G1HeapRegion", "_type", &off_hr_type, MAY},
    {"HeapRegionType", "_tag", &off_type_tag, MAY},
    {"G1HeapRegionType", "_tag", &off_type_tag, MAY},
    {"HeapRegion", "GrainBytes", &st_grain, MAY},
    {"G1HeapRegion", "GrainBytes", &st_grain, MAY},
    {"ClassLoaderDataGraph", "_head", &st_cldhead, MUST},
    {"ClassLoaderData", "_next", &vm.cld_next, MUST},
    {"ClassLoaderData", "_klasses", &vm.cld_klasses, MUST},
    {"ClassLoaderData", "_class_loader", &vm.cld_loader, MUST},
    {"Klass", "_next_link", &vm.k_next, MUST},
    {"Klass", "_layout_helper", &vm.k_layout, MUST},
    {"Klass", "_name", &vm.k_name, MUST},
    {"Klass", "_class_loader_data", &vm.k_cld, MUST},
    {"Symbol", "_length", &vm.sym_len, MUST},
    {"Symbol", "_body", &vm.sym_body, MUST},
    {"Symbol", "_body[0]", &vm.sym_body, MUST},
    {"CompressedKlassPointers", "_narrow_klass._base", &st_nkbase, MUST},
    {"CompressedKlassPointers", "_base", &st_nkbase, MUST},
    {"CompressedKlassPointers", "_narrow_klass._shift", &st_nkshift, MUST},
    {"CompressedKlassPointers", "_shift", &st_nkshift, MUST},
    {"java_lang_Class", "_oop_size_offset", &st_mirror, MUST},
    {"ThreadsSMRSupport", "_java_thread_list", &st_threads, MUST},
    {"ThreadsList", "_length", &vm.tl_length, MUST},
    {"ThreadsList", "_threads", &vm.tl_threads, MUST},
    {"Thread", "_tlab", &vm.thread_tlab, MUST},
    {"NamedThread", "_processed_thread", &off_processed, MAY},
    {"ThreadLocalAllocBuffer", "_top", &vm.tlab_top, MUST},
    {"ThreadLocalAllocBuffer", "_end", &vm.tlab_end, MUST},
    {"ThreadLocalAllocBuffer", "_desired_size", &off_tlab_desired, MUST},
    {"ThreadLocalAllocBuffer", "_reserve_for_allocation_prefetch", &st_prefetch, MUST},
    {"PerfMemory", "_start", &st_perf, MUST},
    {"PerfMemory", "_top", &st_perf_top, MUST},
};
enum { NFIELDS = sizeof fields / sizeof *fields };

static char *flag_addr(const char *name) {
    char *f = rdp(st_flags);
    uint64_t n = rd64(st_numflags);
    // The stride of the array is not exported as such; the type table has the size of JVMFlag.
    extern uint64_t vm_flag_size;
    for (uint64_t i = 0; i < n && i < 10000; i++) {
        char *nm = rdp(f + i * vm_flag_size + off_f_name);
        if (nm && strcmp(nm, name) == 0) return rdp(f + i * vm_flag_size + off_f_addr);
    }
    return NULL;
}
uint64_t vm_flag_size;

static bool flag_on(const char *name) {
    char *p = flag_addr(name);
    return p && *p;
}

static bool fail(char *why, const char *what) {
    snprintf(why, HC_MAX_REASON, "%s", what);
    return false;
}

static bool load_fields(char *why) {
    static const char *const cols[] = {"TypeName", "FieldName", "IsStatic", "Offset", "Address", NULL};
    struct table t;
    if (!table_open(&t, "gHotSpotVMStructs", "gHotSpotVMStructEntry", cols, why)) return false;
    bool got[NFIELDS] = {0};
    vm.hr_bottom = vm.hr_top = vm.hr_end = -1;
    for (char *e = t.base;; e += t.stride) {
        char *ty = rdp(e + t.c[0]), *fi = rdp(e + t.c[1]);
        if (!ty || !fi) break;
        for (int i = 0; i < NFIELDS; i++) {
            if (strcmp(ty, fields[i].type) || strcmp(fi, fields[i].field)) continue;
            if (*(int *)(e + t.c[2]))
                *(char **)fields[i].to = rdp(e + t.c[4]);
            else
                *(int64_t *)fields[i].to = (int64_t)rd64(e + t.c[3]);
            got[i] = true;
        }
    }
    for (int i = 0; i < NFIELDS; i++) {
        if (fields[i].need != MUST || got[i]) continue;
        bool other = false;
        for (int j = 0; j < NFIELDS; j++) other |= got[j] && fields[j].to == fields[i].to;
        if (!other) {
            snprintf(why, HC_MAX_REASON, "this JVM does not export the field %s::%s", fields[i].type, fields[i].field);
            return false;
        }
    }
    return true;
}

static bool int_const(struct table *t, const char *name, const char *alt, int *to) {
    for (char *e = t->base;; e += t->stride) {
        char *n = rdp(e + t->c[0]);
        if (!n) return false;
        if (!strcmp(n, name) || (alt && !strcmp(n, alt))) {
            *to = (int)rd32(e + t->c[1]);
            return true;
        }
    }
}

static bool load_consts(char *why) {
    static const char *const cols[] = {"Name", "Value", NULL};
    static const char *const tcols[] = {"TypeName", "Size", NULL};
    struct table t;
    if (!table_open(&t, "gHotSpotVMTypes", "gHotSpotVMTypeEntry", tcols, why)) return false;
    for (char *e = t.base; rdp(e + t.c[0]); e += t.stride)
        if (!strcmp(rdp(e + t.c[0]), "JVMFlag")) vm_flag_size = rd64(e + t.c[1]);
    if (vm_flag_size < 16 || vm_flag_size > 256) return fail(why, "this JVM does not export the size of JVMFlag");
    if (!table_open(&t, "gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntry", cols, why)) return false;
    vm.klass_shift = 0;
    for (char *e = t.base; rdp(e + t.c[0]); e += t.stride) {
        const char *n = rdp(e + t.c[0]);
        int64_t v = (int64_t)rd64(e + t.c[1]);
        if (!strcmp(n, "markWord::klass_shift")) vm.klass_shift = (int)v;
        if (!strcmp(n, "markWord::marked_value") && v != 3) return fail(why, "the forwarding mark of this JVM is not 3");
        if (!strcmp(n, "markWord::age_shift") && v != 3) return fail(why, "the age bits of this JVM's mark word are elsewhere");
    }
    if (!table_open(&t, "gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry", cols, why)) return false;
    vm.g1_archive_mask = 0;
    bool g1 = int_const(&t, "HeapRegionType::EdenTag", "G1HeapRegionType::EdenTag", &vm.g1_eden) &&
              int_const(&t, "HeapRegionType::SurvTag", "G1HeapRegionType::SurvTag", &vm.g1_surv) &&
              int_const(&t, "HeapRegionType::OldMask", "G1HeapRegionType::OldMask", &vm.g1_old_mask) &&
              int_const(&t, "HeapRegionType::FreeTag", "G1HeapRegionType::FreeTag", &vm.g1_free) &&
              int_const(&t, "HeapRegionType::StartsHumongousTag", "G1HeapRegionType::StartsHumongousTag", &vm.g1_hum_start) &&
              int_const(&t, "HeapRegionType::ContinuesHumongousTag", "G1HeapRegionType::ContinuesHumongousTag", &vm.g1_hum_cont);
    int_const(&t, "HeapRegionType::ArchiveMask", NULL, &vm.g1_archive_mask);
    if (!g1 && vm.collector == HC_COLLECTOR_G1) return fail(why, "this JVM does not export the types of G1 regions");
    return true;
}

static bool load_heap(char *why) {
    vm.heap = rdp(st_heap);
    if (!vm.heap) return fail(why, "the heap does not exist yet");
    vm.total_collections = (unsigned *)(vm.heap + off_total);
    vm.heap_base = rdp(vm.heap + off_reserved + off_mr_start);
    vm.heap_bytes = rd64(vm.heap + off_reserved + off_mr_size) * 8;
    if (!vm.heap_base || !vm.heap_bytes || vm.heap_bytes > 1ull << 46) return fail(why, "the reserved range of the heap makes no sense");
    char *mh = flag_addr("MaxHeapSize");
    vm.max_heap = mh ? rd64(mh) : vm.heap_bytes;
    switch (vm.collector) {
    case HC_COLLECTOR_PARALLEL:
        if (!st_young || !st_oldgen || off_ps_eden < 0 || off_ps_from < 0 || off_ps_to < 0 || off_ps_old < 0 || off_ms_bottom < 0 ||
            off_ms_top < 0 || off_ms_end < 0)
            return fail(why, "this JVM does not export the spaces of ParallelScavengeHeap");
        ps_young_gen = rdp(st_young), ps_old_gen = rdp(st_oldgen);
        vm.space_bottom = off_ms_bottom, vm.space_top = off_ms_top, vm.space_end = off_ms_end;
        break;
    case HC_COLLECTOR_SERIAL:
        if (off_gc_young < 0 || off_gc_old < 0 || off_dn_eden < 0 || off_dn_from < 0 || off_dn_to < 0 || off_tg_space < 0 ||
            off_cs_bottom < 0 || off_cs_top < 0 || off_cs_end < 0)
            return fail(why, "this JVM does not export the spaces of the Serial heap");
        g_young = rdp(vm.heap + off_gc_young), g_old = rdp(vm.heap + off_gc_old);
        vm.space_bottom = off_cs_bottom, vm.space_top = off_cs_top, vm.space_end = off_cs_end;
        break;
    case HC_COLLECTOR_G1:
        if (off_hrm < 0 || off_hrm_regions < 0 || off_tab_base < 0 || off_tab_len < 0 || vm.hr_bottom < 0 || vm.hr_top < 0 || vm.hr_end < 0 ||
            off_hr_type < 0 || off_type_tag < 0 || !st_grain)
            return fail(why, "this JVM does not export G1's region table");
        vm.hr_tag = off_hr_type + off_type_tag;
        vm.g1_table = (char **)(vm.heap + off_hrm + off_hrm_regions + off_tab_base);
        vm.g1_len = (uint64_t *)(vm.heap + off_hrm + off_hrm_regions + off_tab_len);
        vm.region_bytes = rd64(st_grain);
        if (vm.region_bytes < 65536 || vm.region_bytes & (vm.region_bytes - 1)) return fail(why, "G1's region size makes no sense");
        break;
    }
    return true;
}

// vm_spaces_now reads the space objects anew: Serial and Parallel swap from and to.
void vm_spaces_now(void) {
    if (vm.collector == HC_COLLECTOR_PARALLEL) {
        vm.eden = rdp(ps_young_gen + off_ps_eden);
        vm.from = rdp(ps_young_gen + off_ps_from);
        vm.to = rdp(ps_young_gen + off_ps_to);
        vm.old = rdp(ps_old_gen + off_ps_old);
    } else if (vm.collector == HC_COLLECTOR_SERIAL) {
        vm.eden = rdp(g_young + off_dn_eden);
        vm.from = rdp(g_young + off_dn_from);
        vm.to = rdp(g_young + off_dn_to);
        vm.old = rdp(g_old + off_tg_space);
    }
}

bool vm_load(void *addr, bool any_major, char why[HC_MAX_REASON]) {
    if (!(jvm = os_library_of(addr))) return fail(why, "libjvm was not found in this process");
    if (!load_fields(why)) return false;
    if (!load_consts(why)) return false;
    if (flag_on("UseZGC")) return fail(why, "ZGC is not supported: its barriers leave no evacuated copies to read (use Serial, Parallel or G1)");
    // On a machine of one node the JVM has switched it off by now. G1 keeps its regions; Parallel parts eden by node, which nobody has tested.
    if (flag_on("UseParallelGC") && flag_on("UseNUMA")) return fail(why, "-XX:+UseNUMA parts Parallel's eden by node, which is untested (use G1, or -XX:-UseNUMA)");
    if (flag_on("UseShenandoahGC")) return fail(why, "Shenandoah is not supported (use Serial, Parallel or G1)");
    if (flag_on("UseEpsilonGC")) return fail(why, "Epsilon is not supported: it never collects");
    vm.collector = flag_on("UseSerialGC")     ? HC_COLLECTOR_SERIAL
                   : flag_on("UseParallelGC") ? HC_COLLECTOR_PARALLEL
                   : flag_on("UseG1GC")       ? HC_COLLECTOR_G1
                                              : 0;
    if (!vm.collector) return fail(why, "the collector is none of Serial, Parallel and G1");
    if (!any_major) {
        snprintf(why, HC_MAX_REASON, "JDK %d is untested (17 and 25 are); --allow-untested-jdk tries it", vm.major);
        return false;
    }
    char *perf = flag_addr("UsePerfData");
    if (perf && !*perf) return fail(why, "-XX:-UsePerfData hides which pauses are which; record without that flag");
    vm.compressed_oops = flag_on("UseCompressedOops");
    char *ccp = flag_addr("UseCompressedClassPointers");
    vm.compressed_class = ccp ? *ccp : true;
    vm.compact_headers = flag_on("UseCompactObjectHeaders");
    if (vm.compact_headers && vm.klass_shift <= 0) return fail(why, "compact headers, but markWord::klass_shift is not exported");
    vm.check_jni = flag_on("CheckJNICalls");
    char *al = flag_addr("ObjectAlignmentInBytes");
    vm.align = al ? (uint64_t)rd32(al) : 8;
    if (vm.align < 8 || vm.align > 256 || vm.align & (vm.align - 1)) return fail(why, "ObjectAlignmentInBytes makes no sense");
    if (!load_heap(why)) return false;
    // While allocation is sampled, _end is where the next sample is due; the buffer's real end is _allocation_end, which no table names.
    // It lies between _end and _desired_size; any other distance is a layout that nobody has looked at.
    if (off_tlab_desired != vm.tlab_end + 16) return fail(why, "the layout of ThreadLocalAllocBuffer is not the known one");
    vm.tlab_end += 8;
    vm.cld_head = (char **)st_cldhead;
    vm.narrow_klass_base = (char **)st_nkbase;
    vm.narrow_klass_shift = (int *)st_nkshift;
    vm.mirror_size_offset = (int *)st_mirror;
    vm.thread_list = (char **)st_threads;
    vm.thread_gc = off_processed > 0 ? off_processed + 8 : 0; // the next field on 17 to 25; vm_gc_number looks at what it finds there
    vm.perf_start = (char **)st_perf;
    vm.perf_top = (char **)st_perf_top;
    return true;
}

// counter finds one PerfMemory entry by name. The layout is that of hsperfdata files, stable since JDK 5.
static char *counter(const char *name) {
    char *p = rdp(vm.perf_start), *end = rdp(vm.perf_top);
    if (!p || end <= p || rd32(p) != 0xc0c0feca) return NULL;
    uint32_t n = rd32(p + 28);
    char *e = p + rd32(p + 24);
    for (uint32_t i = 0; i < n && e + 20 <= end; i++) {
        uint32_t len = rd32(e);
        if (len < 20 || len > (uint64_t)(end - e)) break;
        if (!strncmp(e + rd32(e + 4), name, len - rd32(e + 4))) return e + rd32(e + 16);
        e += len;
    }
    return NULL;
}

bool vm_late(char why[HC_MAX_REASON]) {
    if (vm.perf_inv[0]) return true;
    vm.perf_inv[0] = (int64_t *)counter("sun.gc.collector.0.invocations");
    vm.perf_inv[1] = (int64_t *)counter("sun.gc.collector.1.invocations");
    vm.perf_inv[2] = (int64_t *)counter("sun.gc.collector.2.invocations");
    vm.perf_cause = counter("sun.gc.cause");
    vm.perf_last_cause = counter("sun.gc.lastCause");
    if (!vm.perf_inv[0] || !vm.perf_inv[1] || !vm.perf_cause) {
        vm.perf_inv[0] = NULL;
        return fail(why, "the collection counters (sun.gc.collector.*) were not found");
    }
    // _end of a TLAB lies before its hard end by the reserve: 2 words on 17, a variable on 25, or the prefetch reserve if that is larger.
    uint64_t lab = st_lab_reserve ? rd64(st_lab_reserve) : 2;
    uint64_t pre = (uint64_t)rd32(st_prefetch);
    if (lab > 64 || pre > 4096) return fail(why, "the reserve behind a TLAB makes no sense");
    vm.tlab_reserve = 8 * (lab > pre ? lab : pre);
    return true;
}

static int thread_key = -1;

void vm_know_thread(void *thread) {
    for (unsigned k = 0; thread && thread_key < 0 && k < OS_KEYS; k++)
        if (os_thread_value(k) == thread) thread_key = (int)k;
}

// Each collection takes a number, and so does each concurrent cycle of G1, which no counter tells. So what the thread itself says is read there, and
// believed if it can be true: a cycle begins with a collection of its own.
uint64_t vm_gc_number(bool concurrent) {
    static uint64_t cycles;
    uint64_t young = rd64(vm.perf_inv[0]), all = young + rd64(vm.perf_inv[1]);
    if (all == 0) return 0;
    if (vm.collector != HC_COLLECTOR_G1) return all - 1;
    char *t = thread_key >= 0 && vm.thread_gc ? os_thread_value((unsigned)thread_key) : NULL;
    uint64_t id = t ? rd32(t + vm.thread_gc) : UINT32_MAX;
    if (concurrent) return id < all + young ? id : UINT64_MAX;
    if (id >= all - 1 && id < all + young) cycles = id - (all - 1);
    return all - 1 + cycles;
}
