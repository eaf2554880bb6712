//go:build ignore

// draghelper.c: draghelper.h. The class, as Java would have it:
//
//   static void use(Object o) {
//     if (o == null) return; // the instruction behind the call says so
//     int tag = (int) (U.getLong(o, 0) >>> 48); // of the header; 0 while it is locked
//     if (tag == 0) return;
//     hit(tag);
//   }
//   static void hit(int tag) { U.putInt(null, TABLE + ((long) tag << 2), U.getInt(null, CLOCK)); }
//   static void held(Object o) { // which this thread has locked, so that what the header points at stays
//     long mark = U.getLong(o, 0);
//     if ((mark & 1) == 0) mark = U.getLong(null, mark & ~3);
//     int tag = (int) (mark >>> 48);
//     if (tag == 0) return;
//     hit(tag);
//   }
//
// The compilers know the header of an object that they need not allocate, so such objects cost nothing.
#include "draghelper.h"

#include <stdlib.h>
#include <string.h>

#include "classmake.h"
#include "uses.h"

enum {
    ACONST_NULL = 1, ICONST_2 = 5, LCONST_0 = 9, LCONST_1 = 10, BIPUSH = 16, LDC2_W = 20, ILOAD_0 = 26, ILOAD_1,
    LLOAD_1 = 31, ALOAD_0 = 42, ISTORE_1 = 60, LSTORE_1 = 64, LADD = 97, LSHL = 121, LUSHR = 125, LAND = 127,
    I2L = 133, L2I = 136, LCMP = 148, IFEQ = 153, IFNE = 154, RETURN = 177, GETSTATIC = 178, PUTSTATIC = 179,
    INVOKEVIRTUAL = 182, INVOKESTATIC = 184, IFNULL = 198,
};

struct refs {
    uint32_t unsafe, get_long, get_int, put_int, hit, clock, table, pointer;
};

static void load_mark(struct body *b, const struct refs *r) {
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ALOAD_0), w1(&b->o, LCONST_0), op(b, INVOKEVIRTUAL, r->get_long);
}

// The header is on the stack.
static void hit_tag(struct body *b, const struct refs *r) {
    w1(&b->o, BIPUSH), w1(&b->o, USES_SHIFT), w1(&b->o, LUSHR), w1(&b->o, L2I), w1(&b->o, ISTORE_1);
    w1(&b->o, ILOAD_1), leave_if(b, IFEQ);
    w1(&b->o, ILOAD_1), op(b, INVOKESTATIC, r->hit);
    body_end(b, RETURN);
}

static void write_use(struct body *b, const struct refs *r) {
    w1(&b->o, ALOAD_0), leave_if(b, IFNULL);
    load_mark(b, r);
    hit_tag(b, r);
}

static void write_hit(struct body *b, const struct refs *r) {
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL);
    op(b, LDC2_W, r->table), w1(&b->o, ILOAD_0), w1(&b->o, I2L), w1(&b->o, ICONST_2), w1(&b->o, LSHL);
    w1(&b->o, LADD);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), op(b, LDC2_W, r->clock), op(b, INVOKEVIRTUAL, r->get_int);
    op(b, INVOKEVIRTUAL, r->put_int);
    body_end(b, RETURN);
}

static void write_held(struct body *b, const struct refs *r) {
    load_mark(b, r);
    w1(&b->o, LSTORE_1);
    w1(&b->o, LLOAD_1), w1(&b->o, LCONST_1), w1(&b->o, LAND), w1(&b->o, L2I);
    const size_t skip = b->o.n;
    op(b, IFNE, 0);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), w1(&b->o, LLOAD_1), op(b, LDC2_W, r->pointer);
    w1(&b->o, LAND), op(b, INVOKEVIRTUAL, r->get_long), w1(&b->o, LSTORE_1);
    if (!b->o.bad) set2(b->o.p + skip + 1, (uint32_t)(b->o.n - skip));
    w1(&b->o, LLOAD_1);
    w1(&b->o, BIPUSH), w1(&b->o, USES_SHIFT), w1(&b->o, LUSHR), w1(&b->o, L2I);
    op(b, INVOKESTATIC, r->hit); // entry 0 is nobody's
    body_end(b, RETURN);
}

static void write_class(struct out *o, const char *name, const struct uses_place *at) {
    struct pool p = {.next = 1};
    const uint32_t this = class_entry(&p, name), object = class_entry(&p, "java/lang/Object");
    const uint32_t code = utf8_entry(&p, "Code"), sig = utf8_entry(&p, "(Ljava/lang/Object;)V");
    const uint32_t use = utf8_entry(&p, "use"), held = utf8_entry(&p, "held");
    const uint32_t hit = utf8_entry(&p, "hit"), hit_sig = utf8_entry(&p, "(I)V");
    const uint32_t init = utf8_entry(&p, "<clinit>"), init_sig = utf8_entry(&p, "()V");
    const uint32_t u = utf8_entry(&p, "U"), u_sig = utf8_entry(&p, "Ljdk/internal/misc/Unsafe;");
    const uint32_t unsafe = class_entry(&p, "jdk/internal/misc/Unsafe");
    const uint32_t get = member(&p, 10, unsafe, "getUnsafe", "()Ljdk/internal/misc/Unsafe;");
    struct refs r = {.unsafe = member(&p, 9, this, "U", "Ljdk/internal/misc/Unsafe;"),
                     .get_long = member(&p, 10, unsafe, "getLong", "(Ljava/lang/Object;J)J")};
    r.get_int = member(&p, 10, unsafe, "getInt", "(Ljava/lang/Object;J)I");
    r.put_int = member(&p, 10, unsafe, "putInt", "(Ljava/lang/Object;JI)V");
    r.hit = member(&p, 10, this, "hit", "(I)V");
    r.clock = number(&p, at->clock), r.table = number(&p, at->table), r.pointer = number(&p, ~(uint64_t)3);
    struct body init_code = {.n = 0}, use_code = {.n = 0}, hit_code = {.n = 0}, held_code = {.n = 0};
    op(&init_code, INVOKESTATIC, get), op(&init_code, PUTSTATIC, r.unsafe), body_end(&init_code, RETURN);
    write_use(&use_code, &r), write_hit(&hit_code, &r), write_held(&held_code, &r);
    w4(o, 0xcafebabe), w4(o, 49), w2(o, p.next); // 49: the last version without maps of the stack
    put(o, p.o.p, p.o.n);
    w2(o, 0x31), w2(o, this), w2(o, object), w2(o, 0); // public final super
    w2(o, 1), w2(o, 0x1a), w2(o, u), w2(o, u_sig), w2(o, 0);
    w2(o, 4);
    put_method(o, init, init_sig, code, &init_code.o);
    put_method(o, use, sig, code, &use_code.o);
    put_method(o, hit, hit_sig, code, &hit_code.o);
    put_method(o, held, sig, code, &held_code.o);
    w2(o, 0);
    o->bad |= p.o.bad || init_code.o.bad || use_code.o.bad || hit_code.o.bad || held_code.o.bad;
    free(p.o.p), free(init_code.o.p), free(use_code.o.p), free(hit_code.o.p), free(held_code.o.p);
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
