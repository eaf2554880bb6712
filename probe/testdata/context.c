// context.c: otelmessage.c by itself, for AddressSanitizer. "keys": the names, one a line. "read": a message on stdin,
// and KEY=VALUE lines on stdout. "mutate N": the message on stdin N times with some bytes changed and the end cut, each
// in memory of exactly its length.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "otelmessage.h"

static struct otel_value out[OTEL_KEYS];

static uint64_t state = 88172645463325252u;
static uint64_t any(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static unsigned long sum; // so that each byte that was found is read

static void find(const uint8_t *b, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy) abort();
    memcpy(copy, b, n);
    otel_find(copy, n, out);
    for (int i = 0; i < OTEL_KEYS; i++) {
        if (!out[i].at != !out[i].n || out[i].n > OTEL_VALUE) abort();
        for (uint32_t j = 0; j < out[i].n; j++) sum += out[i].at[j];
    }
    free(copy);
}

int main(int argc, char **argv) {
    static uint8_t b[64 << 10], c[64 << 10];
    if (argc < 2) return 2;
    if (!strcmp(argv[1], "keys")) {
        for (int i = 0; i < OTEL_KEYS; i++) puts(otel_keys[i]);
        return 0;
    }
    size_t n = fread(b, 1, sizeof b, stdin);
    if (!strcmp(argv[1], "read")) {
        otel_find(b, n, out);
        for (int i = 0; i < OTEL_KEYS; i++)
            if (out[i].n) printf("%s=%.*s\n", otel_keys[i], (int)out[i].n, (const char *)out[i].at);
        return 0;
    }
    for (long i = 0, most = argc > 2 ? atol(argv[2]) : 0; i < most; i++) {
        size_t cut = any() % 4 ? n : any() % (n + 1);
        memcpy(c, b, cut);
        for (uint64_t k = any() % 8; k && cut; k--) c[any() % cut] = any() % 2 ? (uint8_t)any() : (uint8_t)(any() % 24);
        find(c, cut);
    }
    return sum == 1;
}
