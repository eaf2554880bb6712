//go:build ignore

// encode.c: encode.h.
#include "encode.h"

#include <string.h>

#include "heapcam_abi.h"
#include "os.h"

PER_RECORDING uint8_t block_version = HC_FORMAT_VERSION;
static PER_RECORDING uint64_t seq; // of the newest block; whoever holds the writer lock, or the VM thread in a pause

void put_str(struct enc *e, const char *s, size_t n) {
    put_u(e, n);
    if (!room(e, n)) return;
    memcpy(e->p, s, n);
    e->p += n;
}

uint8_t *blob_begin(struct enc *e, int tag) {
    put8(e, (uint8_t)tag);
    uint8_t *at = e->p;
    if (room(e, 4)) e->p += 4;
    return at;
}

void blob_end(struct enc *e, uint8_t *at) {
    if (e->over) return;
    uint32_t n = (uint32_t)(e->p - at - 4);
    memcpy(at, &n, 4);
}

uint8_t *block_begin(struct enc *e, int kind) {
    while ((e->p - e->base) & 7) put8(e, 0);
    uint8_t *at = e->p;
    if (!room(e, HC_BLOCK_HEADER_SIZE)) return at;
    memset(at, 0, HC_BLOCK_HEADER_SIZE);
    at[0] = (uint8_t)kind;
    at[1] = block_version;
    e->p += HC_BLOCK_HEADER_SIZE;
    return at;
}

void block_end(struct enc *e, uint8_t *at) {
    if (e->over) return;
    uint32_t n = (uint32_t)(e->p - at - HC_BLOCK_HEADER_SIZE);
    uint64_t s = ++seq;
    memcpy(at + HC_BLOCK_OFF_LENGTH, &n, 4);
    memcpy(at + HC_BLOCK_OFF_SEQ, &s, 8);
    while ((e->p - e->base) & 7) put8(e, 0);
}
