// leb.h: LEB128 without a bound: for loops that have made sure of room for a whole token.
#ifndef HEAPCAM_LEB_H
#define HEAPCAM_LEB_H

#include <stdint.h>

static inline uint32_t leb_size(uint32_t v) { return 1 + (v > 0x7f) + (v > 0x3fff) + (v > 0x1fffff); }
static inline uint32_t leb_bytes(uint32_t v, uint32_t n) { // v < 2^28
    uint32_t x = (v & 0x7f) | (v & 0x3f80) << 1 | (v & 0x1fc000) << 2 | (v & 0xfe00000) << 3;
    return x | (0x00808080u & ((1u << 8 * (n - 1)) - 1));
}

static inline uint8_t *leb_long(uint8_t *p, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

// cppcheck-suppress shiftTooManyBitsSigned ; gcc shifts the sign in, here and on Windows
static inline uint8_t *zig_long(uint8_t *p, int64_t v) { return leb_long(p, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }

#endif
