//go:build ignore

// compose.c: compose.h.
#include "compose.h"

#include "log.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "scopes.h"
#include "vmstructs.h"

// Of two tables without a lock, in which each key has two places. Each word of an entry is folded into the first one,
// so that one that is half written is not found.
// A return address and its compilation lead to frames in the pool, which is only appended to.
enum { CODES = 1 << 13, METHODS = 1 << 13, POOL = 1 << 16, PROOF = 8, PER_DIFFERENCE = 10000 };
// b: compile_id << 32 | place in the pool << 8 | n
static PER_RECORDING struct code { _Atomic uint64_t pc, b; } * codes;
static PER_RECORDING struct site_frame *pool;
static PER_RECORDING _Atomic uint32_t pooled;
// begin, shape: of struct bytecodes; id: since << 32 | id of sites.h
static PER_RECORDING struct method { _Atomic uint64_t method, begin, shape, id; } * methods;
static PER_RECORDING _Atomic bool composes;
// Up to PROOF: answers in a row that agreed; positions of interpreted frames that did.
static PER_RECORDING _Atomic uint32_t proofs, positions;
static PER_RECORDING _Atomic uint64_t composed, compared, differed;
static PER_RECORDING bool said;

bool compose_init(void) {
    // Where objects have no addresses, methods are freed while the application runs.
    composes = opt.ask != 1 && opt.stack <= FRAMES_LISTED && !vm_has_no_addresses() && scopes_init();
    if (!composes) return true;
    codes = memory_ready(CODES * sizeof *codes);
    methods = memory_ready(METHODS * sizeof *methods);
    pool = memory(POOL * sizeof *pool);
    return codes && methods && pool;
}

static uint64_t get(const _Atomic uint64_t *w) { return atomic_load_explicit(w, memory_order_acquire); }
static void put(_Atomic uint64_t *w, uint64_t x) { atomic_store_explicit(w, x, memory_order_release); }
static void count(_Atomic uint64_t *n) { atomic_fetch_add_explicit(n, 1, memory_order_relaxed); }
static uint64_t hash(uint64_t x) { return x * 0x9e3779b97f4a7c15ull >> 51; } // of 1 << 13

// ---- methods by their address ------------------------------------------------------------------

struct known {
    uint32_t id;
    struct bytecodes code;
};

static uint64_t shape_of(const struct bytecodes *b) {
    return b->bytes | (uint64_t)b->name << 16 | (uint64_t)b->signature << 32 | (uint64_t)b->number << 48;
}

static bool method_at(const struct method *m, uint64_t method, uint32_t since, struct known *to) {
    const uint64_t begin = get(&m->begin), shape = get(&m->shape), id = get(&m->id);
    if ((get(&m->method) ^ begin ^ shape ^ id) != method || id >> 32 != since || !(uint32_t)id) return false;
    // Where classes are changed, another method may lie there by now. It is on this thread's stack, so it can be read.
    to->id = (uint32_t)id, to->code = scopes_bytecodes(method, false);
    return to->code.begin == begin && shape_of(&to->code) == shape;
}

static bool method_find(uint64_t method, uint32_t since, struct known *to) {
    const uint64_t i = hash(method);
    return method_at(&methods[i], method, since, to) || method_at(&methods[i ^ 1], method, since, to);
}

static void method_keep(uint64_t method, uint32_t since, const struct known *k) {
    struct known is;
    if (method_find(method, since, &is) && is.id == k->id) return;
    struct method *m = &methods[hash(method)], *other = &methods[hash(method) ^ 1];
    // The place of a method that is void, or else one of the two, by a bit of the address.
    if (get(&m->id) >> 32 == since && (uint32_t)get(&m->id) &&
        (get(&other->id) >> 32 != since || !(uint32_t)get(&other->id) || method >> 20 & 1))
        m = other;
    const uint64_t begin = k->code.begin, shape = shape_of(&k->code), id = (uint64_t)since << 32 | k->id;
    put(&m->method, 0);
    put(&m->begin, begin);
    put(&m->shape, shape);
    put(&m->id, id);
    put(&m->method, method ^ begin ^ shape ^ id);
}

// ---- frames by return address ------------------------------------------------------------------

static const struct site_frame *code_at(const struct code *c, const struct frames_one *f, int *n) {
    const uint64_t b = get(&c->b);
    if ((get(&c->pc) ^ b) != f->at || b >> 32 != f->compile_id) return NULL;
    *n = b & 0xff;
    return &pool[(uint32_t)b >> 8];
}

static const struct site_frame *code_find(const struct frames_one *f, int *n) {
    const uint64_t i = hash(f->at);
    const struct site_frame *p = code_at(&codes[i], f, n);
    return p ? p : code_at(&codes[i ^ 1], f, n);
}

