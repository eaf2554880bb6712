//go:build ignore

// rewritecode.c: rewritecode.h.
#include "rewritecode.h"

#include "bytecode.h"
#include "rewritemade.h"
#include "rewriteuse.h"

enum {
    INVOKESTATIC = 184,
    SIPUSH = 17,
    BIPUSH = 16,
    TABLESWITCH = 170,
    LOOKUPSWITCH = 171,
    GOTO_W = 200,
    CALL = 8,    // bytes that are put behind an allocation
    WITH_LENGTH = 2, // more of them behind that of an array
    NOP = 0,
    DUP = 89,
    DUP_X1 = 90,
    SWAP = 95,
    ARRAYLENGTH = 190,
    LONG = 8000, // the compilers leave longer methods alone
    MORE_STACK = 3,
    NOWHERE = -1,
};

struct code {
    struct file *f;
    const uint8_t *code;
    size_t n, new_n;
    uint32_t *pos;           // n + 1; NOWHERE: no instruction begins there
    struct in tables, attrs; // of the class file
    uint32_t ntables, nattrs;
    const uint8_t *lines;
    size_t nlines;
    uint32_t method;
    struct uses uses; // where f->w->uses
};

static bool is_switch(uint8_t c) { return c == TABLESWITCH || c == LOOKUPSWITCH; }
static bool is_branch(uint8_t c) { return (c >= 153 && c <= 167) || c == 198 || c == 199; } // of two bytes
static size_t padding(size_t at) { return 3 - at % 4; }

// How much is put before and behind an instruction that allocates.
static size_t before_bytes(const struct made *m) { return m->length >= LENGTH_OF_RECEIVER; }
static size_t behind_bytes(const struct made *m) {
    return m->length == LENGTH_NONE ? CALL : m->length == LENGTH_ON_TOP ? CALL + 1 : CALL + WITH_LENGTH;
}

// Where each instruction will be, or the call before it. Returns how many calls there are, -1: the code is not
// understood.
static int layout(struct code *c) {
    const bool uses = c->f->w->uses;
    uint8_t call[USE_MOST];
    struct made made;
    int calls = uses && c->uses.entry;
    size_t at = calls ? USE_ENTRY : 0;
    if (uses) uses_restart(&c->uses);
    for (size_t i = 0; i <= c->n; i++) c->pos[i] = (uint32_t)NOWHERE;
    for (size_t i = 0, len; i < c->n; i += len) {
        const uint8_t op = c->code[i];
        len = bytecode_length(c->code, c->n, i);
        // jsr, ret and jsr_w make code that no table describes
        if (!len || len > c->n - i || op > GOTO_W || op == 168 || op == 169) return -1;
        if (op == 196 && c->code[i + 1] == 169) return -1;
        c->pos[i] = (uint32_t)at;
        const bool makes = !uses && made_at(c->f, c->code, i, &made);
        const size_t before = uses ? use_before(&c->uses, i, len, call) : makes ? before_bytes(&made) : 0;
        at += before + len, calls += makes || before;
        if (is_switch(op)) at += padding(c->pos[i]) - padding(i);
        if (makes) at += behind_bytes(&made);
    }
    c->pos[c->n] = (uint32_t)at;
    c->new_n = at;
    return calls;
}

// Where what was at i will be; false: nothing begins there.
static bool moved(const struct code *c, uint64_t i, uint32_t *to) {
    if (i > c->n || c->pos[i] == (uint32_t)NOWHERE) return false;
    *to = c->pos[i];
    return true;
}

// The new offset of a jump from i by d.
static bool jump(const struct code *c, size_t i, int32_t d, int32_t *to) {
    const int64_t target = (int64_t)i + d;
    uint32_t at;
    if (target < 0 || target >= (int64_t)c->n || !moved(c, (uint64_t)target, &at)) return false;
    *to = (int32_t)at - (int32_t)c->pos[i];
    return true;
}

