//go:build ignore

// samples.c: sampled allocations. Application threads come here through SampledObjectAlloc; they take a lock only when
// a method or a stack is seen for the first time, and never one that the VM thread wants.
#define _GNU_SOURCE
#include "probe.h"

#include <stdlib.h>
#include <string.h>

PER_RECORDING _Atomic uint64_t interval_now;

// A sampled object that lives, found through a weak global. Written by the sampling thread until NEW, then by the
// writer-lock holder (SENT) and the VM thread (RESOLVED, DEAD); freed by the control thread.
enum { FREE, CLAIMED, NEW, SENT, RESOLVED, DEAD };
struct slot {
    _Atomic uint32_t state;
    uint32_t frame, thread;
    uint64_t id, interval, size, birth, addr;
    jweak w; // NULL: a humongous object of G1, which stays at addr until its region is freed
};
static PER_RECORDING struct slot *slots;
static PER_RECORDING _Atomic uint32_t high, hint;
static PER_RECORDING _Atomic uint64_t next_id;

// Side buffer: many producers, one consumer (whoever holds the writer lock). A cell's turn says who may touch it.
struct rec {
    _Atomic uint64_t turn;
    uint64_t id, time, word, size, interval;
    uint32_t thread, frame, slot;
};
enum { SIDE = 1 << 14, PENDING = 4096 };
static PER_RECORDING struct rec *side;
static PER_RECORDING _Atomic uint64_t put_at;
static PER_RECORDING uint64_t take_at;
static PER_RECORDING struct rec *pending; // PENDING
static PER_RECORDING uint32_t npending;

static PER_RECORDING os_mutex site_lock = OS_MUTEX_INITIALIZER;
struct node {
    _Atomic uint32_t id; // last to be written, 0: free
    _Atomic uint32_t parent, method;
    _Atomic int32_t bci;
};
struct meth {
    _Atomic uintptr_t key;
    uint32_t id;
};
// Ids of frames are never given twice, and an agent that comes later gets all definitions: FRAME_IDS bounds them,
// opt.frames what is in the table.
enum { NODES = 2 * HC_MAX_FRAMES, METHS = 1 << 17, FRAME_IDS = 1 << 20 };
static PER_RECORDING struct node *_Atomic nodes;
static PER_RECORDING struct node *other_nodes; // the table before, which who looks up may still be reading
static PER_RECORDING struct meth *meths;
static PER_RECORDING uint32_t nnodes, nframes, nmeths, nthreads = 1; // nnodes in the table, nframes ids given
static PER_RECORDING uint32_t *caller;                               // of a frame, by id
static PER_RECORDING _Atomic uint8_t *uses; // samples at a frame, by id; saturating, halved when room is made
static PER_RECORDING _Atomic bool sites_full;
static PER_RECORDING uint64_t next_room; // when sites_make_room may work again
static PER_RECORDING uint8_t *keep;      // its frames that stay, by id
static PER_RECORDING _Atomic int virtual_told;
PER_RECORDING _Atomic uint64_t
    sites_cut; // samples whose stack was cut where the table of frames or of methods was full
PER_RECORDING _Atomic uint64_t sites_folded; // frames that left the table
static __thread struct {
    uint64_t prev; // interval at the last draw, + 1
    uint32_t id;
    uint32_t recording; // for which this stands
} me;

// Stacks seen before: 96 bits of a hash and the innermost frame's id in two words, of which the second is folded into
// the first, so that a torn pair is a miss.
enum { KNOWN = 1 << 14 };
static PER_RECORDING struct { _Atomic uint64_t a, b; } * known;

bool samples_init(void) {
    slots = memory(opt.slots * sizeof *slots);
    side = memory(SIDE * sizeof *side);
    nodes = memory(NODES * sizeof *nodes);
    meths = memory(METHS * sizeof *meths);
    known = memory(KNOWN * sizeof *known);
    caller = memory(FRAME_IDS * sizeof *caller);
    uses = memory(FRAME_IDS * sizeof *uses);
    pending = memory(PENDING * sizeof *pending);
    if (!pending || !slots || !side || !nodes || !meths || !known || !caller || !uses) return false;
    for (uint64_t i = 0; i < SIDE; i++) side[i].turn = i;
    return true;
}

