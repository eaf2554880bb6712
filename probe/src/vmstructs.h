// vmstructs.h: what the probe knows of the JVM it sits in. Everything comes from the tables that libjvm exports
// (gHotSpotVM*), never from a version number; what is missing is refused by name.
#ifndef HEAPCAM_VMSTRUCTS_H
#define HEAPCAM_VMSTRUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heapcam_abi.h"
#include "log.h"
#include "os.h"

// Offsets are bytes inside the VM's structures; addresses point at static fields.
struct vm {
    int major;
    int collector; // HC_COLLECTOR_*
    bool compressed_oops, compressed_class, compact_headers;
    bool check_jni;
    uint64_t align; // object alignment, bytes

    // heap
    char *heap; // the CollectedHeap object
    char *heap_base;
    uint64_t heap_bytes;
    uint64_t max_heap, max_metaspace;

    // Parallel: holders of MutableSpace*; Serial: of ContiguousSpace*
    char *eden, *from, *to, *old; // current space objects; from and to swap, read them anew (vm_spaces)
    int64_t space_bottom, space_top, space_end;

    // G1
    int64_t hr_bottom, hr_top, hr_end, hr_tag;
    char **g1_table; // address of the table's base pointer
    uint64_t *g1_len;
    uint64_t region_bytes;
    int g1_eden, g1_surv, g1_hum_start, g1_hum_cont, g1_archive_mask, g1_free;

    // classes
    char **cld_head;
    int64_t cld_next, cld_klasses, cld_loader;
    int64_t k_next, k_layout, k_name, k_cld;
    int64_t sym_len, sym_body;
    char **narrow_klass_base;
    int *narrow_klass_shift;
    int klass_shift; // in the mark, compact headers
    int hash_shift;  // in the mark; 0: not known
    int *mirror_size_offset;
    // of the field size of jdk.internal.vm.StackChunk, words of stack; 0: this JVM has no such class
    uint32_t chunk_size_offset;

    // threads and TLABs
    char **thread_list;
    int64_t tl_length, tl_threads, thread_tlab;
    char **first_thread; // 11 links its threads and has no thread_list
    int64_t thread_next;
    int64_t tlab_top, tlab_end;
    uint64_t tlab_reserve; // bytes behind _end

    unsigned *total_collections;
    int64_t thread_gc; // the number that a thread's lines in the log have: _gc_id of NamedThread; 0: not exported

    // PerfMemory counters; found at the first collection
    char **perf_start;
    char **perf_top;
    int64_t *perf_inv[3];
    int64_t *perf_used[2]; // bytes of young space or of nothing, and of the rest; of collectors without addresses
    // Bytes that the newest collection left in eden, in the two survivor spaces, and in old space. NULL: not
    // counted, or there are regions.
    int64_t *perf_left[4];
    int64_t *perf_unloaded[2]; // classes unloaded so far, and those of the archive; NULL: not known
    char *perf_cause, *perf_last_cause;
};

extern HIDDEN struct vm vm; // written by vm_load (spaces: by vm_spaces_now on the VM thread) and constant while
                            // something is recorded

// What this JVM can do. Whoever asks for the collector itself asks the wrong question.
// Objects move while the application runs, or nothing ever dies: nothing is read of the heap, and no object has an
// address.
static inline bool vm_has_no_addresses(void) { return vm.collector >= HC_COLLECTOR_ZGC; }
// Of those: minor cycles collect young space alone, and count apart.
static inline bool vm_has_generations_without_addresses(void) {
    return vm.collector == HC_COLLECTOR_ZGC && vm.perf_inv[0] != NULL;
}
static inline bool vm_has_regions(void) { return vm.collector == HC_COLLECTOR_G1; }
// Serial on 17 gives out survivor space, unformatted, when a full collection has left no other room.
static inline bool vm_has_unformatted_survivors(void) { return vm.collector == HC_COLLECTOR_SERIAL; }
// A full collection leaves dead objects in regions that it does not compact, and no filler over them.
static inline bool vm_has_uncompacted_regions(void) { return vm_has_regions() && vm.major >= 17 && vm.major < 20; }
// Anonymous classes, of which JVMTI writes another name than stands in the class.
static inline bool vm_has_anonymous_classes(void) { return vm.major < 15; }
static inline bool vm_has_thread_list(void) { return vm.thread_list != NULL; }
// Concurrent cycles take numbers of collections that no counter shows.
static inline bool vm_has_concurrent_cycles(void) { return vm.collector == HC_COLLECTOR_G1; }
void vm_spaces_now(void);

// vm_load fills vm from the tables, by the rows of vmrows.def; vm.major is the caller's. any_major: an
// untested JDK is loaded, too. false: `why` names
// the field, constant or symbol
// that is missing or not as expected, in one line, and nothing of vm may be used. A JVM thread, at VMInit or later,
// while nothing is recorded.
bool vm_load(void *some_libjvm_address, bool any_major, char why[HC_MAX_REASON]);
// vm_late says whether vm_load has succeeded. Any thread
bool vm_late(char why[HC_MAX_REASON]);

// vm_know_thread takes HotSpot's object for the calling thread, and finds from it where other threads have theirs.
void vm_know_thread(void *thread);
void *vm_this_thread(void); // HotSpot's object for the calling thread; NULL: not known, or not a thread of the JVM's
// vm_gc_number gives n of GC(n) in the JVM's log: of the collection that ends, or of the newest one if none does;
// concurrent: of the cycle of G1 whose
// pause ends, UINT64_MAX if that is not known. VM thread, below the guard.
uint64_t vm_gc_number(bool concurrent);
// The same, of the cycle whose pause runs, where there are no addresses. UINT32_MAX: not known. VM thread, inside the
// guard.
uint32_t vm_gc_of_thread(void);

// One read of memory that the JVM may write at the same time.
static inline uint64_t rd64(const void *p) { return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED); }
static inline uint32_t rd32(const void *p) { return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED); }
static inline char *rdp(const void *p) { return __atomic_load_n((char *const *)p, __ATOMIC_RELAXED); }

#endif
