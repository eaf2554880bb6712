//go:build ignore

// tlabs.c: tlabs.h.
#include "tlabs.h"

#include "guard.h"
#include "recording.h"
#include "vmstructs.h"

PER_RECORDING struct hole *holes;
PER_RECORDING uint32_t nholes;
enum { MAX_HOLES = 1 << 16 };

bool tlabs_init(void) { return (holes = memory(MAX_HOLES * sizeof *holes)) != NULL; }

static void add_hole(const char *tlab) {
    uint64_t top = rd64(tlab + vm.tlab_top), end = rd64(tlab + vm.tlab_end);
    if (!end || end < top) return;
    end += vm.tlab_reserve;
    if (end == top) return; // a full one, where the JVM reserves nothing: a walk would not get past it
    if (nholes == MAX_HOLES) violation("more threads than the probe can hold", nholes);
    uint32_t j = nholes++; // insertion into a short, mostly sorted list
    for (; j > 0 && holes[j - 1].lo > top; j--) holes[j] = holes[j - 1];
    holes[j] = (struct hole){top, end};
}

void tlab_holes(void) {
    nholes = 0;
    if (!vm_has_thread_list()) {
        uint32_t n = 0;
        for (char *t = rdp(vm.first_thread); t; t = rdp(t + vm.thread_next)) {
            if (++n > MAX_HOLES) violation("the list of threads has no end", (uint64_t)t);
            add_hole(t + vm.thread_tlab);
        }
        return;
    }
    char *list = rdp(vm.thread_list);
    uint32_t n = rd32(list + vm.tl_length);
    char *threads = rdp(list + vm.tl_threads);
    if (n > MAX_HOLES) violation("more threads than the probe can hold", n);
    for (uint32_t i = 0; i < n; i++) add_hole(rdp(threads + 8 * i) + vm.thread_tlab);
}