static void def(const uint8_t *b, struct enc *e) {
    if (!e->over) deflog_append(&site_log, b, (size_t)(e->p - b));
}

static void put_z(struct enc *e, const char *s) { put_str(e, s ? s : "", s ? strlen(s) : 0); }

static uint32_t define_method(jvmtiEnv *env, JNIEnv *jni, jmethodID m) {
    uint8_t buf[8192], few[4096], *big = NULL; // on the stack: most methods fit, and fresh memory costs page faults
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf},
               l = {.p = few, .base = few, .end = few + sizeof few};
    char *name = NULL, *sig = NULL, *cls = NULL, *file = NULL;
    jclass k = NULL;
    jint n = 0;
    jvmtiLineNumberEntry *lines = NULL;
    jboolean native = JNI_FALSE;
    (*env)->GetMethodName(env, m, &name, &sig, NULL);
    if ((*env)->GetMethodDeclaringClass(env, m, &k) == JVMTI_ERROR_NONE && k) {
        (*env)->GetClassSignature(env, k, &cls, NULL);
        (*env)->GetSourceFileName(env, k, &file);
        (*jni)->DeleteLocalRef(jni, k);
    }
    (*env)->IsMethodNative(env, m, &native);
    if (!native && (*env)->GetLineNumberTable(env, m, &n, &lines) != JVMTI_ERROR_NONE) n = 0, lines = NULL;
    size_t names =
        64 + (name ? strlen(name) : 0) + (sig ? strlen(sig) : 0) + (cls ? strlen(cls) : 0) + (file ? strlen(file) : 0);
    size_t nl = n > 0 ? (size_t)n * 20 : 0;
    if (nl > sizeof few || names + sizeof few > sizeof buf) {
        if ((big = malloc(2 * nl + names))) {
            l = (struct enc){.p = big, .base = big, .end = big + nl};
            e = (struct enc){.p = big + nl, .base = big + nl, .end = big + 2 * nl + names};
        }
    }
    uint8_t *const from = e.p;
    int64_t bci = 0, line = 0;
    for (jint i = 0; i < n && i < HC_MAX_LINES; i++) {
        if (lines[i].start_location < bci) continue; // the table may be out of order: keep what ascends
        put_u(&l, (uint64_t)(lines[i].start_location - bci));
        put_s(&l, lines[i].line_number - line);
        bci = lines[i].start_location, line = lines[i].line_number;
    }
    os_lock(&site_lock);
    uint32_t id = 0;
    if (nmeths < METHS / 2) {
        uint64_t i = ((uintptr_t)m * 0x9e3779b97f4a7c15ull) >> 47;
        while (atomic_load_explicit(&meths[i].key, memory_order_relaxed) && meths[i].key != (uintptr_t)m)
            i = (i + 1) & (METHS - 1);
        if (meths[i].key) {
            id = meths[i].id;
        } else {
            id = ++nmeths;
            put8(&e, HC_EV_METHOD);
            put_u(&e, id);
            put_z(&e, cls);
            put_z(&e, name);
            put_z(&e, sig);
            put_z(&e, file);
            bool hidden = cls && (strchr(cls, '+') || strstr(cls, ".0x") || strstr(cls, "/0x"));
            put_u(&e, (native ? HC_MF_NATIVE : 0) | (hidden ? HC_MF_HIDDEN : 0));
            put_str(&e, (char *)l.base, l.over ? 0 : (size_t)(l.p - l.base));
            def(from, &e);
            meths[i].id = id;
            atomic_store_explicit(&meths[i].key, (uintptr_t)m, memory_order_release); // pairs with method_id
        }
    }
    os_unlock(&site_lock);
    char *ps[] = {name, sig, cls, file, (char *)lines};
    for (int i = 0; i < 5; i++)
        if (ps[i]) (*env)->Deallocate(env, (unsigned char *)ps[i]);
    free(big);
    return id;
}

static uint32_t method_id(jvmtiEnv *env, JNIEnv *jni, jmethodID m) {
    for (uint64_t i = ((uintptr_t)m * 0x9e3779b97f4a7c15ull) >> 47;; i = (i + 1) & (METHS - 1)) {
        uintptr_t k = atomic_load_explicit(&meths[i].key, memory_order_acquire);
        if (k == (uintptr_t)m) return meths[i].id;
        if (!k) return define_method(env, jni, m);
    }
}

