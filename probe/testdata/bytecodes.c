// bytecodes.c: bytecode.c by itself, for AddressSanitizer. "hand": bodies of which the answer is known. "random N": N
// bodies and tables of random bytes and of mutated ones, each in memory of exactly its length.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytecode.h"

// The places of `new` in a body; -1 if it is not understood.
static int count(const uint8_t *code, size_t n, size_t last[8]) {
    uint8_t *p = malloc(n ? n : 1);
    size_t bci = 0, at = 0, before = 0;
    uint32_t index;
    int r, found = 0;
    if (n) memcpy(p, code, n);
    while ((r = bytecode_new(p, n, &bci, &at, &index)) > 0) {
        assert(at + 3 <= n && bci == at + 3 && bci > before && p[at] == 187);
        assert(index == ((uint32_t)p[at + 1] << 8 | p[at + 2]));
        before = bci;
        if (last && found < 8) last[found] = at;
        found++;
    }
    assert(bci <= n && (r < 0 || bci == n));
    free(p);
    return r < 0 ? -1 : found;
}

#define BODY(...) (const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

// The line of a position, by the table's last row before it; 0: it has none.
static int64_t line_of(const uint8_t *table, size_t n, size_t bci, bool excess) {
    struct bytecode_lines l = {.p = table, .end = table + n, .excess = excess};
    int64_t found = 0;
    while (bytecode_next_line(&l))
        if (l.bci <= (int64_t)bci) found = l.line;
    return found;
}

static void by_hand(void) {
    size_t at[8];
    assert(count(NULL, 0, NULL) == 0);
    assert(count(BODY(187, 1, 2, 89, 176), at) == 1 && at[0] == 0);
    assert(count(BODY(16, 187, 187, 0, 7, 177), at) == 1 && at[0] == 2);            // bipush 187
    assert(count(BODY(187, 1), NULL) == -1);                                        // cut
    assert(count(BODY(202, 0, 1), NULL) == -1);                                     // a breakpoint
    assert(count(BODY(238), NULL) == -1 && count(BODY(255), NULL) == -1);           // no bytecodes
    assert(count(BODY(0, 170, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 187, 0, 1), at) == 1 && at[0] == 20);
    assert(count(BODY(0, 170, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 5), NULL) == -1); // high below low
    assert(count(BODY(170, 0, 0, 0, 0, 0, 0, 9, 128, 0, 0, 0, 127, 255, 255, 255), NULL) == -1);   // 2^32 entries
    assert(count(BODY(171, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 187, 0, 1), at) == 1 && at[0] == 20);
    assert(count(BODY(171, 0, 0, 0, 0, 0, 0, 9, 255, 255, 255, 255), NULL) == -1);
    assert(count(BODY(229, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 187, 0, 1), at) == 1 && at[0] == 12);  // rewritten
    assert(count(BODY(196, 132, 0, 187, 0, 187, 196, 21, 0, 187, 187, 0, 3), at) == 1 && at[0] == 10); // wide
    assert(count(BODY(196, 187, 0, 0), NULL) == -1 && count(BODY(196), NULL) == -1);
    assert(count(BODY(221, 0, 187, 0, 187, 0, 3), at) == 1 && at[0] == 4);          // _fast_iaccess_0
    assert(count(BODY(185, 187, 187, 187, 0, 186, 187, 187, 0, 0, 197, 187, 187, 187), NULL) == 0);
    assert(line_of((const uint8_t[]){5, 3 << 3 | 2, 0}, 3, 2, false) == 5);
    assert(line_of((const uint8_t[]){5, 3 << 3 | 2, 0}, 3, 3, false) == 7);
    assert(line_of((const uint8_t[]){5, 3 << 3 | 2}, 2, 3, false) == 7);      // no end
    // 200 lines on: zigzag 400 = 192 + 16 + 3 * 64 in five bits and a rest; since 20 each byte is one more
    assert(line_of((const uint8_t[]){5, 0xff, 8, 208, 3, 0}, 6, 4, false) == 205);
    assert(line_of((const uint8_t[]){5, 0xff, 9, 209, 4, 0}, 6, 4, true) == 205);
    assert(line_of((const uint8_t[]){0xff, 200}, 2, 0, true) == 0);
}

static uint64_t state = 88172645463325252ull;
static uint32_t dice(uint32_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

static void at_random(long times) {
    static const uint8_t seeds[] = {0,   170, 0, 0,   0,  0,   0,   9,   0,   0, 0,   1,  0,   0,   0,   3,   0,   0,
                                    0,   5,   0, 0,   0,  5,   0,   0,   0,   5, 187, 0,  1,   196, 132, 0,   1,   0,
                                    1,   171, 0, 0,   0,  0,   0,   0,   0,   9, 0,   0,  0,   1,   0,   0,   0,   1,
                                    0,   0,   0, 5,   187, 0,  1,   197, 0,   1, 2,   189, 0,  1,   188, 10,  177};
    long understood = 0;
    for (long i = 0; i < times; i++) {
        uint8_t body[512];
        size_t n = dice(sizeof body);
        if (i & 1) {
            n = sizeof seeds;
            memcpy(body, seeds, n);
            for (uint32_t k = 1 + dice(4); k; k--) body[dice((uint32_t)n)] = (uint8_t)dice(256);
            n -= dice(2) ? dice((uint32_t)n) : 0;
        } else {
            for (size_t k = 0; k < n; k++) body[k] = (uint8_t)dice(256);
        }
        understood += count(body, n, NULL) >= 0;
        uint8_t *exact = malloc(n ? n : 1);
        memcpy(exact, body, n);
        const int64_t line = line_of(exact, n, dice(65536), i & 2);
        assert(line >= 0 && line < 65536);
        free(exact);
    }
    printf("%ld of %ld bodies were understood\n", understood, times);
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[1], "random"))
        at_random(atol(argv[2]));
    else
        by_hand();
    return 0;
}
