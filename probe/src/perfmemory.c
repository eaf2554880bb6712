//go:build ignore

// perfmemory.c: perfmemory.h.
#include "perfmemory.h"

#include <string.h>

#include "vmtable.h"

enum { PERF_MAGIC = 0xc0c0feca, PERF_HEADER = 32, PERF_ENTRY = 20, PERF_MAX = 64 << 20, PERF_MAX_ENTRIES = 1 << 16 };

bool perf_find(uint64_t at_start, uint64_t at_top, struct perf_counter *c, size_t n) {
    uint64_t start, top;
    uint32_t header[PERF_HEADER / 4], entry[PERF_ENTRY / 4];
    if (!vm_peek(&start, at_start, 8) || !vm_peek(&top, at_top, 8)) return false;
    if (!start || start % 8 || top < start || top - start > PERF_MAX || top - start < PERF_HEADER) return false;
    if (!vm_peek(header, start, sizeof header) || header[0] != PERF_MAGIC || header[6] > top - start ||
        header[7] > PERF_MAX_ENTRIES)
        return false;
    uint64_t at = start + header[6];
    for (uint32_t i = 0; i < header[7] && top - at >= PERF_ENTRY; i++) {
        if (!vm_peek(entry, at, sizeof entry)) return false;
        const uint32_t length = entry[0], name_at = entry[1], elements = entry[2], data_at = entry[4];
        const char type = (char)(entry[3] & 0xff);
        if (length < PERF_ENTRY || length > top - at) break;
        char name[64];
        const size_t room = name_at >= length ? 0 : length - name_at < sizeof name ? length - name_at : sizeof name;
        if (vm_peek_string(name, room, at + name_at)) {
            for (size_t k = 0; k < n; k++) {
                uint8_t text[PERF_TEXT];
                if (c[k].at || strcmp(name, c[k].name) || type != c[k].type || data_at >= length) continue;
                if (type == 'J' ? elements == 0 && length - data_at >= 8 && (at + data_at) % 8 == 0
                                : elements > 0 && vm_peek(text, at + data_at, PERF_TEXT))
                    c[k].at = (char *)(at + data_at);
            }
        }
        at += length;
    }
    return true;
}