static uint64_t node_hash(uint32_t parent, uint32_t method, int32_t bci) {
    uint64_t h =
        ((uint64_t)parent << 32 | method) * 0x9e3779b97f4a7c15ull ^ (uint64_t)(uint32_t)bci * 0xc2b2ae3d27d4eb4full;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
    return h >> 45;
}

static void put_node(struct node *n, uint32_t id, uint32_t parent, uint32_t method, int32_t bci) {
    n->parent = parent;
    n->method = method;
    n->bci = bci;
    atomic_store_explicit(&n->id, id, memory_order_release);
}

static uint32_t node_id(uint32_t parent, uint32_t method, int32_t bci) {
    uint64_t first = node_hash(parent, method, bci);
    for (int locked = 0;; locked = 1) {
        if (locked) os_lock(&site_lock);
        struct node *t = atomic_load_explicit(&nodes, memory_order_acquire);
        for (uint64_t i = first;; i = (i + 1) & (NODES - 1)) {
            uint32_t id = atomic_load_explicit(&t[i].id, memory_order_acquire);
            // The second look at the id: the table may have been cleared and filled anew in between (sites_make_room).
            if (id && t[i].parent == parent && t[i].method == method && t[i].bci == bci && t[i].id == id) {
                if (locked) os_unlock(&site_lock);
                return id;
            }
            if (id) continue;
            if (!locked && atomic_load_explicit(&sites_full, memory_order_relaxed))
                return 0; // and nobody waits while room is being made
            if (!locked) break;
            if (nnodes < opt.frames && nframes + 1 < FRAME_IDS) {
                uint8_t buf[64];
                struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
                id = ++nframes;
                nnodes++;
                put8(&e, HC_EV_FRAME);
                put_u(&e, id);
                put_u(&e, parent);
                put_u(&e, method);
                put_s(&e, bci);
                def(buf, &e);
                caller[id] = parent;
                put_node(&t[i], id, parent, method, bci);
            } else {
                atomic_store_explicit(&sites_full, true, memory_order_relaxed);
            }
            os_unlock(&site_lock);
            return id; // 0: the table is full
        }
    }
}

// Makes room in a full table: the least used frames leave it that no kept one was called from, until a quarter is free.
// What they told stays told; a stack that comes again gets new ids, which readers know for the same stack. Control
// thread; the others wait only if they are to define something. Seldom, since it goes through the whole table.
void sites_make_room(uint64_t now) {
    if (!atomic_load_explicit(&sites_full, memory_order_relaxed) || now < next_room) return;
    uint64_t begin = cpu_ns();
    next_room = now + 1000000000u;
    if (!keep) keep = memory(FRAME_IDS);
    struct node *fresh = other_nodes ? other_nodes : memory(NODES * sizeof *fresh), *t = atomic_load(&nodes);
    if (!keep || !fresh) return;
    memset(keep, 0, FRAME_IDS);
    if (fresh == other_nodes) memset(fresh, 0, NODES * sizeof *fresh);
    os_lock(&site_lock);
    uint32_t most = opt.frames - opt.frames / 4;
    for (uint32_t least = 2;; least *= 2) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < NODES; i++)
            if (t[i].id && uses[t[i].id] >= least)
                for (uint32_t f = t[i].id; f && !keep[f]; f = caller[f]) keep[f] = 1, n++;
        if (n <= most) break;
        memset(keep, 0, FRAME_IDS);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t id = t[i].id;
        if (!id || !keep[id]) continue;
        uses[id] /= 2;
        uint64_t at = node_hash(t[i].parent, t[i].method, t[i].bci);
        while (fresh[at].id) at = (at + 1) & (NODES - 1);
        put_node(&fresh[at], id, t[i].parent, t[i].method, t[i].bci);
        kept++;
    }
    atomic_fetch_add_explicit(&sites_folded, nnodes - kept, memory_order_relaxed);
    nnodes = kept;
    other_nodes = t;
    atomic_store_explicit(&nodes, fresh, memory_order_release);
    for (uint32_t k = 0; k < KNOWN; k++) { // among them are stacks that were cut
        atomic_store_explicit(&known[k].b, 0, memory_order_relaxed);
        atomic_store_explicit(&known[k].a, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&sites_full, nframes + 1 >= FRAME_IDS, memory_order_relaxed);
    os_unlock(&site_lock);
    next_room += 100 * (cpu_ns() - begin); // a hundredth of the time at most
}