static bool put_switch(struct out *o, const struct code *c, size_t i, size_t len) {
    const uint8_t *p = c->code + i + 1 + padding(i), *end = c->code + i + len;
    const bool table = c->code[i] == TABLESWITCH;
    int32_t d;
    w1(o, c->code[i]);
    put(o, "\0\0\0", padding(c->pos[i]));
    if (!jump(c, i, (int32_t)get32(p), &d)) return false;
    w4(o, (uint32_t)d);
    put(o, p + 4, table ? 8 : 4);
    for (p += table ? 12 : 8; p < end; p += 4) {
        if (!table) put(o, p, 4), p += 4;
        if (!jump(c, i, (int32_t)get32(p), &d)) return false;
        w4(o, (uint32_t)d);
    }
    return true;
}

// The site's id; 0: it has none, and nothing is done there.
static uint32_t site_id(struct code *c, size_t i, const struct made *made) {
    const uint32_t id = c->f->w->site(c->f->w->arg, c->method, c->pos[i] + (uint32_t)before_bytes(made), made);
    return id >> SITE_LOW > INT8_MAX ? 0 : id;
}

// So that the length, or an array that is as long, is below what the instruction makes.
static void put_before(struct out *o, const struct made *made, uint32_t id) {
    if (before_bytes(made)) w1(o, !id ? NOP : made->length == LENGTH_ON_TOP ? DUP_X1 : DUP);
}

// The call behind the allocation.
static void put_call(struct out *o, struct code *c, const struct made *made, uint32_t id) {
    if (!id) {
        put(o, "\0\0\0\0\0\0\0\0\0\0", behind_bytes(made));
        return;
    }
    if (made->length == LENGTH_OF_RESULT)
        w1(o, DUP), w1(o, ARRAYLENGTH);
    else if (made->length == LENGTH_OF_RECEIVER)
        w1(o, SWAP), w1(o, ARRAYLENGTH);
    else if (made->length)
        w1(o, SWAP);
    // No constant of the class: HotSpot would keep those of all recordings.
    w1(o, BIPUSH), w1(o, id >> SITE_LOW), w1(o, SIPUSH), w2(o, id & ((1u << SITE_LOW) - 1));
    w1(o, INVOKESTATIC), w2(o, c->f->count + (made->length ? HELPER_OTHER : HELPER_FIRST));
    c->f->w->sites++;
}

static bool put_instruction(struct out *o, const struct code *c, size_t i, size_t len) {
    const uint8_t op = c->code[i];
    int32_t d;
    if (is_switch(op)) return put_switch(o, c, i, len);
    if (is_branch(op)) {
        if (!jump(c, i, (int16_t)get16(c->code + i + 1), &d) || d != (int16_t)d) return false;
        w1(o, op), w2(o, (uint32_t)d & 0xffff);
    } else if (op == GOTO_W) {
        if (!jump(c, i, (int32_t)get32(c->code + i + 1), &d)) return false;
        w1(o, op), w4(o, (uint32_t)d);
    } else {
        put(o, c->code + i, len);
    }
    return true;
}

static bool put_code(struct out *o, struct code *c) {
    const size_t from = o->n;
    const bool uses = c->f->w->uses;
    uint8_t call[USE_MOST];
    struct made made;
    if (uses && c->uses.entry) use_entry(&c->uses, call), put(o, call, USE_ENTRY), c->f->w->sites++;
    if (uses) uses_restart(&c->uses);
    for (size_t i = 0, len; i < c->n; i += len) {
        len = bytecode_length(c->code, c->n, i);
        const size_t before = uses ? use_before(&c->uses, i, len, call) : 0;
        put(o, call, before);
        c->f->w->sites += before > 0;
        const bool makes = !uses && made_at(c->f, c->code, i, &made);
        const uint32_t id = makes ? site_id(c, i, &made) : 0;
        if (makes) put_before(o, &made, id);
        if (!put_instruction(o, c, i, len)) return false;
        if (makes) put_call(o, c, &made, id);
    }
    return o->bad || o->n - from == c->new_n;
}

