//go:build ignore

// draghelper.c: draghelper.h. The class, as Java would have it:
//
//   static void use(Object o) {
//     if (o == null) return; // the instruction behind the call says so
//     note(U.getLong(o, 0));
//   }
//   static void note(long mark) { // an object's header
//     if (mark >>> 48 == 0) return;
//     U.putInt(null, TABLE + (mark >>> 46 & ~3), U.getInt(null, CLOCK));
//   }
//   static void held(Object o) { // which this thread has locked, so that what the header points at stays
//     long mark = U.getLong(o, 0);
//     if (mark == 0) return; // another thread makes a monitor of the lock
//     if ((mark & 1) == 0) mark = U.getLong(null, mark & ~3);
//     note(mark);
//   }
//
// Since JDK 25 a lock leaves the upper bits where they are, and the header need not point at anything that keeps them:
// there `held` notes the header as it is. All are inlined whatever their callers are (ForceInline), and do not count
// for how much the compilers inline. They know the header of an object that they need not allocate, so such objects
// cost nothing.
#include "draghelper.h"

#include <stdlib.h>
#include <string.h>

#include "classmake.h"
#include "uses.h"
#include "vmstructs.h"

enum {
    ACONST_NULL = 1, LCONST_0 = 9, LCONST_1 = 10, BIPUSH = 16, LDC2_W = 20, LLOAD_0 = 30, LLOAD_1, ALOAD_0 = 42,
    LSTORE_1 = 64, LADD = 97, LUSHR = 125, LAND = 127, L2I = 136, LCMP = 148, IFEQ = 153, IFNE = 154, RETURN = 177,
    GETSTATIC = 178, PUTSTATIC = 179, INVOKEVIRTUAL = 182, INVOKESTATIC = 184, IFNULL = 198,
};

struct refs {
    uint32_t unsafe, get_long, get_int, put_int, note, clock, table, pointer;
};

static void load_mark(struct body *b, const struct refs *r) {
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ALOAD_0), w1(&b->o, LCONST_0), op(b, INVOKEVIRTUAL, r->get_long);
}

static void write_use(struct body *b, const struct refs *r) {
    w1(&b->o, ALOAD_0), leave_if(b, IFNULL);
    load_mark(b, r);
    op(b, INVOKESTATIC, r->note);
    body_end(b, RETURN);
}

static void write_note(struct body *b, const struct refs *r) {
    w1(&b->o, LLOAD_0), w1(&b->o, BIPUSH), w1(&b->o, USES_SHIFT), w1(&b->o, LUSHR), w1(&b->o, LCONST_0);
    w1(&b->o, LCMP), leave_if(b, IFEQ);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL);
    w1(&b->o, LLOAD_0), w1(&b->o, BIPUSH), w1(&b->o, USES_SHIFT - 2), w1(&b->o, LUSHR), op(b, LDC2_W, r->pointer);
    w1(&b->o, LAND), op(b, LDC2_W, r->table), w1(&b->o, LADD);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), op(b, LDC2_W, r->clock), op(b, INVOKEVIRTUAL, r->get_int);
    op(b, INVOKEVIRTUAL, r->put_int);
    body_end(b, RETURN);
}

static void write_held(struct body *b, const struct refs *r) {
    load_mark(b, r);
    if (vm.major >= 25) {
        op(b, INVOKESTATIC, r->note);
        body_end(b, RETURN);
        return;
    }
    w1(&b->o, LSTORE_1);
    w1(&b->o, LLOAD_1), w1(&b->o, LCONST_0), w1(&b->o, LCMP), leave_if(b, IFEQ);
    w1(&b->o, LLOAD_1), w1(&b->o, LCONST_1), w1(&b->o, LAND), w1(&b->o, L2I);
    const size_t skip = b->o.n;
    op(b, IFNE, 0);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), w1(&b->o, LLOAD_1), op(b, LDC2_W, r->pointer);
    w1(&b->o, LAND), op(b, INVOKEVIRTUAL, r->get_long), w1(&b->o, LSTORE_1);
    if (!b->o.bad) set2(b->o.p + skip + 1, (uint32_t)(b->o.n - skip));
    w1(&b->o, LLOAD_1);
    op(b, INVOKESTATIC, r->note);
    body_end(b, RETURN);
}