static void define_thread(uint32_t id, uint32_t flags, const char *name) {
    uint8_t buf[1200];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    put8(&e, HC_EV_THREAD);
    put_u(&e, id);
    put_u(&e, flags);
    size_t n = name ? strlen(name) : 0;
    put_str(&e, name ? name : "", n > 1000 ? 1000 : n);
    os_lock(&site_lock);
    def(buf, &e);
    os_unlock(&site_lock);
}

static bool is_virtual(JNIEnv *jni, jthread t) {
    // JNI 21 has IsVirtualThread as entry 234 of the function table; the header of 17 does not know it.
    static _Atomic int has = -1;
    if (has < 0) has = (*jni)->GetVersion(jni) >= 0x00150000;
    return has && ((jboolean(JNICALL *)(JNIEnv *, jobject))((void **)*jni)[234])(jni, t);
}

// A thread's name may hold what belongs to a user, most of all numbers: each run of digits becomes one #. In place.
static const char *allowed_name(char *s) {
    if (!s || opt.names == NAMES_OFF) return "";
    if (opt.names == NAMES_FULL) return s;
    char *to = s;
    for (char *p = s; *p;) {
        if (*p < '0' || *p > '9') {
            *to++ = *p++;
            continue;
        }
        while (*p >= '0' && *p <= '9') p++;
        *to++ = '#';
    }
    *to = 0;
    return s;
}

static uint32_t thread_id(jvmtiEnv *env, JNIEnv *jni, jthread t) {
    if (is_virtual(jni, t)) {
        if (!atomic_exchange(&virtual_told, 1)) define_thread(1, HC_THREAD_VIRTUAL, "(virtual threads)");
        return 1;
    }
    if (me.id) return me.id;
    jvmtiThreadInfo info = {0};
    (*env)->GetThreadInfo(env, t, &info);
    os_lock(&site_lock);
    me.id = ++nthreads;
    os_unlock(&site_lock);
    define_thread(me.id, 0, allowed_name(info.name));
    if (info.name) (*env)->Deallocate(env, (unsigned char *)info.name);
    if (info.thread_group) (*jni)->DeleteLocalRef(jni, info.thread_group);
    if (info.context_class_loader) (*jni)->DeleteLocalRef(jni, info.context_class_loader);
    return me.id;
}

// The class word of an object that may move at any moment: read between two looks at the collection counter, never
// dereferenced directly.
static uint64_t class_word(jvmtiEnv *env, jobject o) {
    for (int i = 0; i < 8; i++) {
        uint64_t c = atomic_load_explicit(&gc_counter, memory_order_acquire), h[2];
        if (!(c & 1) && safe_read(h, rd64((void *)((uintptr_t)o & ~7ull)), sizeof h)) {
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&gc_counter, memory_order_relaxed) == c)
                return vm.compact_headers ? h[0] >> vm.klass_shift : vm.compressed_class ? (uint32_t)h[1] : h[1];
        }
        jlong size; // a call into the VM: it waits until the collection is over
        (*env)->GetObjectSize(env, o, &size);
    }
    return 0;
}

static uint32_t claim(void) {
    uint32_t h = atomic_load_explicit(&hint, memory_order_relaxed);
    for (uint32_t n = 0; n < 4096 && n < opt.slots; n++) {
        uint32_t i = (h + n) % opt.slots, f = FREE;
        if (atomic_load_explicit(&slots[i].state, memory_order_relaxed) == FREE &&
            atomic_compare_exchange_strong(&slots[i].state, &f, CLAIMED)) {
            atomic_store_explicit(&hint, (i + 1) % opt.slots, memory_order_relaxed);
            uint32_t hi = atomic_load(&high);
            while (hi <= i && !atomic_compare_exchange_weak(&high, &hi, i + 1)) {
            }
            return i;
        }
    }
    atomic_store_explicit(&hint, (h + 4096) % opt.slots, memory_order_relaxed);
    return UINT32_MAX;
}

