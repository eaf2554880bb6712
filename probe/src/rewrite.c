//go:build ignore

// rewrite.c: rewrite.h.
#include "rewrite.h"

#include "rewritecode.h"

enum { MOST_BYTES = 1 << 26 };
// HotSpot appends what is not equal to a constant of the last version, as a NaN never is, and does not look whether the
// constants become too many for their indices. So many versions have room: two for each recording with exact sites.
enum { VERSIONS = 16 };

// Bytes behind the tag; 0: not known. Utf8 has its own length.
static size_t entry_bytes(uint32_t tag) {
    static const uint8_t n[] = {[3] = 4, [4] = 4, [5] = 8, [6] = 8, [7] = 2, [8] = 2, [9] = 4, [10] = 4, [11] = 4,
                                [12] = 4, [15] = 3, [16] = 2, [17] = 4, [18] = 4, [19] = 2, [20] = 2};
    return tag < sizeof n ? n[tag] : 0;
}

static bool is_nan(uint32_t tag, const uint8_t *p) { // of a constant's bytes
    static const uint64_t infinite = 0x7ff0000000000000;
    if (tag == 4) return (get32(p) & 0x7fffffff) > 0x7f800000;
    return tag == 6 && ((uint64_t)(get32(p) & 0x7fffffff) << 32 | get32(p + 4)) > infinite;
}

static void read_pool(struct file *f, struct in *r) {
    for (uint32_t i = 1; i < f->count && !r->bad; i++) {
        f->pool[i] = r->p;
        const uint32_t tag = u1(r);
        if (tag == POOL_UTF8) {
            (void)take(r, u2(r));
            continue;
        }
        if (!entry_bytes(tag)) r->bad = true;
        if (is_nan(tag, take(r, entry_bytes(tag)))) f->nans += tag == 4 ? 1 : 2;
        if ((tag == 5 || tag == 6) && ++i < f->count) f->pool[i] = NULL;
    }
}

static void copy_attributes(struct out *o, struct in *r) {
    const uint8_t *from = r->p;
    const uint32_t n = u2(r);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        (void)u2(r);
        (void)take(r, u4(r));
    }
    if (!r->bad && o) put(o, from, (size_t)(r->p - from));
}

static void copy_members(struct out *o, struct in *r) { // fields, or methods
    const uint8_t *from = r->p;
    const uint32_t n = u2(r);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        (void)take(r, 6);
        copy_attributes(NULL, r);
    }
    if (!r->bad && o) put(o, from, (size_t)(r->p - from));
}

static void put_methods(struct out *o, struct file *f, struct in *r) {
    const uint32_t n = u2(r);
    w2(o, n);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        const uint8_t *head = take(r, 6);
        const struct method m = {get16(head), utf8(f, get16(head + 2)), utf8(f, get16(head + 4))};
        const uint32_t attributes = u2(r);
        put(o, head, 6);
        w2(o, attributes);
        if (!m.name.p || !m.sig.p) r->bad = true;
        for (uint32_t k = 0; k < attributes && !r->bad; k++) {
            const uint32_t index = u2(r);
            struct in body = part(r, u4(r));
            if (r->bad) break;
            w2(o, index);
            if (is(utf8(f, index), "Code")) {
                rewrite_code(o, f, body, &m);
                continue;
            }
            w4(o, (uint32_t)(body.end - body.p));
            put(o, body.p, (size_t)(body.end - body.p));
        }
    }
}

static void find_source(struct file *f, struct in r) { // behind the interfaces
    copy_members(NULL, &r);
    copy_members(NULL, &r);
    const uint32_t n = u2(&r);
    for (uint32_t i = 0; i < n && !r.bad; i++) {
        const struct text name = utf8(f, u2(&r));
        struct in a = part(&r, u4(&r));
        if (!a.bad && is(name, "SourceFile")) f->source = utf8(f, u2(&a));
    }
}

static void put_utf8(struct out *o, struct text t) { w1(o, POOL_UTF8), w2(o, (uint32_t)t.n), put(o, t.p, t.n); }

static struct text literal(const char *s) { return (struct text){(const uint8_t *)s, strlen(s)}; }

// The entries that calls need: the Methodref of the first is HELPER_FIRST behind the pool as it was, that of the other
// HELPER_OTHER.
static void put_helper(struct file *f) {
    struct out *o = &f->added;
    const uint32_t i = f->count;
    const bool uses = f->w->uses;
    put_utf8(o, f->w->helper);                                     // 0
    w1(o, POOL_CLASS), w2(o, i);                                   // 1
    put_utf8(o, literal(uses ? "use" : "site"));                   // 2
    put_utf8(o, literal(uses ? "(Ljava/lang/Object;)V" : "(II)V")); // 3
    w1(o, 12), w2(o, i + 2), w2(o, i + 3);                         // 4
    w1(o, 10), w2(o, i + 1), w2(o, i + 4);                         // 5
    put_utf8(o, literal(uses ? "held" : "array"));                 // 6
    put_utf8(o, literal(uses ? "(Ljava/lang/Object;)V" : "(III)V")); // 7
    w1(o, 12), w2(o, i + 6), w2(o, i + 7);                         // 8
    w1(o, 10), w2(o, i + 1), w2(o, i + 8);                         // 9
    f->next = i + 10;
}

// What is behind the pool, with calls. false: it is not as it should be.
static bool put_rest(struct out *o, struct file *f, struct in *r) {
    put(o, take(r, 6), 6); // flags, class, superclass
    if (r->bad) return false;
    f->this = class_name(f, get16(r->p - 4));
    const uint32_t interfaces = u2(r);
    w2(o, interfaces);
    const uint8_t *p = take(r, 2 * (size_t)interfaces);
    if (r->bad || !f->this.p) return false;
    put(o, p, 2 * (size_t)interfaces);
    find_source(f, *r);
    copy_members(o, r);
    put_methods(o, f, r);
    copy_attributes(o, r);
    return !r->bad && r->p == r->end;
}

bool class_rewrite(const uint8_t *in, size_t in_n, struct rewriting *w, uint8_t **out, size_t *n, bool *odd) {
    struct in r = {in, in + in_n, in_n > MOST_BYTES};
    struct file f = {.w = w};
    struct out rest = {NULL, 0, 0, false}, all = {NULL, 0, 0, false};
    bool done = false;
    *odd = true;
    const uint32_t magic = u4(&r);
    (void)take(&r, 4);
    f.count = u2(&r);
    if (r.bad || magic != 0xcafebabe || f.count < 2) return false;
    f.pool = calloc(f.count, sizeof *f.pool);
    if (!f.pool) return false;
    const uint8_t *pool = r.p;
    read_pool(&f, &r);
    const size_t pool_n = (size_t)(r.p - pool);
    const uint32_t sites = w->sites;
    put_helper(&f);
    const bool has_room = f.next + VERSIONS * f.nans <= CLASS_LIMIT;
    if (!r.bad && has_room && put_rest(&rest, &f, &r) && !rest.bad && !f.added.bad) {
        *odd = false;
        if (w->sites > sites) {
            put(&all, in, 8);
            w2(&all, f.next);
            put(&all, pool, pool_n);
            put(&all, f.added.p, f.added.n);
            put(&all, rest.p, rest.n);
            done = !all.bad;
        }
    }
    if (!done) w->sites = sites, free(all.p);
    free(f.pool);
    free(f.added.p);
    free(rest.p);
    if (done) *out = all.p, *n = all.n;
    return done;
}
