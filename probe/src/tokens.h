// tokens.h: what the walks write for each object.
#ifndef HEAPCAM_TOKENS_H
#define HEAPCAM_TOKENS_H

#include <stdint.h>

#include "leb.h"
#include "object.h"

#define AHEAD 2048   // bytes: the walk is bound by cache misses, and the hardware's prefetcher stops at each page
enum { TOKEN = 64 }; // no object needs more bytes than that

// Where the next object that moved is expected, four guesses: docs/format/stream.md. from: where the objects that a
// lane has seen begin, in words.
struct lanes {
    uint64_t next[4], from[4];
    int k; // the one that begins elsewhere next
};

HOT uint8_t *put4(uint8_t *p, uint32_t x, uint32_t n) {
    __builtin_memcpy(p, &x, 4);
    return p + n;
}

HOT uint8_t *put_len(uint8_t *p, const struct hot *h, uint32_t len) {
    if (LIKELY(len < 0x80)) { // as it is of most objects, and of those that have none
        *p = (uint8_t)len;
        return p + (h->lenmask & 1);
    }
    if (!LIKELY(!(len >> 28))) return leb_long(p, len);
    uint32_t n = leb_size(len);
    return put4(p, leb_bytes(len, n), n & h->lenmask);
}

// One set of walks is made for each place where the class stands.
#define FOR_LAYOUT(call) (layout() == NARROW ? call(NARROW) : layout() == COMPACT ? call(COMPACT) : call(WIDE))

#endif