static bool push(const struct rec *r) {
    uint64_t at = atomic_load_explicit(&put_at, memory_order_relaxed);
    for (;;) {
        struct rec *c = &side[at & (SIDE - 1)];
        uint64_t turn = atomic_load_explicit(&c->turn, memory_order_acquire);
        if (turn == at) {
            if (!atomic_compare_exchange_weak_explicit(&put_at, &at, at + 1, memory_order_relaxed,
                                                       memory_order_relaxed))
                continue;
            c->id = r->id, c->time = r->time, c->word = r->word, c->size = r->size, c->interval = r->interval;
            c->thread = r->thread, c->frame = r->frame, c->slot = r->slot;
            atomic_store_explicit(&c->turn, at + 1, memory_order_release); // pairs with pop
            return true;
        }
        if (turn < at) return false; // full
        at = atomic_load_explicit(&put_at, memory_order_relaxed);
    }
}

static bool pop(struct rec *out) {
    struct rec *c = &side[take_at & (SIDE - 1)];
    if (atomic_load_explicit(&c->turn, memory_order_acquire) != take_at + 1) return false;
    out->id = c->id, out->time = c->time, out->word = c->word, out->size = c->size, out->interval = c->interval;
    out->thread = c->thread, out->frame = c->frame, out->slot = c->slot;
    atomic_store_explicit(&c->turn, take_at + SIDE, memory_order_release);
    take_at++;
    return true;
}

enum { LAST = 64 };
static __thread struct {
    jint n;
    int32_t bci[LAST];
    uint32_t node[LAST];
    jmethodID method[LAST];
} last;

static uint32_t stack_id(jvmtiEnv *env, JNIEnv *jni, const jvmtiFrameInfo *fr, jint n) {
    uint64_t h1 = 0x9e3779b97f4a7c15ull * (uint64_t)(n + 1), h2 = h1;
    for (jint i = 0; i < n; i++) {
        uint64_t x = (uintptr_t)fr[i].method ^ (uint64_t)fr[i].location << 48;
        h1 = (h1 ^ x) * 0xbf58476d1ce4e5b9ull, h1 ^= h1 >> 29;
        h2 = (h2 + x) * 0xc2b2ae3d27d4eb4full, h2 ^= h2 >> 31;
    }
    uint64_t k = h1 >> 50, b = atomic_load_explicit(&known[k].b, memory_order_relaxed);
    if ((atomic_load_explicit(&known[k].a, memory_order_relaxed) ^ b) == h1 && b >> 32 == h2 >> 32) return (uint32_t)b;
    // The outer frames are mostly those of this thread's last stack.
    uint32_t f = 0;
    bool same = true;
    for (jint i = n - 1, j = 0; i >= 0; i--, j++) {
        if (same && j < last.n && last.method[j] == fr[i].method && last.bci[j] == (int32_t)fr[i].location) {
            f = last.node[j];
            continue;
        }
        same = false;
        uint32_t m = method_id(env, jni, fr[i].method);
        uint32_t next = m ? node_id(f, m, (int32_t)fr[i].location) : 0;
        if (!next) { // a table is full: the site is the callers that are known
            atomic_fetch_add_explicit(&sites_cut, 1, memory_order_relaxed);
            break;
        }
        f = next;
        if (j < LAST)
            last.method[j] = fr[i].method, last.bci[j] = (int32_t)fr[i].location, last.node[j] = f, last.n = j + 1;
    }
    b = (h2 & ~0xffffffffull) | f;
    atomic_store_explicit(&known[k].b, b, memory_order_relaxed);
    atomic_store_explicit(&known[k].a, h1 ^ b, memory_order_relaxed);
    return f;
}

static void drop(uint64_t n) {
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_SAMPLES_DROPPED), n, memory_order_relaxed);
}

static void sample(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject obj, jlong size);

void JNICALL on_sample(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject obj, jclass klass, jlong size) {
    (void)klass;
    if (!enter()) return;
    if (!atomic_load_explicit(&gave_up, memory_order_relaxed) && !is_off()) sample(env, jni, thread, obj, size);
    leave();
}

