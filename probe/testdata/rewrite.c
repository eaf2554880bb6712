//go:build ignore

// rewrite.c: the test's program for src/rewrite.c. Reads class files, each behind its length (4 bytes, big-endian).
// "all": writes each in the same form, rewritten or empty. "mutate N": changes bytes of them N times. "uses" in front of
// both: with calls at uses.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite.h"

static uint32_t nmethods, nsites;

static uint32_t method(void *arg, const struct rewritten *m) {
    uint32_t sum = 0; // reads all that it is given
    for (size_t i = 0; i < m->class.n; i++) sum += m->class.p[i];
    for (size_t i = 0; i < m->name.n; i++) sum += m->name.p[i];
    for (size_t i = 0; i < m->sig.n; i++) sum += m->sig.p[i];
    for (size_t i = 0; i < m->file.n; i++) sum += m->file.p[i];
    for (size_t i = 0; i < m->nlines; i++) sum += m->pos[m->lines[4 * i] << 8 | m->lines[4 * i + 1]];
    *(uint32_t *)arg += sum;
    return ++nmethods;
}

static uint32_t site(void *arg, uint32_t m, uint32_t bci, const struct made *made) {
    uint32_t sum = m + bci + (uint32_t)made->dimensions + made->kind;
    for (size_t i = 0; i < made->type.n; i++) sum += made->type.p[i];
    *(uint32_t *)arg += sum;
    nsites++;
    return nsites % 101 ? nsites * 7 % 100000 : 0; // ids of both forms, and some that are refused
}

static uint64_t random_state = 88172645463325252ull;
static bool outside(void *arg, struct text class) {
    for (size_t i = 0; i < class.n; i++) *(uint32_t *)arg += class.p[i];
    return class.n % 2;
}

static uint32_t draw(void) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

static void run(struct rewriting *w, const uint8_t *in, size_t n, bool write, uint32_t *odd) {
    uint8_t *copy = malloc(n ? n : 1), *out = NULL; // exactly as long as it is: the sanitizer sees each read beyond it
    size_t out_n = 0;
    bool is_odd;
    memcpy(copy, in, n);
    const bool done = class_rewrite(copy, n, w, &out, &out_n, &is_odd);
    *odd += is_odd;
    if (write) {
        const uint8_t head[4] = {(uint8_t)(out_n >> 24), (uint8_t)(out_n >> 16), (uint8_t)(out_n >> 8), (uint8_t)out_n};
        fwrite(head, 1, 4, stdout);
        if (done) fwrite(out, 1, out_n, stdout);
    }
    if (done) free(out);
    free(copy);
}

int main(int argc, char **argv) {
    static uint8_t *files[200000];
    static uint32_t sizes[200000];
    uint32_t n = 0, sum = 0, odd = 0;
    uint8_t head[4];
    while (n < 200000 && fread(head, 1, 4, stdin) == 4) {
        const uint32_t len = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
        files[n] = malloc(len + 1);
        sizes[n] = len;
        if (fread(files[n++], 1, len, stdin) != len) return 2;
    }
    struct rewriting w = {.method = method, .site = site, .arg = &sum,
                          .outside = outside, .helper = {(const uint8_t *)"java/lang/HeapcamSites", 22}};
    if (argc > 1 && !strcmp(argv[1], "uses")) w.uses = true, argc--, argv++;
    if (argc == 2 && !strcmp(argv[1], "all")) {
        for (uint32_t i = 0; i < n; i++) run(&w, files[i], sizes[i], true, &odd);
    } else if (argc == 3 && n) {
        for (long k = atol(argv[2]); k > 0; k--) {
            const uint32_t i = draw() % n;
            const uint32_t len = draw() % 8 ? sizes[i] : draw() % (sizes[i] + 1); // some are cut
            uint8_t *copy = malloc(len + 1);
            memcpy(copy, files[i], len);
            for (uint32_t j = 1 + draw() % 8; len && j > 0; j--) {
                const uint32_t at = draw() % len;
                copy[at] = draw() % 2 ? (uint8_t)draw() : (uint8_t)(copy[at] + 1 - 2 * (draw() & 1));
            }
            run(&w, copy, len, false, &odd);
            free(copy);
        }
    }
    fprintf(stderr, "%u classes, %u odd, %u methods rewritten, %u left, %u sites\n", n, odd, w.methods, w.refused,
            w.sites);
    for (uint32_t i = 0; i < n; i++) free(files[i]);
    return 0;
}