static void code_keep(const struct frames_one *f, const struct site_frame *fr, int n) {
    uint32_t at = atomic_load_explicit(&pooled, memory_order_relaxed);
    do
        if (at + (uint32_t)n > POOL) return; // its scopes are read each time
    while (!atomic_compare_exchange_weak(&pooled, &at, at + (uint32_t)n));
    for (int i = 0; i < n; i++) pool[at + (uint32_t)i] = fr[i];
    struct code *c = &codes[hash(f->at)], *other = &codes[hash(f->at) ^ 1];
    if (get(&c->b) && (!get(&other->b) || f->at >> 20 & 1)) c = other;
    const uint64_t b = (uint64_t)f->compile_id << 32 | at << 8 | (uint32_t)n;
    put(&c->b, b);
    put(&c->pc, f->at ^ b);
}

// ---- a stack -----------------------------------------------------------------------------------

static bool in_bytecodes(const struct known *m, int32_t bci) {
    return m->code.bytes ? bci >= 0 && bci < m->code.bytes : bci == -1;
}

static bool interpreted(const struct frames_one *f, uint32_t since, struct site_frame *to) {
    struct known m;
    if (!method_find(f->at, since, &m)) return false;
    const uint64_t bci = f->is - m.code.begin;
    if (m.code.bytes && bci >= m.code.bytes) return false;
    *to = (struct site_frame){m.id, m.code.bytes ? (int32_t)bci : -1}; // the position in a native method says nothing
    return true;
}

// A method of compiled code.
static bool compiled(const struct scope *s, uint32_t since, struct site_frame *to) {
    struct known m;
    *to = (struct site_frame){0, s->bci};
    if (!method_find(s->method, since, &m) || !in_bytecodes(&m, s->bci)) return false;
    to->method = m.id;
    return true;
}

static void add(struct composed *c, struct site_frame f, struct composed_of unknown) {
    const int n = c->n++;
    c->frame[n] = f;
    if (f.method) return;
    c->of[n] = unknown;
    if (c->low == c->high) c->low = n;
    c->high = n + 1;
}

// The frames of compiled code. false: the code is not understood.
static bool add_code(struct composed *c, const struct frames_one *f, uint32_t since) {
    struct scope s[FRAMES_LISTED];
    struct site_frame fresh[FRAMES_LISTED];
    int n = 0;
    bool all = true;
    const struct site_frame *of = code_find(f, &n);
    if (!of) {
        n = scopes_at(f->is, f->at, false, s, FRAMES_LISTED);
        for (int i = 0; i < n; i++) all &= compiled(&s[i], since, &fresh[i]);
        if (n > 0 && all) code_keep(f, fresh, n);
    }
    for (int i = 0; i < n && c->n < opt.stack; i++)
        add(c, of ? of[i] : fresh[i], (struct composed_of){of ? 0 : s[i].method, 0, false});
    return n > 0;
}

bool compose(const struct frames_list *l, uint32_t since, struct composed *c) {
    c->n = c->low = c->high = 0;
    if (!atomic_load_explicit(&composes, memory_order_relaxed) || l->n > FRAMES_LISTED ||
        atomic_load_explicit(&proofs, memory_order_acquire) < PROOF)
        return false;
    for (int i = 0; i < l->n; i++) __builtin_prefetch(&codes[hash(l->one[i].at)]); // all at once
    for (int i = 0; i < l->n && c->n < opt.stack; i++) {
        const struct frames_one *f = &l->one[i];
        struct site_frame is = {0, 0};
        if (f->compile_id) {
            if (!add_code(c, f, since)) return false;
        } else {
            interpreted(f, since, &is);
            add(c, is, (struct composed_of){f->at, f->is, true});
        }
    }
    if (c->n && c->low == c->high) count(&composed);
    return c->n > 0;
}

// ---- what the JVM says -------------------------------------------------------------------------

// How many frames of the answer, of which left > 0 are left, f stands for; 0: it disagrees.
static int agreed(const struct frames_one *f, const struct site_frame *is, int left, bool careful) {
    if (!f->compile_id) return 1; // learn compares the position
    struct scope s[FRAMES_LISTED];
    int n = 0;
    const struct site_frame *of = code_find(f, &n);
    if (!of) n = scopes_at(f->is, f->at, careful, s, FRAMES_LISTED);
    for (int i = 0; i < n && i < left; i++)
        if (of ? of[i].method != is[i].method || of[i].bci != is[i].bci : s[i].bci != is[i].bci) return 0;
    return n < left ? n : left;
}

