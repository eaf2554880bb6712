//go:build ignore

// refnames.c: refnames.h.
#include "refnames.h"

#include <stdlib.h>
#include <string.h>

#include "classtable.h"
#include "guard.h"
#include "heapcam_abi.h"
#include "jvm.h"
#include "os.h"
#include "recording.h"
#include "samples.h"
#include "sites.h"
#include "vmstructs.h"

enum { MAX_NAME = 1000, RECORDS = 1024 };

struct field {
    uint32_t offset;
    bool is_static;
    char *name, *sig; // of JVMTI
};
struct fields { // of a class alone, without those that it inherits
    struct field *f;
    uint32_t n;
    bool known;
};
struct names {
    JNIEnv *jni;
    const struct refs *r;
    struct refhead *h;
    jclass *of;       // of each class that is loaded still, by its index
    struct fields *fields;
};

// ---- fields -------------------------------------------------------------------------------------
// HotSpot's ids say where a field is: of an instance in the id itself, of a static in what it points at. Both are
// checked: an offset against the class's map, a static against the class that it names.
static bool offset_of(jfieldID id, uint64_t klass, struct field *f) {
    const uint64_t v = (uintptr_t)id;
    uint64_t of_static[3]; // the class, the next one, the offset
    f->is_static = (v & 3) == 0;
    if ((v & 3) == 2) {
        f->offset = (uint32_t)(v >> 2);
        return v >> 2 < HC_MAX_INSTANCE;
    }
    if (v & 3 || !safe_read(of_static, v, sizeof of_static) || of_static[0] != klass) return false;
    f->offset = (uint32_t)of_static[2];
    return f->offset < HC_MAX_INSTANCE;
}

static void deallocate(char *s) {
    if (s) (*jvmti)->Deallocate(jvmti, (unsigned char *)s);
}

static const struct fields *fields_of(struct names *w, uint32_t class) {
    struct fields *to = &w->fields[class];
    if (to->known || !w->of[class]) return to;
    to->known = true;
    jint n = 0;
    jfieldID *ids = NULL;
    if ((*jvmti)->GetClassFields(jvmti, w->of[class], &n, &ids) || !ids) return to;
    to->f = n > 0 ? calloc((size_t)n, sizeof *to->f) : NULL;
    for (jint i = 0; to->f && i < n; i++) {
        struct field f = {.name = NULL};
        if ((*jvmti)->GetFieldName(jvmti, w->of[class], ids[i], &f.name, &f.sig, NULL)) continue;
        const bool reference = f.sig && (f.sig[0] == 'L' || f.sig[0] == '[');
        if (reference && offset_of(ids[i], (uint64_t)(uintptr_t)w->r->class[class].klass, &f))
            to->f[to->n++] = f;
        else
            deallocate(f.name), deallocate(f.sig);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)ids);
    return to;
}

// The field of a class at an offset, its own or an inherited one; in: the class that declares it.
static const struct field *field_at(struct names *w, uint32_t class, uint32_t offset, bool is_static, uint32_t *in) {
    for (int depth = 0; class && depth < 256; depth++) {
        const struct fields *all = fields_of(w, class);
        *in = class;
        for (uint32_t i = 0; i < all->n; i++)
            if (all->f[i].offset == offset && all->f[i].is_static == is_static) return &all->f[i];
        const char *super = w->r->class[class].super;
        class = !is_static && super ? refwalk_class(w->r, super) : 0;
    }
    return NULL;
}

static void put_name(struct enc *e, const char *s) {
    const size_t n = s ? strlen(s) : 0;
    put_str(e, s ? s : "", n > MAX_NAME ? 0 : n);
}

static void put_field(struct names *w, uint32_t class, uint32_t slot, uint32_t flags, uint32_t strength,
                      const struct field *f, uint32_t in) {
    struct enc e = refhead_begin(w->h, 64 + 2 * MAX_NAME);
    put8(&e, HC_EV_REFFIELD);
    put_u(&e, class);
    put_u(&e, slot);
    put_u(&e, flags);
    put_u(&e, strength);
    put_u(&e, f ? in : 0);
    put_name(&e, f ? f->name : "");
    put_name(&e, f ? f->sig : "");
    refhead_end(w->h, &e);
}

static void put_instance_fields(struct names *w, uint32_t class, const struct reftype *t) {
    const uint32_t step = vm.compressed_oops ? 4 : 8;
    uint32_t slot = 0;
    for (uint32_t b = 0; b < t->nblocks; b++) {
        const uint32_t off = w->r->block[t->block + 2 * b], n = w->r->block[t->block + 2 * b + 1];
        for (uint32_t i = 0; i < n; i++, slot++) {
            uint32_t in = 0;
            const struct field *f = field_at(w, class, off + i * step, false, &in);
            const bool referent = t->kind == HC_RC_REFERENCE && slot == 0;
            if (f || referent) put_field(w, class, slot, 0, referent ? t->strength : HC_RS_STRONG, f, in);
        }
    }
}

// first: where statics begin in a mirror
static void put_statics(struct names *w, uint32_t class, uint32_t first) {
    const uint32_t step = vm.compressed_oops ? 4 : 8;
    const struct fields *all = fields_of(w, class);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct field *f = &all->f[i];
        if (!f->is_static || f->offset < first || (f->offset - first) % step) continue;
        const uint32_t slot = (f->offset - first) / step;
        if (slot < w->r->class[class].statics) put_field(w, class, slot, HC_RF_STATIC, HC_RS_STRONG, f, class);
    }
}