static bool put_exceptions(struct out *o, struct code *c) {
    struct in r = c->tables;
    w2(o, c->ntables);
    for (uint32_t i = 0; i < c->ntables; i++) {
        uint32_t from, to, handler;
        const uint32_t a = u2(&r), b = u2(&r), h = u2(&r);
        if (!moved(c, a, &from) || !moved(c, b, &to) || !moved(c, h, &handler) || h >= c->n) return false;
        w2(o, from), w2(o, to), w2(o, handler), w2(o, u2(&r));
    }
    return !r.bad;
}

static bool put_lines(struct out *o, struct code *c, struct in *r) {
    const uint32_t n = u2(r);
    w2(o, n);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        uint32_t at;
        if (!moved(c, u2(r), &at)) return false;
        w2(o, at), w2(o, u2(r));
    }
    return !r->bad;
}

static bool put_variables(struct out *o, struct code *c, struct in *r) {
    const uint32_t n = u2(r);
    w2(o, n);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t a = u2(r), length = u2(r);
        uint32_t from, to;
        if (!moved(c, a, &from) || !moved(c, (uint64_t)a + length, &to)) return false;
        w2(o, from), w2(o, to - from);
        put(o, take(r, 6), 6);
    }
    return !r->bad;
}

static bool put_types(struct out *o, struct code *c, struct in *r, uint32_t n) {
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t tag = u1(r);
        uint32_t at;
        w1(o, tag);
        if (tag == 7) {
            w2(o, u2(r));
        } else if (tag == 8) {
            if (!moved(c, u2(r), &at)) return false;
            w2(o, at);
        } else if (tag > 8) {
            return false;
        }
    }
    return !r->bad;
}

// A frame whose offset is now delta behind the last one.
static bool put_frame(struct out *o, struct code *c, struct in *r, uint32_t tag, uint32_t delta) {
    if (tag < 64) {
        if (delta < 64) return w1(o, delta), true;
        return w1(o, 251), w2(o, delta), true;
    }
    if (tag < 128 || tag == 247) {
        if (delta < 64 && tag != 247)
            w1(o, 64 + delta);
        else
            w1(o, 247), w2(o, delta);
        return put_types(o, c, r, 1);
    }
    w1(o, tag), w2(o, delta);
    if (tag <= 251) return true;
    if (tag < 255) return put_types(o, c, r, tag - 251);
    for (int i = 0; i < 2; i++) { // variables, and the stack
        const uint32_t n = u2(r);
        w2(o, n);
        if (!put_types(o, c, r, n)) return false;
    }
    return true;
}

static bool put_frames(struct out *o, struct code *c, struct in *r) {
    const uint32_t n = u2(r);
    int64_t old = -1, new = -1;
    w2(o, n);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint32_t tag = u1(r);
        if (tag >= 128 && tag < 247) return false;
        const uint32_t delta = tag < 64 ? tag : tag < 128 ? tag - 64 : u2(r);
        uint32_t at;
        old += delta + 1;
        if (old >= (int64_t)c->n || !moved(c, (uint64_t)old, &at)) return false;
        if (!put_frame(o, c, r, tag, (uint32_t)((int64_t)at - new - 1))) return false;
        new = at;
    }
    return !r->bad;
}

// All attributes of the code. Those that nobody here knows may hold positions.
static bool put_attributes(struct out *o, struct code *c) {
    struct in r = c->attrs;
    w2(o, c->nattrs);
    for (uint32_t i = 0; i < c->nattrs && !r.bad; i++) {
        const uint32_t index = u2(&r);
        const struct text name = utf8(c->f, index);
        struct in a = part(&r, u4(&r));
        w2(o, index);
        const size_t length = o->n;
        bool ok = false;
        w4(o, 0);
        if (is(name, "LineNumberTable"))
            ok = put_lines(o, c, &a);
        else if (is(name, "LocalVariableTable") || is(name, "LocalVariableTypeTable"))
            ok = put_variables(o, c, &a);
        else if (is(name, "StackMapTable"))
            ok = put_frames(o, c, &a);
        if (!ok || a.bad || a.p != a.end || o->bad) return false;
        set4(o->p + length, (uint32_t)(o->n - length - 4));
    }
    return !r.bad && r.p == r.end;
}