// position: address of the bytecode; 0: not known.
static bool learn_method(uint64_t method, uint32_t since, struct site_frame is, uint64_t position, bool careful) {
    struct known k;
    if (!method_find(method, since, &k) || k.id != is.method)
        k = (struct known){is.method, scopes_bytecodes(method, careful)};
    if (!k.code.begin || !in_bytecodes(&k, is.bci) ||
        (position && k.code.bytes && position - k.code.begin != (uint64_t)is.bci))
        return false;
    method_keep(method, since, &k);
    return true;
}

static bool learn_interpreted(uint64_t method, uint64_t position, uint32_t since, struct site_frame is) {
    const bool careful = atomic_load_explicit(&positions, memory_order_relaxed) < PROOF;
    if (!learn_method(method, since, is, position, careful)) return false;
    if (careful && is.bci >= 0) atomic_fetch_add(&positions, 1);
    return true;
}

// Of frames that agreed. false: they do not after all.
static bool learn(const struct frames_one *f, uint32_t since, const struct site_frame *is, int n, bool careful) {
    if (!f->compile_id) return learn_interpreted(f->at, f->is, since, *is);
    struct scope s[FRAMES_LISTED];
    int all = 0;
    if (code_find(f, &all)) return true;
    all = scopes_at(f->is, f->at, false, s, FRAMES_LISTED);
    for (int i = 0; i < n; i++)
        if (!learn_method(s[i].method, since, is[i], 0, careful)) return false;
    if (all == n) code_keep(f, is, n);
    return true;
}

static bool learn_all(const struct frames_list *l, uint32_t since, const struct site_frame *is, int n) {
    const bool careful = atomic_load_explicit(&proofs, memory_order_relaxed) < PROOF;
    int of[FRAMES_LISTED], all = 0, used = 0;
    for (; used < l->n && all < n; used++) {
        of[used] = agreed(&l->one[used], is + all, n - all, careful);
        if (!of[used]) return false;
        all += of[used];
    }
    if (all != n || (used < l->n && n < opt.stack)) return false;
    for (int i = 0, at = 0; i < used; at += of[i++])
        if (!learn(&l->one[i], since, is + at, of[i], careful)) return false;
    return true;
}

static bool learned(bool agrees) {
    const uint64_t c = atomic_fetch_add_explicit(&compared, 1, memory_order_relaxed) + 1;
    if (agrees) {
        if (atomic_load_explicit(&proofs, memory_order_relaxed) < PROOF) atomic_fetch_add(&proofs, 1);
        return true;
    }
    atomic_store(&proofs, 0);
    const uint64_t d = atomic_fetch_add_explicit(&differed, 1, memory_order_relaxed) + 1;
    if (d > 1 && d * PER_DIFFERENCE > c) atomic_store_explicit(&composes, false, memory_order_relaxed);
    return false;
}

static bool all_named(const struct site_frame *is, int n) {
    for (int i = 0; i < n; i++)
        if (!is[i].method) return false; // the table of methods is full
    return n > 0;
}

void compose_learn(const struct frames_list *l, uint32_t since, const struct site_frame *is, int n) {
    if (atomic_load_explicit(&composes, memory_order_relaxed) && l->n <= FRAMES_LISTED && n <= FRAMES_LISTED &&
        all_named(is, n))
        learned(learn_all(l, since, is, n));
}

// The frames that are not known, and those between them.
bool compose_complete(const struct frames_list *l, uint32_t since, struct composed *c, const struct site_frame *is,
                      int n) {
    const int low = c->low;
    if (!all_named(is, n)) return false;
    bool agrees = n == c->high - low;
    for (int i = 0; i < n && agrees; i++) {
        const struct site_frame f = c->frame[low + i];
        const struct composed_of *of = &c->of[low + i];
        if (f.method)
            agrees = f.method == is[i].method && f.bci == is[i].bci;
        else if (of->interpreted)
            agrees = learn_interpreted(of->method, of->position, since, is[i]);
        else
            agrees = f.bci == is[i].bci && learn_method(of->method, since, is[i], 0, false);
    }
    return learned(agrees) && compose(l, since, c) && c->low == c->high;
}

void compose_report(void) {
    if (said || !methods || atomic_load_explicit(&composes, memory_order_relaxed)) return;
    said = true;
    log_line("sampled stacks: %llu of %llu that the JVM described were not as read here; it is asked for each new one",
             (unsigned long long)differed, (unsigned long long)compared);
}

void compose_report_end(void) {
    log_line("sampled stacks: %llu composed; learnt from %llu, of which %llu differed", (unsigned long long)composed,
             (unsigned long long)compared, (unsigned long long)differed);
}
