// classfile.h: reading and writing the bytes of a class file, for rewrite. Any thread
#ifndef HEAPCAM_CLASSFILE_H
#define HEAPCAM_CLASSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct text { // of the class file: modified UTF-8, no zero behind it
    const uint8_t *p;
    size_t n;
};

// A method with allocations, as it will be.
struct rewritten {
    struct text class, name, sig, file; // file: empty if it is not known
    const uint8_t *lines;               // of the class file: pairs of two bytes each, position and line
    size_t nlines;
    const uint32_t *pos; // where the instruction at a position will be
};

// What an allocation makes: of a type that is known, or of one that is known in part.
enum made_kind { MADE_TYPE, MADE_ARRAY, MADE_OBJECTS, MADE_INSTANCE, MADE_LAMBDA, MADE_KINDS };
// Whether the call behind an array says how long it is, and of what it takes that: what was made; the array that it was
// made of; the length that is above a class.
enum made_length { LENGTH_NONE, LENGTH_OF_RESULT, LENGTH_OF_RECEIVER, LENGTH_ON_TOP };
struct made {
    enum made_kind kind;
    enum made_length length;
    struct text type; // of MADE_TYPE: as the JVM names it, without the first `[`s, of which there are so many
    int dimensions;
};

struct rewriting {
    // Both give an id; 0: the method, or the allocation, gets no call.
    uint32_t (*method)(void *arg, const struct rewritten *m);
    // bci: where the allocation will be
    uint32_t (*site)(void *arg, uint32_t method, uint32_t bci, const struct made *made);
    // Calls before each use of an object, in place of those behind allocations. outside: a call of a method of such a
    // class uses its receiver.
    bool uses;
    bool (*outside)(void *arg, struct text class);
    void *arg;
    struct text helper; // name of its class, "java/lang/X"
    // Counted:
    uint32_t sites, methods, refused; // refused: methods that should have calls and stayed as they are
    uint32_t unseen;                  // receivers below too many arguments, which have no call
};

// The helper of allocations has site(int high, int low) and array(int length, int high, int low), where low has
// SITE_LOW bits of an id. That of uses has use(Object) and held(Object).
enum { POOL_UTF8 = 1, POOL_CLASS = 7, SITE_LOW = 15 };
enum { HELPER_FIRST = 5, HELPER_OTHER = 9 }; // rewrite.c
enum { CLASS_LIMIT = 65535 }; // of a method's code, and of the constant pool

struct in {
    const uint8_t *p, *end;
    bool bad;
};

static inline const uint8_t *take(struct in *r, size_t n) {
    static const uint8_t zeros[8];
    if (r->bad || n > (size_t)(r->end - r->p)) return r->bad = true, zeros;
    r->p += n;
    return r->p - n;
}

static inline uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static inline uint32_t get32(const uint8_t *p) { return get16(p) << 16 | get16(p + 2); }
static inline uint32_t u1(struct in *r) { return *take(r, 1); }
static inline uint32_t u2(struct in *r) { return get16(take(r, 2)); }
static inline uint32_t u4(struct in *r) { return get32(take(r, 4)); }

static inline struct in part(struct in *r, size_t n) { // of which the caller reads apart
    const bool ok = !r->bad && n <= (size_t)(r->end - r->p);
    const uint8_t *p = take(r, ok ? n : SIZE_MAX);
    return (struct in){p, ok ? p + n : p, !ok};
}

struct out {
    uint8_t *p;
    size_t n, cap;
    bool bad; // no memory
};

static inline void put(struct out *o, const void *p, size_t n) {
    if (o->bad || !n) return;
    if (n > o->cap - o->n) {
        const size_t cap = 2 * o->cap + n + 1024;
        uint8_t *q = realloc(o->p, cap);
        if (!q) {
            o->bad = true;
            return;
        }
        o->p = q, o->cap = cap;
    }
    memcpy(o->p + o->n, p, n);
    o->n += n;
}

static inline void w1(struct out *o, uint32_t v) { put(o, &(uint8_t){(uint8_t)v}, 1); }
static inline void w2(struct out *o, uint32_t v) { put(o, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2); }
static inline void w4(struct out *o, uint32_t v) { w2(o, v >> 16), w2(o, v & 0xffff); }
static inline void set2(uint8_t *p, uint32_t v) { p[0] = (uint8_t)(v >> 8), p[1] = (uint8_t)v; }
static inline void set4(uint8_t *p, uint32_t v) { set2(p, v >> 16), set2(p + 2, v & 0xffff); }

struct file {
    const uint8_t **pool; // entries by index, at their tags; NULL: none
    uint32_t count;       // of the pool as it was
    uint32_t next;        // index of the next new entry
    uint32_t nans;        // entries that a NaN takes
    struct out added;     // new entries
    struct text this, source;
    struct rewriting *w;
};

static inline struct text utf8(const struct file *f, uint32_t i) {
    if (i >= f->count || !f->pool[i] || *f->pool[i] != POOL_UTF8) return (struct text){NULL, 0};
    return (struct text){f->pool[i] + 3, get16(f->pool[i] + 1)};
}

static inline struct text class_name(const struct file *f, uint32_t i) {
    if (i >= f->count || !f->pool[i] || *f->pool[i] != POOL_CLASS) return (struct text){NULL, 0};
    return utf8(f, get16(f->pool[i] + 1));
}

// Descriptor of the field or method of an entry, and its class and name; empty: it is none.
static inline struct text member_of(const struct file *f, uint32_t i, struct text *class, struct text *name) {
    const struct text none = {NULL, 0};
    if (i >= f->count || !f->pool[i] || *f->pool[i] < 9 || *f->pool[i] > 11) return none;
    const uint32_t pair = get16(f->pool[i] + 3);
    if (pair >= f->count || !f->pool[pair] || *f->pool[pair] != 12) return none;
    *class = class_name(f, get16(f->pool[i] + 1)), *name = utf8(f, get16(f->pool[pair] + 1));
    return utf8(f, get16(f->pool[pair] + 3));
}

static inline bool is(struct text t, const char *s) { return t.p && t.n == strlen(s) && !memcmp(t.p, s, t.n); }

#endif
