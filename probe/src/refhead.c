//go:build ignore

// refhead.c: refhead.h.
#include "refhead.h"

#include <stdlib.h>

enum { HEAD_PIECE = 128 << 10 };

struct enc refhead_begin(struct refhead *h, size_t most) {
    if (h->cap - h->len < most) {
        size_t cap = 2 * h->cap + most + 4096;
        uint8_t *b = realloc(h->b, cap);
        if (b) h->b = b, h->cap = cap;
    }
    if (h->cap - h->len < most) {
        h->failed = true;
        return (struct enc){.over = true};
    }
    uint8_t *p = h->b + h->len;
    return (struct enc){.p = p, .base = p, .end = p + most};
}

void refhead_close(struct refhead *h) {
    if (h->len == h->last) return;
    if (h->pieces == h->most) {
        size_t *end = realloc(h->end, 2 * (h->most + 8) * sizeof *end);
        if (!end) {
            h->failed = true;
            return;
        }
        h->end = end, h->most = 2 * (h->most + 8);
    }
    h->end[h->pieces++] = h->last = h->len;
}

void refhead_end(struct refhead *h, const struct enc *e) {
    if (e->over) h->failed = true;
    if (h->failed) return;
    h->len += (size_t)(e->p - e->base);
    if (h->len - h->last >= HEAD_PIECE) refhead_close(h);
}

void refhead_free(struct refhead *h) {
    free(h->b);
    free(h->end);
    *h = (struct refhead){.b = NULL};
}