// ---- classes ------------------------------------------------------------------------------------
static void put_class(struct names *w, uint32_t index, uint32_t type, const struct reftype *t, uint32_t statics) {
    char *sig = NULL;
    if (!type && index <= w->r->classes && w->of[index]) // others are named by their types
        (*jvmti)->GetClassSignature(jvmti, w->of[index], &sig, NULL);
    const size_t n = sig ? strlen(sig) : 0;
    const bool object = sig && n > 2 && sig[0] == 'L';
    const char *name = object ? sig + 1 : sig ? sig : "";
    struct enc e = refhead_begin(w->h, 80 + MAX_NAME);
    put8(&e, HC_EV_REFCLASS);
    put_u(&e, index);
    put_u(&e, type);
    put_u(&e, t ? t->kind : HC_RC_INSTANCE);
    put_u(&e, t ? t->slots : 0);
    put_u(&e, statics);
    put_str(&e, name, n > MAX_NAME ? 0 : object ? n - 2 : n);
    refhead_end(w->h, &e);
    deallocate(sig);
}

static void find_classes(struct names *w) {
    jint n = 0;
    jclass *all = NULL;
    if ((*jvmti)->GetLoadedClasses(jvmti, &n, &all)) return;
    for (jint i = 0; i < n; i++) {
        uint64_t klass;
        uint32_t class = refwalk_klass_of(all[i], &klass) ? refwalk_class(w->r, (char *)(uintptr_t)klass) : 0;
        if (class) w->of[class] = all[i];
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)all);
}

static void put_classes(struct names *w) {
    const struct refs *r = w->r;
    uint32_t first = 0, index = r->classes;
    for (uint32_t i = 0; i < r->types; i++)
        if (r->type[i].kind == HC_RC_MIRROR) first = r->map[TSLOT(r->type[i].type)].header;
    for (uint32_t c = 1; c <= r->classes; c++) {
        const struct refclass *k = &r->class[c];
        const struct reftype *t = k->of_type ? &r->type[k->of_type - 1] : NULL;
        put_class(w, c, t ? t->type : k->type, t, k->statics);
        if (t && t->nblocks) put_instance_fields(w, c, t);
        if (first && k->statics) put_statics(w, c, first);
    }
    for (uint32_t i = 0; i < r->types; i++) // of classes that are gone
        if (!r->type[i].class) put_class(w, ++index, r->type[i].type, &r->type[i], 0);
}

// ---- roots --------------------------------------------------------------------------------------
enum { THREADS = 4096 };
static PER_RECORDING struct {
    int64_t tid; // of Java
    uint32_t id; // of the recording, 0: none
} threads[THREADS];

static void name_threads(JNIEnv *jni) {
    jint n = 0;
    jthread *all = NULL;
    jclass k = (*jni)->FindClass(jni, "java/lang/Thread");
    jfieldID tid = k ? (*jni)->GetFieldID(jni, k, "tid", "J") : NULL;
    if (tid && !(*jvmti)->GetAllThreads(jvmti, &n, &all)) {
        for (jint i = 0; i < n; i++) {
            const int64_t t = (*jni)->GetLongField(jni, all[i], tid);
            if (threads[(uint64_t)t % THREADS].id && threads[(uint64_t)t % THREADS].tid == t) continue;
            threads[(uint64_t)t % THREADS].tid = t;
            threads[(uint64_t)t % THREADS].id = samples_define_thread(jvmti, jni, all[i]);
        }
        (*jvmti)->Deallocate(jvmti, (unsigned char *)all);
    }
    (*jni)->ExceptionClear(jni);
}

static void put_roots(struct names *w) {
    const struct refs *r = w->r;
    name_threads(w->jni);
    for (uint32_t i = 0; i < r->roots;) {
        struct enc e = refhead_begin(w->h, RECORDS * 50 + 16);
        uint8_t *blob = blob_begin(&e, HC_EV_REFROOTS);
        int64_t target = 0;
        for (uint32_t n = 0; n < RECORDS && i < r->roots; n++, i++) {
            const struct refroot *x = &r->root[i];
            const uint64_t at = (uint64_t)x->thread % THREADS;
            put_s(&e, x->target - target);
            put_u(&e, (uint64_t)x->kind);
            put_u(&e, x->thread && threads[at].tid == x->thread ? threads[at].id : 0);
            put_u(&e, x->method ? sites_method(jvmti, w->jni, x->method) : 0);
            put_u(&e, x->bci >= 0 && x->bci < 65535 ? (uint64_t)x->bci + 1 : 0);
            put_u(&e, x->depth > 0 ? (uint64_t)x->depth : 0);
            target = x->target;
        }
        blob_end(&e, blob);
        refhead_end(w->h, &e);
    }
}

void refnames_put(JNIEnv *jni, const struct refs *r, struct refhead *h) {
    struct names w = {.jni = jni, .r = r, .h = h};
    w.of = calloc((size_t)r->classes + 1, sizeof *w.of);
    w.fields = calloc((size_t)r->classes + 1, sizeof *w.fields);
    const bool frame = w.of && w.fields && (*jni)->PushLocalFrame(jni, (jint)r->classes + 8192) == 0;
    if (frame) {
        find_classes(&w);
        put_classes(&w);
        put_roots(&w);
        (*jni)->PopLocalFrame(jni, NULL);
    } else {
        (*jni)->ExceptionClear(jni);
        h->failed = true;
    }
    for (uint32_t c = 0; w.fields && c <= r->classes; c++) {
        for (uint32_t i = 0; i < w.fields[c].n; i++)
            deallocate(w.fields[c].f[i].name), deallocate(w.fields[c].f[i].sig);
        free(w.fields[c].f);
    }
    free(w.of);
    free(w.fields);
}
