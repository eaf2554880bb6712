// classmake.h: writes class files byte by byte, for helper and draghelper. Any thread
#ifndef HEAPCAM_CLASSMAKE_H
#define HEAPCAM_CLASSMAKE_H

#include "classfile.h"

struct pool {
    struct out o;
    uint32_t next;
};

static inline uint32_t utf8_entry(struct pool *p, const char *s) {
    const size_t n = strlen(s);
    w1(&p->o, POOL_UTF8), w2(&p->o, (uint32_t)n), put(&p->o, s, n);
    return p->next++;
}

static inline uint32_t class_entry(struct pool *p, const char *s) {
    const uint32_t name = utf8_entry(p, s);
    w1(&p->o, POOL_CLASS), w2(&p->o, name);
    return p->next++;
}

static inline uint32_t member(struct pool *p, uint32_t tag, uint32_t class, const char *name, const char *sig) {
    const uint32_t n = utf8_entry(p, name), s = utf8_entry(p, sig);
    w1(&p->o, 12), w2(&p->o, n), w2(&p->o, s);
    w1(&p->o, tag), w2(&p->o, class), w2(&p->o, p->next++);
    return p->next++;
}

static inline uint32_t number(struct pool *p, uint64_t v) { // a long
    w1(&p->o, 5), w4(&p->o, (uint32_t)(v >> 32)), w4(&p->o, (uint32_t)v);
    p->next += 2;
    return p->next - 2;
}

struct body {
    struct out o;
    size_t leaves[8]; // jumps to the end
    int n;
};
static inline void op(struct body *b, uint32_t c, uint32_t index) { w1(&b->o, c), w2(&b->o, index); }
static inline void leave_if(struct body *b, uint32_t c) {
    b->leaves[b->n++] = b->o.n;
    op(b, c, 0);
}

// The jumps lead to its last instruction.
static inline void body_end(struct body *b, uint32_t c) {
    for (int i = 0; i < b->n && !b->o.bad; i++)
        set2(b->o.p + b->leaves[i] + 1, (uint32_t)(b->o.n - b->leaves[i]));
    w1(&b->o, c);
}

static inline void put_method(struct out *o, uint32_t name, uint32_t sig, uint32_t code, const struct out *body) {
    w2(o, 9), w2(o, name), w2(o, sig), w2(o, 1); // public static
    w2(o, code), w4(o, (uint32_t)body->n + 12), w2(o, 8), w2(o, 8), w4(o, (uint32_t)body->n);
    put(o, body->p, body->n);
    w2(o, 0), w2(o, 0);
}

#endif
