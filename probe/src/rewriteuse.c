//go:build ignore

// rewriteuse.c: rewriteuse.h. The object is below the operands on the stack. It is copied to the top, and the call
// takes it from there; the operands stay as they were. An object that was checked just before needs no check.
#include "rewriteuse.h"

#include "bytecode.h"

enum {
    ALOAD_0 = 42, IALOAD = 46, SALOAD = 53, IASTORE = 79, LASTORE = 80, DASTORE = 82, SASTORE = 86, POP = 87, POP2, DUP,
    DUP_X1, DUP_X2, DUP2, DUP2_X1, DUP2_X2, IFEQ = 153, GOTO = 167, TABLESWITCH = 170, LOOKUPSWITCH = 171, RETURN = 177,
    GETSTATIC = 178, GETFIELD = 180, PUTFIELD = 181, INVOKEVIRTUAL = 182, INVOKESTATIC = 184, INVOKEINTERFACE = 185,
    ARRAYLENGTH = 190, ATHROW = 191, MONITORENTER = 194, IFNULL = 198, IFNONNULL = 199, GOTO_W = 200,
    ACC_STATIC = 8, ACC_SYNCHRONIZED = 0x20,
};

// How jumps and handlers lead to an instruction.
enum { FORWARD = 1, BACK = 2 }; // BACK: also from behind it, or from anywhere

// Calls `each` for each place that the instruction at i may jump to.
typedef void to_target(struct uses *u, size_t from, int64_t to);

static void jumps_of_switch(struct uses *u, size_t i, size_t len, to_target *each) {
    const uint8_t *p = u->code + i + 4 - i % 4, *end = u->code + i + len;
    const bool table = u->code[i] == TABLESWITCH;
    each(u, i, (int64_t)i + (int32_t)get32(p));
    for (p += table ? 12 : 8; p + (table ? 4 : 8) <= end; p += 4) {
        if (!table) p += 4;
        each(u, i, (int64_t)i + (int32_t)get32(p));
    }
}

static void jumps(struct uses *u, size_t i, size_t len, to_target *each) {
    const uint8_t op = u->code[i], *p = u->code + i + 1;
    if ((op >= IFEQ && op <= GOTO) || op == IFNULL || op == IFNONNULL)
        each(u, i, (int64_t)i + (int16_t)get16(p));
    else if (op == GOTO_W)
        each(u, i, (int64_t)i + (int32_t)get32(p));
    else if (op == TABLESWITCH || op == LOOKUPSWITCH)
        jumps_of_switch(u, i, len, each);
}

static void reach(struct uses *u, size_t from, int64_t to) {
    if (to < 0 || to >= (int64_t)u->n) return; // which the layout refuses
    u->target[to] |= to <= (int64_t)from ? BACK : FORWARD;
}

// A jump forwards brings what was checked before it. Layout and writing go from the begin to the end, so all such jumps
// to a place come before it.
static void bring(struct uses *u, size_t from, int64_t to) {
    if (to > (int64_t)from && to < (int64_t)u->n) u->vars[to] &= flow_vars(&u->flow);
}

bool uses_look(struct uses *u, const struct file *f, const uint8_t *code, size_t code_n, struct in exceptions,
               uint32_t n) {
    u->f = f, u->code = code, u->n = code_n;
    u->target = calloc(code_n, 1), u->vars = malloc(code_n * sizeof *u->vars);
    if (!u->target || !u->vars) return false;
    for (size_t i = 0, len; i < code_n; i += len) {
        len = bytecode_length(code, code_n, i);
        if (!len || len > code_n - i) break; // which the layout refuses
        jumps(u, i, len, reach);
    }
    for (uint32_t i = 0; i < n; i++) {
        (void)u4(&exceptions);
        const uint32_t handler = u2(&exceptions);
        (void)u2(&exceptions);
        if (!exceptions.bad && handler < code_n) u->target[handler] |= BACK;
    }
    return true;
}

void uses_free(struct uses *u) { free(u->target), free(u->vars); }

void uses_method(struct uses *u, uint32_t flags, struct text name) {
    u->constructor = is(name, "<init>"); // a field may be stored before the object is one
    // HotSpot leaves out an empty finalizer, so that must stay empty.
    u->entry = !(flags & ACC_STATIC) && !u->constructor && !is(name, "finalize");
    u->held = (flags & ACC_SYNCHRONIZED) != 0;
}

void uses_restart(struct uses *u) {
    memset(u->vars, 0xff, u->n * sizeof *u->vars);
    flow_begin(&u->flow, u->entry);
    u->falls = true;
}