// Finds the first table of lines.
static void find_lines(struct code *c) {
    struct in r = c->attrs;
    for (uint32_t i = 0; i < c->nattrs && !r.bad; i++) {
        const struct text name = utf8(c->f, u2(&r));
        struct in a = part(&r, u4(&r));
        if (a.bad || c->lines || !is(name, "LineNumberTable")) continue;
        const uint32_t n = u2(&a);
        if (!a.bad && (size_t)(a.end - a.p) == 4 * (size_t)n) c->lines = a.p, c->nlines = n;
    }
}

// What was there of the code's attribute; false: it is not as it should be.
static bool read_code(struct code *c, struct in *r, uint32_t *stack, uint32_t *locals) {
    *stack = u2(r), *locals = u2(r);
    c->n = u4(r);
    c->code = take(r, c->n);
    c->ntables = u2(r);
    c->tables = part(r, 8 * (size_t)c->ntables);
    c->nattrs = u2(r);
    c->attrs = *r;
    return !r->bad && c->n && c->n <= CLASS_LIMIT;
}

// Asks who has the ids of sites. false: the method gets no calls.
static bool name_method(struct code *c, struct text name, struct text sig) {
    if (c->f->w->uses) return true;
    find_lines(c);
    for (size_t i = 0; i < c->nlines; i++) {
        uint32_t at;
        if (!moved(c, get16(c->lines + 4 * i), &at)) return false;
    }
    const struct rewritten m = {.class = c->f->this, .name = name, .sig = sig, .file = c->f->source,
                                .lines = c->lines, .nlines = c->nlines, .pos = c->pos};
    return (c->method = c->f->w->method(c->f->w->arg, &m)) != 0;
}

// The attribute with calls. 1: written; 0: it needs none; -1: it must stay as it is.
static int put_body(struct out *o, struct code *c, struct in r, const struct method *m) {
    uint32_t stack, locals;
    if (!read_code(c, &r, &stack, &locals)) return -1;
    if (c->f->w->uses) {
        if (!uses_look(&c->uses, c->f, c->code, c->n, c->tables, c->ntables)) return -1;
        uses_method(&c->uses, m->flags, m->name);
    }
    c->pos = malloc((c->n + 1) * sizeof *c->pos);
    if (!c->pos) return -1;
    const uint32_t unseen = c->f->w->unseen;
    const int n = layout(c);
    c->f->w->unseen = unseen; // writing counts them
    if (n <= 0) return n;
    if (stack > CLASS_LIMIT - MORE_STACK || c->new_n > CLASS_LIMIT || (c->n <= LONG && c->new_n > LONG)) return -1;
    if (!name_method(c, m->name, m->sig)) return -1;
    const size_t length = o->n;
    w4(o, 0);
    w2(o, stack + MORE_STACK), w2(o, locals), w4(o, (uint32_t)c->new_n);
    if (!put_code(o, c) || !put_exceptions(o, c) || !put_attributes(o, c) || o->bad) return -1;
    set4(o->p + length, (uint32_t)(o->n - length - 4));
    return 1;
}

void rewrite_code(struct out *o, struct file *f, struct in body, const struct method *m) {
    struct code c = {.f = f};
    const size_t at = o->n, added = f->added.n;
    const uint32_t next = f->next, sites = f->w->sites;
    const int r = put_body(o, &c, body, m);
    free(c.pos), uses_free(&c.uses);
    if (r > 0) {
        f->w->methods++;
        return;
    }
    f->w->refused += r < 0;
    o->n = at, f->added.n = added, f->next = next, f->w->sites = sites;
    const size_t n = (size_t)(body.end - body.p);
    w4(o, (uint32_t)n);
    put(o, body.p, n);
}
