//go:build ignore

// rewriteflow.c: rewriteflow.h. A value has a number, and a value of two words has two. Values of which nothing is
// known have new numbers, so none of them was checked.
#include "rewriteflow.h"

#include <string.h>

#include "classfile.h"

enum {
    ILOAD = 21, DLOAD = 24, ALOAD = 25, ALOAD_0 = 42, ALOAD_3 = 45, ISTORE = 54, LSTORE = 55, DSTORE = 57, ASTORE = 58,
    ISTORE_0 = 59, LSTORE_0 = 63, FSTORE_0 = 67, DSTORE_0 = 71, ASTORE_0 = 75, ASTORE_3 = 78, DUP = 89, DUP_X1, DUP_X2,
    DUP2, DUP2_X1, DUP2_X2, SWAP, GETSTATIC = 178, PUTSTATIC, GETFIELD, PUTFIELD, INVOKEVIRTUAL, INVOKEDYNAMIC = 186,
    CHECKCAST = 192, MONITORENTER = 194, WIDE = 196, MULTIANEWARRAY = 197, OPS = 202,
};

// Words that an instruction takes from the stack and puts there. Those that are not here have code below.
static const char taken[] =
    "000000000000000000000000000000000000000000000022222"
    "222121201111222211112222000034343333120000000242424"
    "242424242424241212232323242424011122211122211142244"
    "1111112222222200011121210000000000011110111001100";
static const char given[] =
    "011111111221112211112121201111222211112222000012121"
    "111000000000000000000000000000000000000000000121212"
    "121212121212121212121212121212021211212212111111111"
    "0000000000000000000000000000000000111100100000000";

void flow_begin(struct flow *f, bool this_seen) {
    f->next = 1;
    flow_join(f, this_seen);
}

static uint32_t fresh(struct flow *f) { return f->next++; }

static bool is_seen(const struct flow *f, uint32_t value) {
    if (!value) return false;
    for (uint32_t i = 0; i < f->nseen; i++)
        if (f->seen[i] == value) return true;
    return false;
}

static void see(struct flow *f, uint32_t value) {
    if (value && f->nseen < FLOW_SEEN && !is_seen(f, value)) f->seen[f->nseen++] = value;
}

uint64_t flow_vars(const struct flow *f) {
    uint64_t vars = 0;
    for (uint32_t i = 0; f->nseen && i < FLOW_VARS; i++) vars |= (uint64_t)is_seen(f, f->var[i]) << i;
    return vars;
}

void flow_join(struct flow *f, uint64_t vars) {
    f->depth = f->nseen = 0;
    for (uint32_t i = 0; i < FLOW_VARS; i++) {
        f->var[i] = fresh(f);
        if (vars >> i & 1) see(f, f->var[i]);
    }
}

void flow_forget(struct flow *f) { f->nseen = 0; }

static uint32_t *at(struct flow *f, uint32_t n) { return n < f->depth ? &f->stack[f->depth - 1 - n] : NULL; }

bool flow_seen(const struct flow *f, uint32_t n) { return n < f->depth && is_seen(f, f->stack[f->depth - 1 - n]); }

void flow_see(struct flow *f, uint32_t n) {
    if (at(f, n)) see(f, *at(f, n));
}

static void push(struct flow *f, uint32_t value) {
    if (f->depth == FLOW_STACK) { // what is lowest is given up
        memmove(f->stack, f->stack + 1, (FLOW_STACK - 1) * sizeof *f->stack);
        f->depth--;
    }
    f->stack[f->depth++] = value;
}

static uint32_t pop(struct flow *f) { return f->depth ? f->stack[--f->depth] : fresh(f); }

static void change(struct flow *f, uint32_t take, uint32_t give) {
    f->depth -= take < f->depth ? take : f->depth;
    while (give--) push(f, fresh(f));
}

// Copies the topmost words below so many others (dup and its kin).
static void copy(struct flow *f, uint32_t words, uint32_t below) {
    uint32_t v[4];
    const uint32_t n = words + below;
    for (uint32_t i = 0; i < n; i++) v[i] = pop(f); // v[0] was on top
    for (uint32_t i = words; i--;) push(f, v[i]);
    for (uint32_t i = n; i-- > words;) push(f, v[i]);
    for (uint32_t i = words; i--;) push(f, v[i]);
}

static void load(struct flow *f, uint32_t n) { push(f, n < FLOW_VARS ? f->var[n] : fresh(f)); }

static void store(struct flow *f, uint32_t n, uint32_t words, bool reference) {
    const uint32_t value = pop(f);
    if (words == 2) (void)pop(f);
    if (n < FLOW_VARS) f->var[n] = reference ? value : fresh(f);
    if (words == 2 && n + 1 < FLOW_VARS) f->var[n + 1] = fresh(f);
}

// Variables. false: the instruction is of another kind.
static bool variable(struct flow *f, uint8_t op, uint32_t n) {
    if (op == ALOAD)
        load(f, n);
    else if (op >= ILOAD && op <= DLOAD)
        change(f, 0, op % 2 ? 1 : 2); // iload 21, lload 22, fload 23, dload 24
    else if (op >= ISTORE && op <= ASTORE)
        store(f, n, op == LSTORE || op == DSTORE ? 2 : 1, op == ASTORE);
    else if (op >= ALOAD_0 && op <= ALOAD_3)
        load(f, op - ALOAD_0);
    else if (op >= ISTORE_0 && op <= ASTORE_3)
        store(f, (op - ISTORE_0) % 4u, (op >= LSTORE_0 && op < FSTORE_0) || (op >= DSTORE_0 && op < ASTORE_0) ? 2 : 1,
              op >= ASTORE_0);
    else
        return false;
    return true;
}

static void named(struct flow *f, uint8_t op, uint32_t words) { // an instruction that names a field
    const bool put = op == PUTSTATIC || op == PUTFIELD, object = op == GETFIELD || op == PUTFIELD;
    if (!words)
        f->depth = 0;
    else
        change(f, object + (put ? words : 0), put ? 0 : words);
}

void flow_step(struct flow *f, const uint8_t *code, size_t i, size_t len, uint32_t field) {
    const uint8_t op = code[i];
    if (op == WIDE) {
        if (len >= 4) (void)variable(f, code[i + 1], get16(code + i + 2)); // iinc changes no reference
        return;
    }
    if (op >= OPS || op == CHECKCAST || variable(f, op, len > 1 ? code[i + 1] : 0)) return;
    if (op >= DUP && op <= DUP2_X2) {
        copy(f, op < DUP2 ? 1 : 2, (op - DUP) % 3u);
    } else if (op == SWAP) {
        const uint32_t top = pop(f), below = pop(f);
        push(f, top), push(f, below);
    } else if (op >= GETSTATIC && op <= PUTFIELD) {
        named(f, op, field);
    } else if (op >= INVOKEVIRTUAL && op <= INVOKEDYNAMIC) {
        f->depth = 0; // arguments and result are not looked at
        flow_forget(f);
    } else if (op == MULTIANEWARRAY) {
        change(f, code[i + 3], 1);
    } else {
        change(f, (uint32_t)(taken[op] - '0'), (uint32_t)(given[op] - '0'));
        if (op == MONITORENTER) flow_forget(f);
    }
}