// Descriptor of the field or method that the instruction at i names, and its class.
static struct text named(const struct uses *u, size_t i, struct text *class) {
    struct text name;
    return member_of(u->f, get16(u->code + i + 1), class, &name);
}

enum { NONE, ONE, WIDE_ONE, TWO, MANY }; // operands above the object

static int operands(struct text d) { // of a method
    int one = 0, wide = 0;
    size_t i = 1;
    for (; i < d.n && d.p[i] != ')'; i++) {
        if (d.p[i] == 'J' || d.p[i] == 'D') {
            wide++;
            continue;
        }
        while (i < d.n && d.p[i] == '[') i++;
        if (i < d.n && d.p[i] == 'L')
            while (i < d.n && d.p[i] != ';') i++;
        one++;
    }
    if (i >= d.n || one + wide > 2 || (wide && one + wide > 1)) return MANY;
    return wide ? WIDE_ONE : one == 2 ? TWO : one ? ONE : NONE;
}

// How many operands are above the object that the instruction at i uses; -1: it uses none.
static int used(const struct uses *u, size_t i) {
    const uint8_t op = u->code[i];
    struct text class = {NULL, 0};
    if (op == GETFIELD || op == ARRAYLENGTH || op == MONITORENTER) return NONE;
    if (op >= IALOAD && op <= SALOAD) return ONE;
    if (op >= IASTORE && op <= SASTORE) return op == LASTORE || op == DASTORE ? MANY + 1 : TWO;
    if (op == PUTFIELD) {
        const struct text d = named(u, i, &class);
        if (u->constructor || !d.n) return -1;
        return *d.p == 'J' || *d.p == 'D' ? WIDE_ONE : ONE;
    }
    if (op != INVOKEVIRTUAL && op != INVOKEINTERFACE) return -1;
    const struct text d = named(u, i, &class);
    if (!d.n || *d.p != '(') return -1;
    if (op == INVOKEVIRTUAL && !u->f->w->outside(u->f->w->arg, class)) return -1; // it has a check of its own
    const int n = operands(d);
    if (n == MANY) u->f->w->unseen++;
    return n == MANY ? -1 : n;
}

static size_t call(const struct uses *u, bool held, uint8_t *to) {
    to[0] = INVOKESTATIC;
    set2(to + 1, u->f->count + (held ? HELPER_OTHER : HELPER_FIRST));
    return 3;
}

static bool ends(uint8_t op) { // the next instruction does not follow it
    return op == GOTO || (op >= TABLESWITCH && op <= RETURN) || op == ATHROW || op == GOTO_W;
}

static void step(struct uses *u, size_t i, size_t len) {
    const uint8_t op = u->code[i];
    uint32_t words = 0;
    if (op >= GETSTATIC && op <= PUTFIELD) {
        struct text class;
        const struct text d = named(u, i, &class);
        words = !d.n ? 0 : *d.p == 'J' || *d.p == 'D' ? 2 : 1;
    }
    jumps(u, i, len, bring);
    flow_step(&u->flow, u->code, i, len, words);
    u->falls = !ends(op);
}

size_t use_before(struct uses *u, size_t i, size_t len, uint8_t to[USE_MOST]) {
    static const struct {
        uint8_t n, below, code[4];
    } copies[] = {[NONE] = {1, 0, {DUP}},
                  [ONE] = {2, 1, {DUP2, POP}},
                  [WIDE_ONE] = {3, 2, {DUP2_X1, POP2, DUP_X2}},
                  [TWO] = {4, 2, {DUP_X2, POP, DUP2_X1, POP}},
                  [MANY + 1] = {4, 3, {DUP2_X2, POP2, DUP2_X2, POP}}}; // one, and a wide one above it
    size_t bytes = 0;
    if (u->target[i]) {
        const uint64_t vars = u->vars[i] & (u->falls ? flow_vars(&u->flow) : UINT64_MAX);
        flow_join(&u->flow, u->target[i] & BACK ? 0 : vars);
    }
    const int n = used(u, i);
    if (n >= 0 && !flow_seen(&u->flow, copies[n].below)) {
        memcpy(to, copies[n].code, copies[n].n);
        bytes = copies[n].n + call(u, false, to + copies[n].n);
        flow_see(&u->flow, copies[n].below);
    }
    step(u, i, len);
    return bytes;
}

void use_entry(const struct uses *u, uint8_t to[USE_ENTRY]) {
    to[0] = ALOAD_0;
    (void)call(u, u->held, to + 1);
}
