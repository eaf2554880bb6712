//go:build ignore

// rewritemade.c: rewritemade.h. Besides the bytecodes that allocate there are calls: of methods of the JVM, and of
// those that compiled code has a form of its own for, in which the bytecodes behind the call never run.
#include "rewritemade.h"

enum {
    INVOKEVIRTUAL = 182, INVOKESPECIAL, INVOKESTATIC, INVOKEDYNAMIC = 186, NEW, NEWARRAY, ANEWARRAY,
    MULTIANEWARRAY = 197,
};

static bool exactly(struct made *m, const uint8_t *p, size_t n, int dimensions) {
    *m = (struct made){MADE_TYPE, LENGTH_NONE, {p, n}, dimensions};
    return p && n;
}

static bool has_length(struct made *m, enum made_length length) {
    m->length = length;
    return true;
}

static bool some(struct made *m, enum made_kind kind) {
    *m = (struct made){.kind = kind};
    return true;
}

// Of an array's name or descriptor. That of objects may be one of a subclass.
static bool array(struct made *m, const uint8_t *p, size_t n) {
    if (n < 2 || p[0] != '[') return false;
    return n == 2 ? exactly(m, p, n, 0) : some(m, MADE_OBJECTS);
}

// Its last array is one of the innermost dimension that has a length.
static bool innermost(struct made *m, struct text t, size_t dimensions) {
    const size_t outer = dimensions ? dimensions - 1 : 0;
    return outer < t.n && t.p[outer] == '[' && exactly(m, t.p + outer, t.n - outer, 0);
}

static bool begins(struct text t, const char *s) { return t.n >= strlen(s) && !memcmp(t.p, s, strlen(s)); }

static bool called(const struct file *f, uint8_t op, uint32_t index, struct made *m) {
    struct text class, name;
    const struct text d = member_of(f, index, &class, &name);
    if (!d.n || !class.n || !name.n) return false;
    if (op == INVOKESTATIC) {
        const bool arrays = is(f->this, "java/util/Arrays"); // its callers say how long what it makes is
        if (is(class, "java/lang/reflect/Array"))
            return is(name, "newInstance") && some(m, MADE_ARRAY) &&
                   (arrays || !is(d, "(Ljava/lang/Class;I)Ljava/lang/Object;") || has_length(m, LENGTH_ON_TOP));
        const uint8_t *returned = memchr(d.p, ')', d.n);
        return is(class, "java/util/Arrays") && begins(name, "copyOf") && returned &&
               array(m, returned + 1, (size_t)(d.p + d.n - returned) - 1) &&
               // Compiled code has a form of its own of those alone that copy objects.
               has_length(m, m->kind == MADE_OBJECTS && !arrays ? LENGTH_OF_RESULT : LENGTH_NONE);
    }
    if (is(name, "clone") && is(d, "()Ljava/lang/Object;"))
        return *class.p == '[' ? array(m, class.p, class.n) && has_length(m, LENGTH_OF_RECEIVER)
                               : op == INVOKESPECIAL && is(class, "java/lang/Object") && some(m, MADE_INSTANCE);
    // What is read from a stream. The constructor that runs is that of a class above, mostly of Object.
    if (is(class, "java/lang/reflect/Constructor"))
        return is(name, "newInstance") && is(f->this, "java/io/ObjectStreamClass") && some(m, MADE_INSTANCE);
    if (!is(class, "jdk/internal/misc/Unsafe") && !is(class, "sun/misc/Unsafe")) return false;
    if (begins(name, "allocateUninitializedArray")) return some(m, MADE_ARRAY);
    // There it is that of a lambda, whose site is where its instruction is.
    return is(name, "allocateInstance") && !begins(f->this, "java/lang/invoke/") && some(m, MADE_INSTANCE);
}

bool made_at(const struct file *f, const uint8_t *code, size_t i, struct made *m) {
    static const char primitive[] = "ZCFDBSIJ";
    const uint8_t op = code[i];
    struct text t;
    switch (op) {
    case NEWARRAY:
        return code[i + 1] >= 4 && code[i + 1] < 12 &&
               exactly(m, (const uint8_t *)&primitive[code[i + 1] - 4], 1, 1) && has_length(m, LENGTH_OF_RESULT);
    case NEW:
    case ANEWARRAY:
        t = class_name(f, get16(code + i + 1));
        return exactly(m, t.p, t.n, op == ANEWARRAY) &&
               has_length(m, op == ANEWARRAY ? LENGTH_OF_RESULT : LENGTH_NONE);
    case MULTIANEWARRAY: return innermost(m, class_name(f, get16(code + i + 1)), code[i + 3]);
    case INVOKEDYNAMIC: return some(m, MADE_LAMBDA);
    case INVOKEVIRTUAL:
    case INVOKESPECIAL:
    case INVOKESTATIC: return called(f, op, get16(code + i + 1), m);
    default: return false;
    }
}
