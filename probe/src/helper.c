//go:build ignore

// helper.c: helper.h. The class, as Java would have it:
//
//   static void site(int id) {
//     int phase = U.getInt(null, PHASE);
//     if (phase == 0) return;
//     long end = U.getLong(null, U.getLong(Thread.currentThread(), EETOP) + TLAB_TOP) - BASE;
//     if (end < 0 || end > BYTES) return; // the thread has no allocation buffer
//     long entry = (end >>> SHIFT << 2) + TABLE;
//     if ((U.getInt(null, entry) ^ phase) >>> 24 == 0) return; // the first one was that of the object
//     U.putInt(null, entry, phase | id);
//   }
#include "helper.h"

#include <stdlib.h>
#include <string.h>

#include "classmake.h"
#include "vmstructs.h"

enum {
    ACONST_NULL = 1, ICONST_2 = 5, LCONST_0 = 9, BIPUSH = 16, LDC2_W = 20, ILOAD_0 = 26, ILOAD_1, LLOAD_2 = 32,
    LLOAD = 22, LSTORE = 55, ISTORE_1 = 60, LSTORE_2 = 65, LADD = 97, LSUB = 101, LSHL = 121, IUSHR = 124,
    LUSHR = 125, IOR = 128, IXOR = 130, LCMP = 148, IFEQ = 153, IFLT = 155, IFGT = 157, RETURN = 177,
    GETSTATIC = 178, PUTSTATIC = 179, INVOKEVIRTUAL = 182, INVOKESTATIC = 184,
};

struct refs {
    uint32_t unsafe, get_long, get_int, put_int, thread, phase, eetop, top, base, bytes, table;
};

static void write_body(struct body *b, const struct refs *r, int shift) {
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), op(b, LDC2_W, r->phase), op(b, INVOKEVIRTUAL, r->get_int);
    w1(&b->o, ISTORE_1);
    w1(&b->o, ILOAD_1), leave_if(b, IFEQ);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL);
    op(b, GETSTATIC, r->unsafe), op(b, INVOKESTATIC, r->thread), op(b, LDC2_W, r->eetop);
    op(b, INVOKEVIRTUAL, r->get_long), op(b, LDC2_W, r->top), w1(&b->o, LADD), op(b, INVOKEVIRTUAL, r->get_long);
    op(b, LDC2_W, r->base), w1(&b->o, LSUB), w1(&b->o, LSTORE_2);
    w1(&b->o, LLOAD_2), w1(&b->o, LCONST_0), w1(&b->o, LCMP), leave_if(b, IFLT);
    w1(&b->o, LLOAD_2), op(b, LDC2_W, r->bytes), w1(&b->o, LCMP), leave_if(b, IFGT);
    w1(&b->o, LLOAD_2), w1(&b->o, BIPUSH), w1(&b->o, (uint32_t)shift), w1(&b->o, LUSHR);
    w1(&b->o, ICONST_2), w1(&b->o, LSHL), op(b, LDC2_W, r->table), w1(&b->o, LADD);
    w1(&b->o, LSTORE), w1(&b->o, 4);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), w1(&b->o, LLOAD), w1(&b->o, 4);
    op(b, INVOKEVIRTUAL, r->get_int), w1(&b->o, ILOAD_1), w1(&b->o, IXOR), w1(&b->o, BIPUSH);
    w1(&b->o, SHADOW_PHASE), w1(&b->o, IUSHR), leave_if(b, IFEQ);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), w1(&b->o, LLOAD), w1(&b->o, 4);
    w1(&b->o, ILOAD_1), w1(&b->o, ILOAD_0), w1(&b->o, IOR), op(b, INVOKEVIRTUAL, r->put_int);
    body_end(b, RETURN);
}

static void write_class(struct out *o, const char *name, const struct shadow_place *at, uint64_t eetop) {
    struct pool p = {.next = 1};
    const char *current = vm.major >= 21 ? "currentCarrierThread" : "currentThread";
    const uint32_t this = class_entry(&p, name), object = class_entry(&p, "java/lang/Object");
    const uint32_t code = utf8_entry(&p, "Code"), site = utf8_entry(&p, "site"), site_sig = utf8_entry(&p, "(I)V");
    const uint32_t init = utf8_entry(&p, "<clinit>"), init_sig = utf8_entry(&p, "()V");
    const uint32_t u = utf8_entry(&p, "U"), u_sig = utf8_entry(&p, "Ljdk/internal/misc/Unsafe;");
    const uint32_t unsafe = class_entry(&p, "jdk/internal/misc/Unsafe"), thread = class_entry(&p, "java/lang/Thread");
    const uint32_t get = member(&p, 10, unsafe, "getUnsafe", "()Ljdk/internal/misc/Unsafe;");
    struct refs r = {.unsafe = member(&p, 9, this, "U", "Ljdk/internal/misc/Unsafe;"),
                     .get_long = member(&p, 10, unsafe, "getLong", "(Ljava/lang/Object;J)J")};
    r.get_int = member(&p, 10, unsafe, "getInt", "(Ljava/lang/Object;J)I");
    r.put_int = member(&p, 10, unsafe, "putInt", "(Ljava/lang/Object;JI)V");
    r.thread = member(&p, 10, thread, current, "()Ljava/lang/Thread;");
    r.phase = number(&p, at->phase), r.eetop = number(&p, eetop);
    r.top = number(&p, (uint64_t)(vm.thread_tlab + vm.tlab_top));
    r.base = number(&p, at->base), r.bytes = number(&p, at->bytes), r.table = number(&p, at->table);
    struct body b = {.n = 0}, i = {.n = 0};
    write_body(&b, &r, at->shift);
    op(&i, INVOKESTATIC, get), op(&i, PUTSTATIC, r.unsafe), w1(&i.o, RETURN);
    w4(o, 0xcafebabe), w4(o, 49), w2(o, p.next); // 49: the last version without maps of the stack
    put(o, p.o.p, p.o.n);
    w2(o, 0x31), w2(o, this), w2(o, object), w2(o, 0); // public final super
    w2(o, 1), w2(o, 0x1a), w2(o, u), w2(o, u_sig), w2(o, 0);
    w2(o, 2);
    put_method(o, init, init_sig, code, &i.o);
    put_method(o, site, site_sig, code, &b.o);
    w2(o, 0);
    o->bad |= p.o.bad || b.o.bad || i.o.bad;
    free(p.o.p), free(b.o.p), free(i.o.p);
}

bool helper_define(JNIEnv *jni, const char *name, const struct shadow_place *at, uint64_t eetop) {
    struct out o = {NULL, 0, 0, false};
    write_class(&o, name, at, eetop);
    jclass k = o.bad ? NULL : (*jni)->DefineClass(jni, name, NULL, (const jbyte *)o.p, (jsize)o.n);
    free(o.p);
    // The call initialises it, before any class calls it: the phase is 0 still.
    jmethodID m = k ? (*jni)->GetStaticMethodID(jni, k, "site", "(I)V") : NULL;
    if (m) (*jni)->CallStaticVoidMethod(jni, k, m, (jint)1);
    const bool ok = m && !(*jni)->ExceptionCheck(jni);
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, k);
    return ok;
}