// As put_method, with ForceInline. attribute: the name of the attribute for it; type: that of the annotation.
static void put_inlined(struct out *o, uint32_t name, uint32_t sig, uint32_t code, const struct out *body,
                        uint32_t attribute, uint32_t type) {
    const size_t at = o->n;
    put_method(o, name, sig, code, body);
    if (!o->bad) set2(o->p + at + 6, 2);
    w2(o, attribute), w4(o, 6), w2(o, 1), w2(o, type), w2(o, 0);
}

static void write_class(struct out *o, const char *name, const struct uses_place *at) {
    struct pool p = {.next = 1};
    const uint32_t this = class_entry(&p, name), object = class_entry(&p, "java/lang/Object");
    const uint32_t code = utf8_entry(&p, "Code"), sig = utf8_entry(&p, "(Ljava/lang/Object;)V");
    const uint32_t use = utf8_entry(&p, "use"), held = utf8_entry(&p, "held");
    const uint32_t note = utf8_entry(&p, "note"), note_sig = utf8_entry(&p, "(J)V");
    const uint32_t annotations = utf8_entry(&p, "RuntimeVisibleAnnotations");
    const uint32_t inlined = utf8_entry(&p, "Ljdk/internal/vm/annotation/ForceInline;");
    const uint32_t init = utf8_entry(&p, "<clinit>"), init_sig = utf8_entry(&p, "()V");
    const uint32_t u = utf8_entry(&p, "U"), u_sig = utf8_entry(&p, "Ljdk/internal/misc/Unsafe;");
    const uint32_t unsafe = class_entry(&p, "jdk/internal/misc/Unsafe");
    const uint32_t get = member(&p, 10, unsafe, "getUnsafe", "()Ljdk/internal/misc/Unsafe;");
    struct refs r = {.unsafe = member(&p, 9, this, "U", "Ljdk/internal/misc/Unsafe;"),
                     .get_long = member(&p, 10, unsafe, "getLong", "(Ljava/lang/Object;J)J")};
    r.get_int = member(&p, 10, unsafe, "getInt", "(Ljava/lang/Object;J)I");
    r.put_int = member(&p, 10, unsafe, "putInt", "(Ljava/lang/Object;JI)V");
    r.note = member(&p, 10, this, "note", "(J)V");
    r.clock = number(&p, at->clock), r.table = number(&p, at->table), r.pointer = number(&p, ~(uint64_t)3);
    struct body init_code = {.n = 0}, use_code = {.n = 0}, note_code = {.n = 0}, held_code = {.n = 0};
    op(&init_code, INVOKESTATIC, get), op(&init_code, PUTSTATIC, r.unsafe), body_end(&init_code, RETURN);
    write_use(&use_code, &r), write_note(&note_code, &r), write_held(&held_code, &r);
    w4(o, 0xcafebabe), w4(o, 49), w2(o, p.next); // 49: the last version without maps of the stack
    put(o, p.o.p, p.o.n);
    w2(o, 0x31), w2(o, this), w2(o, object), w2(o, 0); // public final super
    w2(o, 1), w2(o, 0x1a), w2(o, u), w2(o, u_sig), w2(o, 0);
    w2(o, 4);
    put_method(o, init, init_sig, code, &init_code.o);
    put_inlined(o, use, sig, code, &use_code.o, annotations, inlined);
    put_inlined(o, note, note_sig, code, &note_code.o, annotations, inlined);
    put_inlined(o, held, sig, code, &held_code.o, annotations, inlined);
    w2(o, 0);
    o->bad |= p.o.bad || init_code.o.bad || use_code.o.bad || note_code.o.bad || held_code.o.bad;
    free(p.o.p), free(init_code.o.p), free(use_code.o.p), free(note_code.o.p), free(held_code.o.p);
}

bool draghelper_define(JNIEnv *jni, const char *name, const struct uses_place *at) {
    struct out o = {NULL, 0, 0, false};
    write_class(&o, name, at);
    jclass k = o.bad ? NULL : (*jni)->DefineClass(jni, name, NULL, (const jbyte *)o.p, (jsize)o.n);
    free(o.p);
    // The call initialises it, before any class calls it.
    jmethodID m = k ? (*jni)->GetStaticMethodID(jni, k, "use", "(Ljava/lang/Object;)V") : NULL;
    if (m) (*jni)->CallStaticVoidMethod(jni, k, m, NULL);
    const bool ok = m && !(*jni)->ExceptionCheck(jni);
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, k);
    return ok;
}
