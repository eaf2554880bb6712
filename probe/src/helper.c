//go:build ignore

// helper.c: helper.h. The class, as Java would have it:
//
//   static void site(int high, int low) {
//     int phase = U.getInt(null, PHASE);
//     if (phase == 0) return;
//     long end = U.getLong(null, U.getLong(Thread.currentThread(), EETOP) + TLAB_TOP) - BASE;
//     if (end < 0 || end > BYTES) return; // the thread has no allocation buffer
//     long entry = (end >>> SHIFT << 2) + TABLE;
//     if ((U.getInt(null, entry) ^ phase) >>> 24 == 0) return; // the first one was that of the object
//     U.putInt(null, entry, phase | high << SITE_LOW | low);
//   }
//   static void array(int length, int high, int low) { // as site, but where the entry is in use:
//     outside(length, phase | high << SITE_LOW | low);
//   }
//   static void outside(int length, int entry) {
//     if (length < LARGE) return;
//     int type = U.getInt(null, EXPECTED + ((long) (entry & 0xffffff) << 2));
//     long place = ((long) ((length ^ length >>> 14 ^ type) & (OUTSIDE - 1)) << 3) + LOG;
//     long mine = (long) entry << 32 | (long) length;
//     long was = U.getLong(null, place);
//     if (was == mine) return;
//     if (((int) (was >>> 32) ^ entry) >>> 24 == 0) mine = mine >>> 56 << 56; // two sites
//     U.putLong(null, place, mine);
//   }
#include "helper.h"

#include <stdlib.h>
#include <string.h>

#include "classmake.h"
#include "vmstructs.h"

enum {
    ACONST_NULL = 1, ICONST_2 = 5, ICONST_3, LCONST_0 = 9, BIPUSH = 16, SIPUSH, LDC2_W = 20, ILOAD, LLOAD, ISTORE = 54,
    LSTORE, LADD = 97, LSUB = 101, ISHL = 120, LSHL, IUSHR = 124, LUSHR, IAND, IOR = 128, LOR, IXOR, I2L = 133,
    L2I = 136, LCMP = 148, IFEQ = 153, IFNE, IFLT, IFGT = 157, IF_ICMPLT = 161, RETURN = 177, GETSTATIC, PUTSTATIC,
    INVOKEVIRTUAL = 182, INVOKESTATIC = 184,
};

struct refs {
    uint32_t unsafe, get_long, get_int, put_int, put_long, thread, outside;             // fields and methods
    uint32_t phase, eetop, top, base, bytes, table, log, expected;                      // numbers
};

static void load(struct body *b, uint32_t c, uint32_t variable) { w1(&b->o, c), w1(&b->o, variable); }

// Loads phase | id.
static void load_mine(struct body *b, uint32_t phase, uint32_t high) {
    load(b, ILOAD, phase), load(b, ILOAD, high), load(b, BIPUSH, SITE_LOW), w1(&b->o, ISHL), w1(&b->o, IOR);
    load(b, ILOAD, high + 1), w1(&b->o, IOR);
}

// Variables: of site the id is 0 and 1; of array the length is 0 and the id 1 and 2. Behind them the phase, the end,
// the entry.
static void write_body(struct body *b, const struct refs *r, int shift, bool array) {
    const uint32_t high = array, phase = high + 2, end = phase + 1, entry = end + 2;
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), op(b, LDC2_W, r->phase), op(b, INVOKEVIRTUAL, r->get_int);
    load(b, ISTORE, phase);
    load(b, ILOAD, phase), leave_if(b, IFEQ);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL);
    op(b, GETSTATIC, r->unsafe), op(b, INVOKESTATIC, r->thread), op(b, LDC2_W, r->eetop);
    op(b, INVOKEVIRTUAL, r->get_long), op(b, LDC2_W, r->top), w1(&b->o, LADD), op(b, INVOKEVIRTUAL, r->get_long);
    op(b, LDC2_W, r->base), w1(&b->o, LSUB), load(b, LSTORE, end);
    load(b, LLOAD, end), w1(&b->o, LCONST_0), w1(&b->o, LCMP), leave_if(b, IFLT);
    load(b, LLOAD, end), op(b, LDC2_W, r->bytes), w1(&b->o, LCMP), leave_if(b, IFGT);
    load(b, LLOAD, end), load(b, BIPUSH, (uint32_t)shift), w1(&b->o, LUSHR);
    w1(&b->o, ICONST_2), w1(&b->o, LSHL), op(b, LDC2_W, r->table), w1(&b->o, LADD);
    load(b, LSTORE, entry);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), load(b, LLOAD, entry);
    op(b, INVOKEVIRTUAL, r->get_int), load(b, ILOAD, phase), w1(&b->o, IXOR), load(b, BIPUSH, SHADOW_PHASE);
    w1(&b->o, IUSHR);
    const size_t jump = b->o.n;
    if (array)
        op(b, IFNE, 0);
    else
        leave_if(b, IFEQ);
    if (array) {
        load(b, ILOAD, 0), load_mine(b, phase, high);
        op(b, INVOKESTATIC, r->outside), w1(&b->o, RETURN);
        if (!b->o.bad) set2(b->o.p + jump + 1, (uint32_t)(b->o.n - jump));
    }
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), load(b, LLOAD, entry);
    load_mine(b, phase, high), op(b, INVOKEVIRTUAL, r->put_int);
    body_end(b, RETURN);
}