static void sample(jvmtiEnv *env, JNIEnv *jni, jthread thread, jobject obj, jlong size) {
    uint32_t no = atomic_load_explicit(&recording_no, memory_order_relaxed);
    if (me.recording != no)
        me.recording = no, me.prev = me.id = 0, last.n = 0; // what this thread kept is of a recording that has ended
    uint64_t begin = cpu_ns(), iv = atomic_load_explicit(&interval_now, memory_order_relaxed);
    struct rec r = {.interval = me.prev ? me.prev - 1 : iv, .size = (uint64_t)size, .time = now_ns() - probe_epoch_ns};
    me.prev = iv + 1;
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_SAMPLES), 1, memory_order_relaxed);
    jvmtiFrameInfo fr[512];
    jint n = 0;
    if ((*env)->GetStackTrace(env, NULL, 0, opt.stack, fr, &n) != JVMTI_ERROR_NONE) n = 0;
    r.frame = stack_id(env, jni, fr, n);
    uint8_t u = atomic_load_explicit(&uses[r.frame], memory_order_relaxed);
    if (u < UINT8_MAX) atomic_store_explicit(&uses[r.frame], u + 1, memory_order_relaxed);
    r.thread = thread_id(env, jni, thread);
    r.word = class_word(env, obj);
    r.slot = claim();
    r.id = atomic_fetch_add(&next_id, 1) + 1;
    if (r.slot == UINT32_MAX) {
        drop(1);
    } else {
        struct slot *s = &slots[r.slot];
        // A weak global would keep G1 from freeing a humongous object in young collections: it takes every referent
        // outside the collection set for live. Such objects do not move, so their address is enough.
        bool humongous = vm.collector == HC_COLLECTOR_G1 && r.size > vm.region_bytes / 2;
        s->addr = humongous ? rd64((void *)((uintptr_t)obj & ~7ull)) : 0;
        s->w = humongous ? NULL : (*jni)->NewWeakGlobalRef(jni, obj);
        s->id = r.id, s->frame = r.frame, s->thread = r.thread, s->interval = r.interval, s->size = r.size;
        s->birth = atomic_load_explicit((_Atomic uint64_t *)&epoch_no, memory_order_relaxed) + 1;
        atomic_store_explicit(&s->state, s->w || s->addr ? NEW : DEAD, memory_order_release);
        if (!push(&r)) {
            atomic_store_explicit(&s->state, DEAD, memory_order_release);
            drop(1);
        }
    }
    atomic_fetch_add_explicit(ring64(HC_RING_OFF_SAMPLE_NS), cpu_ns() - begin, memory_order_relaxed);
}

bool samples_waiting(void) { return atomic_load_explicit(&put_at, memory_order_relaxed) - take_at > SIDE / 4; }

bool samples_told(void) { return !npending && atomic_load_explicit(&put_at, memory_order_relaxed) == take_at; }

static void put_sample(struct enc *e, const struct rec *r, uint32_t type, uint64_t *id, uint64_t *time) {
    put8(e, HC_EV_SAMPLE);
    put_s(e, (int64_t)(r->id - *id));
    put_s(e, (int64_t)(r->time - *time));
    put_u(e, r->thread);
    put_u(e, type);
    put_u(e, r->size);
    put_u(e, r->interval);
    put_u(e, r->frame);
    *id = r->id, *time = r->time;
    uint32_t st = NEW;
    if (r->slot != UINT32_MAX) atomic_compare_exchange_strong(&slots[r->slot].state, &st, SENT);
}

// Everything taken since the last time. A class that was loaded after the last scan has no type yet: such samples wait
// for the pause.
void samples_put(struct enc *e, bool at_pause) {
    struct rec r;
    uint8_t *at = NULL;
    uint64_t id = 0, time = 0;
    uint32_t keep = 0;
    for (uint32_t i = 0;; i++) {
        if (i < npending)
            r = pending[i];
        else if (!pop(&r))
            break;
        struct centry *c = r.word ? class_lookup(r.word) : NULL;
        if (r.word && !c && !at_pause && keep < PENDING) { // keep <= i: what it overwrites has been read
            pending[keep++] = r;
            continue;
        }
        if (!at) {
            at = block_begin(e, HC_KIND_SAMPLES);
            put8(e, HC_EV_SAMPLEBASE);
            put_u(e, r.time);
            put_u(e, r.id);
            id = r.id, time = r.time;
        }
        put_sample(e, &r, c ? c->type & TYPE_MASK : 0, &id, &time);
    }
    npending = keep;
    if (at) block_end(e, at);
}

