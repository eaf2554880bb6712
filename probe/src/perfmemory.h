// perfmemory.h: the JVM's own counters, in the memory that it shows to jstat. The layout is that of hsperfdata files,
// stable since JDK 5: a header, then entries {length, name at, elements, type, and so on, data at}. A JVM thread, while
// nothing is recorded.
#ifndef HEAPCAM_PERFMEMORY_H
#define HEAPCAM_PERFMEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PERF_TEXT = 80 }; // bytes of a text that can be read
struct perf_counter {
    const char *name;
    char type; // J: one number, B: text
    char *at;  // NULL: not found
};
// Fills at of each of n counters. at_start, at_top: of PerfMemory::_start and _top. false: the memory makes no sense.
bool perf_find(uint64_t at_start, uint64_t at_top, struct perf_counter *c, size_t n);

#endif