static void write_outside(struct body *b, const struct refs *r) {
    enum { LENGTH, ENTRY, PLACE, MINE = 4, WAS = 6 };
    load(b, ILOAD, LENGTH), op(b, SIPUSH, SHADOW_LARGE), leave_if(b, IF_ICMPLT);
    load(b, ILOAD, LENGTH), load(b, ILOAD, LENGTH), load(b, BIPUSH, 14), w1(&b->o, IUSHR), w1(&b->o, IXOR);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), load(b, ILOAD, ENTRY), load(b, BIPUSH, 32 - SHADOW_PHASE);
    w1(&b->o, ISHL), load(b, BIPUSH, 32 - SHADOW_PHASE), w1(&b->o, IUSHR), w1(&b->o, I2L), w1(&b->o, ICONST_2);
    w1(&b->o, LSHL), op(b, LDC2_W, r->expected), w1(&b->o, LADD), op(b, INVOKEVIRTUAL, r->get_int), w1(&b->o, IXOR);
    op(b, SIPUSH, SHADOW_OUTSIDE - 1), w1(&b->o, IAND), w1(&b->o, I2L), w1(&b->o, ICONST_3), w1(&b->o, LSHL);
    op(b, LDC2_W, r->log), w1(&b->o, LADD), load(b, LSTORE, PLACE);
    load(b, ILOAD, ENTRY), w1(&b->o, I2L), load(b, BIPUSH, 32), w1(&b->o, LSHL);
    load(b, ILOAD, LENGTH), w1(&b->o, I2L), w1(&b->o, LOR), load(b, LSTORE, MINE);
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), load(b, LLOAD, PLACE), op(b, INVOKEVIRTUAL, r->get_long);
    load(b, LSTORE, WAS);
    load(b, LLOAD, WAS), load(b, LLOAD, MINE), w1(&b->o, LCMP), leave_if(b, IFEQ);
    load(b, LLOAD, WAS), load(b, BIPUSH, 32), w1(&b->o, LUSHR), w1(&b->o, L2I), load(b, ILOAD, ENTRY);
    w1(&b->o, IXOR), load(b, BIPUSH, SHADOW_PHASE), w1(&b->o, IUSHR);
    const size_t jump = b->o.n;
    op(b, IFNE, 0);
    load(b, LLOAD, MINE), load(b, BIPUSH, 56), w1(&b->o, LUSHR), load(b, BIPUSH, 56), w1(&b->o, LSHL);
    load(b, LSTORE, MINE);
    if (!b->o.bad) set2(b->o.p + jump + 1, (uint32_t)(b->o.n - jump));
    op(b, GETSTATIC, r->unsafe), w1(&b->o, ACONST_NULL), load(b, LLOAD, PLACE), load(b, LLOAD, MINE);
    op(b, INVOKEVIRTUAL, r->put_long);
    body_end(b, RETURN);
}

static void write_class(struct out *o, const char *name, const struct shadow_place *at, uint64_t eetop) {
    struct pool p = {.next = 1};
    const char *current = vm.major >= 21 ? "currentCarrierThread" : "currentThread";
    const uint32_t this = class_entry(&p, name), object = class_entry(&p, "java/lang/Object");
    const uint32_t code = utf8_entry(&p, "Code"), site = utf8_entry(&p, "site"), site_sig = utf8_entry(&p, "(II)V");
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
    r.put_long = member(&p, 10, unsafe, "putLong", "(Ljava/lang/Object;JJ)V");
    r.outside = member(&p, 10, this, "outside", "(II)V"), r.log = number(&p, at->outside);
    r.expected = number(&p, at->expected);
    const uint32_t array = utf8_entry(&p, "array"), array_sig = utf8_entry(&p, "(III)V");
    const uint32_t outside = utf8_entry(&p, "outside");
    struct body b = {.n = 0}, a = {.n = 0}, l = {.n = 0}, i = {.n = 0};
    write_body(&b, &r, at->shift, false), write_body(&a, &r, at->shift, true), write_outside(&l, &r);
    op(&i, INVOKESTATIC, get), op(&i, PUTSTATIC, r.unsafe), w1(&i.o, RETURN);
    w4(o, 0xcafebabe), w4(o, 49), w2(o, p.next); // 49: the last version without maps of the stack
    put(o, p.o.p, p.o.n);
    w2(o, 0x31), w2(o, this), w2(o, object), w2(o, 0); // public final super
    w2(o, 1), w2(o, 0x1a), w2(o, u), w2(o, u_sig), w2(o, 0);
    w2(o, 4);
    put_method(o, init, init_sig, code, &i.o);
    put_method(o, site, site_sig, code, &b.o);
    put_method(o, array, array_sig, code, &a.o);
    put_method(o, outside, site_sig, code, &l.o);
    w2(o, 0);
    o->bad |= p.o.bad || b.o.bad || a.o.bad || l.o.bad || i.o.bad;
    free(p.o.p), free(b.o.p), free(a.o.p), free(l.o.p), free(i.o.p);
}

bool helper_define(JNIEnv *jni, const char *name, const struct shadow_place *at, uint64_t eetop) {
    struct out o = {NULL, 0, 0, false};
    write_class(&o, name, at, eetop);
    jclass k = o.bad ? NULL : (*jni)->DefineClass(jni, name, NULL, (const jbyte *)o.p, (jsize)o.n);
    free(o.p);
    // The call initialises it, before any class calls it: the phase is 0 still.
    jmethodID m = k ? (*jni)->GetStaticMethodID(jni, k, "site", "(II)V") : NULL;
    if (m) (*jni)->CallStaticVoidMethod(jni, k, m, (jint)0, (jint)1);
    const bool ok = m && !(*jni)->ExceptionCheck(jni);
    (*jni)->ExceptionClear(jni);
    (*jni)->DeleteLocalRef(jni, k);
    return ok;
}
