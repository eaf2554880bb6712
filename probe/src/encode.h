// encode.h: writes blocks and events of the stream (docs/format/stream.md) into memory. It never writes past `end`;
// `over` is set when something did not fit.
#ifndef HEAPCAM_ENCODE_H
#define HEAPCAM_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern uint8_t block_version; // of each block; the thread that begins sets it
struct enc {
    uint8_t *p, *base, *end;
    bool over;
};
static inline bool room(struct enc *e, size_t n) {
    if ((size_t)(e->end - e->p) >= n) return true;
    e->over = true;
    return false;
}
static inline void put8(struct enc *e, uint8_t v) {
    if (room(e, 1)) *e->p++ = v;
}
static inline void put_u(struct enc *e, uint64_t v) {
    if (!room(e, 10)) return;
    while (v >= 0x80) *e->p++ = (uint8_t)(v | 0x80), v >>= 7;
    *e->p++ = (uint8_t)v;
}
// cppcheck-suppress shiftTooManyBitsSigned ; gcc shifts the sign in, here and on Windows
static inline void put_s(struct enc *e, int64_t v) { put_u(e, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }
void put_str(struct enc *e, const char *s, size_t n);
uint8_t *blob_begin(struct enc *e, int tag);
void blob_end(struct enc *e, uint8_t *at);
uint8_t *block_begin(struct enc *e, int kind);
void block_end(struct enc *e, uint8_t *at); // the holder of the writer lock, or the VM thread in a pause

#endif
