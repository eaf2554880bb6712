//go:build ignore

// bytecode.c: bytecode.h.
#include "bytecode.h"

enum { NEW = 187, TABLE = 10, LOOKUP = 11, WIDE = 12, IINC = 132, RET = 169 };

// Lengths in bytes, by the JVM specification up to 201. 202 is a breakpoint, which replaces another one. What
// follows is the JVM's own, the same in 17 and 25 (bytecodes.hpp); it keeps the length of what it replaces.
// clang-format off
static const uint8_t lengths[] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 2, 3, // 0
    3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, // 20
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1, // 40
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, // 60
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, // 80
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, // 100
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, // 120
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, // 140
    3, 3, 3, 3, 3, 3, 3, 3, 3, 2, TABLE, LOOKUP, 1, 1, 1, 1, 1, 1, 3, 3, // 160
    3, 3, 3, 3, 3, 5, 5, 3, 2, 3, 1, 1, 3, 3, 1, 1, WIDE, 4, 3, 3, // 180
    5, 5, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, // 200
    1, 4, 4, 4, 2, 4, 3, 3, LOOKUP, LOOKUP, 2, 3, 1, 3, 3, 3, 1, 2, // 220
};
// clang-format on

static int64_t be32(const uint8_t *p) {
    return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

// Of a switch: its operands begin at the next multiple of four bytes. 0: it leaves the body.
static size_t switch_length(const uint8_t *code, size_t n, size_t bci, bool table) {
    const size_t at = (bci + 4) & ~(size_t)3, head = table ? 12 : 8;
    if (at + head > n) return 0;
    const int64_t a = be32(code + at + 4);
    const int64_t entries = table ? be32(code + at + 8) - a + 1 : a;
    if (entries < (table ? 1 : 0) || entries > (int64_t)n) return 0;
    return at + head + (size_t)entries * (table ? 4 : 8) - bci;
}

static size_t wide_length(const uint8_t *code, size_t n, size_t bci) {
    if (bci + 1 >= n) return 0;
    const uint8_t c = code[bci + 1];
    if (c == IINC) return 6;
    return (c >= 21 && c <= 25) || (c >= 54 && c <= 58) || c == RET ? 4 : 0;
}

size_t bytecode_length(const uint8_t *code, size_t n, size_t bci) {
    const uint8_t c = code[bci];
    const size_t length = c < sizeof lengths ? lengths[c] : 0;
    if (length < TABLE) return length;
    return length == WIDE ? wide_length(code, n, bci) : switch_length(code, n, bci, length == TABLE);
}

int bytecode_new(const uint8_t *code, size_t n, size_t *bci, size_t *at, uint32_t *index) {
    while (*bci < n) {
        const size_t here = *bci, length = bytecode_length(code, n, here);
        if (!length || length > n - here) return -1;
        *bci = here + length;
        if (code[here] != NEW) continue;
        *at = here;
        *index = (uint32_t)code[here + 1] << 8 | code[here + 2];
        return 1;
    }
    return *bci == n ? 0 : -1;
}

// UNSIGNED5: six bits for each byte behind the first one. false: it leaves the table.
static bool number(const uint8_t **p, const uint8_t *end, bool excess, int64_t *to) {
    const uint32_t x = excess ? 1 : 0, low = 192 - x;
    uint32_t sum = 0;
    for (int i = 0;; i++) {
        if (*p == end) return false;
        const uint32_t b = *(*p)++ - x;
        sum += b << 6 * i;
        if (b < low || i == 4) break;
    }
    *to = (int64_t)(sum >> 1) ^ -(int64_t)(sum & 1);
    return true;
}

bool bytecode_next_line(struct bytecode_lines *l) {
    int64_t bci, line;
    if (l->p == l->end || !*l->p) return false;
    const uint8_t c = *l->p++;
    if (c != 0xff)
        bci = c >> 3, line = c & 7;
    else if (!number(&l->p, l->end, l->excess, &bci) || !number(&l->p, l->end, l->excess, &line))
        return l->p = l->end, false;
    l->bci += bci, l->line += line;
    return l->bci >= 0 && l->bci < 65536 && l->line > 0 && l->line < 65536 ? true : (l->p = l->end, false);
}