bool in_state(uint64_t a); // epoch.c
bool humongous_at(uint64_t a);

// Where the object is now; 0: it died. In a pause.
static uint64_t where(const struct slot *s) {
    if (s->w) return rd64((void *)((uintptr_t)s->w & ~7ull));
    return s->addr && humongous_at(s->addr) ? s->addr : 0;
}

void samples_resolve(struct enc *e) {
    uint32_t hi = atomic_load(&high);
    uint64_t id = 0, addr = 0;
    uint8_t *at = NULL;
    // Two passes: the events are one blob each.
    for (uint32_t i = 0; i < hi; i++) {
        struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != SENT) continue;
        uint64_t a = where(s);
        if (!a) {
            atomic_store_explicit(&s->state, DEAD, memory_order_release);
            continue;
        }
        s->addr = a;
        if (!in_state(a)) continue;
        if (!at) at = blob_begin(e, HC_EV_RESOLVED);
        uint64_t w = (a - (uint64_t)vm.heap_base) >> 3;
        put_s(e, (int64_t)(s->id - id));
        put_s(e, (int64_t)(w - addr));
        id = s->id, addr = w;
        atomic_store_explicit(&s->state, RESOLVED, memory_order_release);
    }
    if (at) blob_end(e, at);
    at = NULL;
    id = 0;
    for (uint32_t i = 0; i < hi; i++) {
        struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != RESOLVED) continue;
        s->addr = where(s);
        if (s->addr) continue;
        if (!at) at = blob_begin(e, HC_EV_SAMPLEDEAD);
        put_s(e, (int64_t)(s->id - id));
        id = s->id;
        atomic_store_explicit(&s->state, DEAD, memory_order_release);
    }
    if (at) blob_end(e, at);
}

void samples_live(struct enc *e) {
    uint32_t hi = atomic_load(&high);
    uint64_t id = 0, addr = 0;
    uint8_t *at = NULL;
    for (uint32_t i = 0; i < hi; i++) {
        struct slot *s = &slots[i];
        if (atomic_load_explicit(&s->state, memory_order_acquire) != RESOLVED || !s->addr) continue;
        if (!at) at = blob_begin(e, HC_EV_LIVESAMPLES);
        uint64_t w = (s->addr - (uint64_t)vm.heap_base) >> 3;
        put_s(e, (int64_t)(s->id - id));
        put_s(e, (int64_t)(w - addr));
        put_u(e, s->frame);
        put_u(e, s->thread);
        put_u(e, s->birth);
        put_u(e, s->interval);
        put_u(e, s->size);
        id = s->id, addr = w;
    }
    if (at) blob_end(e, at);
}

void samples_reap(JNIEnv *jni) {
    uint32_t hi = atomic_load(&high), low = UINT32_MAX;
    for (uint32_t i = 0; i < hi; i++) {
        if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != DEAD) continue;
        if (slots[i].w) (*jni)->DeleteWeakGlobalRef(jni, slots[i].w);
        slots[i].w = NULL;
        atomic_store_explicit(&slots[i].state, FREE, memory_order_release);
        if (low == UINT32_MAX) low = i;
    }
    // Low slots first: what a pause looks through stays short.
    if (low != UINT32_MAX) atomic_store_explicit(&hint, low, memory_order_relaxed);
}

void samples_forget(JNIEnv *jni) {
    uint32_t hi = atomic_load(&high);
    for (uint32_t i = 0; i < hi; i++) {
        uint32_t st = atomic_load_explicit(&slots[i].state, memory_order_acquire);
        if (st >= NEW) atomic_store_explicit(&slots[i].state, DEAD, memory_order_release);
    }
    samples_reap(jni);
}
