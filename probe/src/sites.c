//go:build ignore

// sites.c: sites.h.
#include "sites.h"

#include <stdlib.h>
#include <string.h>

#include "deflog.h"
#include "heapcam_abi.h"
#include "options.h"
#include "recording.h"

PER_RECORDING os_mutex site_lock = OS_MUTEX_INITIALIZER;
// A frame never changes once its id is in the index, and no id is given twice.
struct frame {
    uint64_t chain; // a hash of it and of all its callers: it is found without them
    uint32_t parent;
    struct site_frame at;
};
// Tables begin small and grow: each page that is touched for the first time costs as much as the search.
struct index {
    uint64_t mask;
    _Atomic uint64_t at[]; // upper half of the chain << 32 | id of a frame; 0: free
};
struct meths {
    uint64_t mask;
    struct meth {
        _Atomic uintptr_t key; // last to be written, 0: free
        _Atomic uint32_t id;
    } at[];
};
// A class that is loaded again has new methods that say what those before did: they share an id, and so do their
// frames. Of a method that was defined: where the log has what it says.
struct said {
    uint32_t id, hash, at, len; // id 0: free
};
// Ids of frames are never given twice, and an agent that comes later gets all definitions: FRAME_IDS bounds them,
// opt.frames what is in the table.
enum { NODES = 2 * HC_MAX_FRAMES, METHS = 1 << 17, FRAME_IDS = 1 << 20, FIRST = 1 << 11, GROW = 4 };
static PER_RECORDING struct frame *frames; // by id
static PER_RECORDING struct index *_Atomic nodes;
static PER_RECORDING struct index *other_nodes; // the table before, which who looks up may still be reading
static PER_RECORDING struct meths *_Atomic meths;
static PER_RECORDING struct meths *other_meths; // as other_nodes
static PER_RECORDING struct said *said;
static PER_RECORDING uint32_t said_mask;
// nnodes, nmeths: in the table; nframes, nsaid: ids given
static PER_RECORDING uint32_t nnodes, nframes, nmeths, nsaid;
static PER_RECORDING _Atomic uint8_t *uses; // samples at a frame, by id; saturating, halved when room is made
static PER_RECORDING _Atomic bool sites_full;
static PER_RECORDING uint64_t next_room; // when sites_make_room may work again
static PER_RECORDING uint8_t *keep;      // its frames that stay, by id
PER_RECORDING _Atomic uint64_t
    sites_cut; // samples whose stack was cut where the table of frames or of methods was full
PER_RECORDING _Atomic uint32_t sites_rooms;
PER_RECORDING _Atomic uint64_t sites_folded; // frames that left the table

static struct index *index_of(uint64_t n) {
    struct index *x = memory(sizeof *x + n * sizeof *x->at);
    if (x) x->mask = n - 1;
    return x;
}

static struct meths *meths_of(uint64_t n) {
    struct meths *x = memory(sizeof *x + n * sizeof *x->at);
    if (x) x->mask = n - 1;
    return x;
}

bool sites_init(void) {
    nodes = index_of(FIRST * GROW);
    meths = meths_of(FIRST);
    said = memory(FIRST * sizeof *said);
    said_mask = FIRST - 1;
    frames = memory(FRAME_IDS * sizeof *frames);
    uses = memory(FRAME_IDS * sizeof *uses);
    return nodes && meths && said && frames && uses;
}

bool site_define(const uint8_t *b, struct enc *e) {
    return !e->over && deflog_append(&site_log, b, (size_t)(e->p - b));
}

static void put_z(struct enc *e, const char *s) { put_str(e, s ? s : "", s ? strlen(s) : 0); }


// With the lock. Where there is no memory the table stays as it is: it fills up to its half.
static void grow_said(void) {
    const uint32_t n = said_mask + 1;
    if (nsaid < n / 2 || n >= METHS) return;
    const uint32_t mask = (n * GROW > METHS ? METHS : n * GROW) - 1;
    struct said *old = said, *fresh = memory((mask + 1ul) * sizeof *fresh);
    if (!fresh) return;
    for (uint32_t k = 0; k < n; k++) {
        if (!old[k].id) continue;
        uint32_t i = old[k].hash & mask;
        while (fresh[i].id) i = (i + 1) & mask;
        fresh[i] = old[k];
    }
    said = fresh, said_mask = mask;
    memory_give_back(old);
}

// The id of the method that says what lies from body to e; 0: there is no room for one more. With the lock.
static uint32_t same_method(uint8_t *body, struct enc *e) {
    const uint32_t len = (uint32_t)(e->p - body);
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < len; i++) hash = (hash ^ body[i]) * 16777619u;
    grow_said();
    uint32_t i = hash & said_mask;
    for (; said[i].id; i = (i + 1) & said_mask)
        if (said[i].hash == hash && said[i].len == len && !memcmp(site_log.mem + said[i].at, body, len))
            return said[i].id;
    if (nsaid > said_mask / 2) return 0;
    uint8_t head[SITES_HEAD] = {0}; // of a definition: its tag and its id
    struct enc h = {.p = head, .base = head, .end = head + sizeof head};
    put8(&h, HC_EV_METHOD);
    put_u(&h, nsaid + 1);
    const size_t n = (size_t)(h.p - head);
    memcpy(body - n, head, n);
    if (!site_define(body - n, e)) return 0;
    said[i] = (struct said){.id = ++nsaid, .hash = hash, .at = (uint32_t)(site_log.len - len), .len = len};
    return nsaid;
}

static uint64_t method_hash(uintptr_t m) { return (m * 0x9e3779b97f4a7c15ull) >> 47; }

// With the lock. Where the method is, or may be put.
static struct meth *place_of(struct meths *t, uintptr_t m) {
    for (uint64_t i = method_hash(m) & t->mask;; i = (i + 1) & t->mask) {
        const uintptr_t k = atomic_load_explicit(&t->at[i].key, memory_order_relaxed);
        if (!k || k == m) return &t->at[i];
    }
}

static void put_place(struct meth *p, uintptr_t m, uint32_t id) {
    atomic_store_explicit(&p->id, id, memory_order_relaxed);
    atomic_store_explicit(&p->key, m, memory_order_release); // pairs with sites_method
}

// With the lock. The largest table is exchanged for an empty one: what is still in use comes again, and finds its id.
// NULL: there is no memory for a larger one.
static struct meths *larger_meths(struct meths *t) {
    struct meths *fresh = other_meths;
    const bool grows = t->mask + 1 < METHS;
    if (grows || !fresh) {
        const uint64_t n = grows ? (t->mask + 1) * GROW : METHS;
        fresh = meths_of(n > METHS ? METHS : n);
        if (!fresh) return NULL;
    } else {
        memset(fresh->at, 0, METHS * sizeof *fresh->at);
    }
    for (uint64_t k = 0; grows && k <= t->mask; k++)
        if (t->at[k].key) put_place(place_of(fresh, t->at[k].key), t->at[k].key, t->at[k].id);
    if (!grows) other_meths = t, nmeths = 0;
    atomic_store_explicit(&meths, fresh, memory_order_release);
    return fresh;
}

static void keep_method(jmethodID m, uint32_t id) {
    struct meths *t = atomic_load_explicit(&meths, memory_order_relaxed);
    if (nmeths > t->mask / 2 && !(t = larger_meths(t))) return;
    struct meth *p = place_of(t, (uintptr_t)m);
    if (p->key) return; // another thread was faster
    nmeths++;
    put_place(p, (uintptr_t)m, id);
}

// For a method that is called by reflection often, older JDKs make a class that calls it, with a number in its name. A
// program that loads its classes again and again gets ever more of them. Without the number they say the same.
size_t sites_name(const char *class, size_t n) {
    static const char of[][32] = {"jdk/internal/reflect/Generated", "sun/reflect/Generated"};
    size_t end = n;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (n > strlen(of[i]) && !memcmp(class, of[i], strlen(of[i])))
            while (class[end - 1] >= '0' && class[end - 1] <= '9') end--;
    return end;
}

static void without_number(char *cls) {
    const size_t n = cls ? strlen(cls) : 0, end = n > 2 ? 1 + sites_name(cls + 1, n - 2) : n;
    if (end + 1 < n) cls[end] = ';', cls[end + 1] = 0;
}

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
        without_number(cls);
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
    uint8_t *const body = e.p + SITES_HEAD;
    e.p = body;
    int64_t bci = 0, line = 0;
    for (jint i = 0; i < n && i < HC_MAX_LINES; i++) {
        if (lines[i].start_location < bci) continue; // the table may be out of order: keep what ascends
        put_u(&l, (uint64_t)(lines[i].start_location - bci));
        put_s(&l, lines[i].line_number - line);
        bci = lines[i].start_location, line = lines[i].line_number;
    }
    put_z(&e, cls);
    put_z(&e, name);
    put_z(&e, sig);
    put_z(&e, file);
    bool hidden = cls && (strchr(cls, '+') || strstr(cls, ".0x") || strstr(cls, "/0x"));
    put_u(&e, (native ? HC_MF_NATIVE : 0) | (hidden ? HC_MF_HIDDEN : 0));
    put_str(&e, (char *)l.base, l.over ? 0 : (size_t)(l.p - l.base));
    os_lock(&site_lock);
    uint32_t id = e.over ? 0 : same_method(body, &e);
    if (id) keep_method(m, id);
    os_unlock(&site_lock);
    char *ps[] = {name, sig, cls, file, (char *)lines};
    for (int i = 0; i < 5; i++)
        if (ps[i]) (*env)->Deallocate(env, (unsigned char *)ps[i]);
    free(big);
    return id;
}

uint32_t sites_method(jvmtiEnv *env, JNIEnv *jni, jmethodID m) {
    struct meths *t = atomic_load_explicit(&meths, memory_order_acquire);
    for (uint64_t i = method_hash((uintptr_t)m) & t->mask;; i = (i + 1) & t->mask) {
        uintptr_t k = atomic_load_explicit(&t->at[i].key, memory_order_acquire);
        if (k == (uintptr_t)m) {
            const uint32_t id = atomic_load_explicit(&t->at[i].id, memory_order_acquire);
            // The second look at the key: the table may have been cleared and filled anew in between.
            if (atomic_load_explicit(&t->at[i].key, memory_order_relaxed) == k) return id;
        }
        if (!k) return define_method(env, jni, m);
    }
}

enum { OUTERMOST = 0x5bd1e995 }; // the chain before the outermost frame

static uint64_t chain_of(uint64_t callers, struct site_frame f) {
    uint64_t h = (callers ^ (f.method | (uint64_t)(uint32_t)f.bci << 32)) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
    return h ^ h >> 32;
}

static void put_node(struct index *t, uint32_t id) {
    const uint64_t chain = frames[id].chain;
    uint64_t i = chain & t->mask;
    while (t->at[i]) i = (i + 1) & t->mask;
    atomic_store_explicit(&t->at[i], chain >> 32 << 32 | id, memory_order_release); // pairs with find_node
}

// 0: it is not in the table.
static uint32_t find_node(struct index *t, uint64_t chain, struct site_frame at) {
    for (uint64_t i = chain & t->mask;; i = (i + 1) & t->mask) {
        const uint64_t x = atomic_load_explicit(&t->at[i], memory_order_acquire);
        const struct frame *f = &frames[(uint32_t)x];
        if (!x) return 0;
        if (x >> 32 == chain >> 32 && f->chain == chain && f->at.method == at.method && f->at.bci == at.bci)
            return (uint32_t)x;
    }
}

// With the lock. false: there is no memory for a larger table.
static bool grow_nodes(struct index *t) {
    if (nnodes <= t->mask / 2) return true;
    struct index *fresh = index_of((t->mask + 1) * GROW > NODES ? NODES : (t->mask + 1) * GROW);
    if (!fresh) return false;
    for (uint64_t i = 0; i <= t->mask; i++)
        if (t->at[i]) put_node(fresh, (uint32_t)t->at[i]);
    atomic_store_explicit(&nodes, fresh, memory_order_release);
    return true;
}

// With the lock. 0: the table is full.
static uint32_t add_node(const struct frame *f) {
    uint8_t buf[64];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    if (nnodes >= opt.frames || nframes + 1 >= FRAME_IDS || !grow_nodes(atomic_load(&nodes))) return 0;
    put8(&e, HC_EV_FRAME);
    put_u(&e, nframes + 1);
    put_u(&e, f->parent);
    put_u(&e, f->at.method);
    put_s(&e, f->at.bci);
    if (!site_define(buf, &e)) return 0;
    frames[++nframes] = *f;
    nnodes++;
    put_node(atomic_load(&nodes), nframes);
    return nframes;
}

uint32_t sites_same_method(uint8_t *body, struct enc *e) {
    os_lock(&site_lock);
    const uint32_t id = same_method(body, e);
    os_unlock(&site_lock);
    return id;
}

uint32_t sites_methods(void) {
    os_lock(&site_lock);
    const uint32_t n = nsaid;
    os_unlock(&site_lock);
    return n;
}

uint32_t sites_outermost(uint32_t method, int32_t bci) {
    const struct site_frame f = {method, bci};
    const uint32_t id = stack_id(&f, 1);
    if (id) atomic_store_explicit(&uses[id], UINT8_MAX, memory_order_relaxed); // it stays when room is made
    return id;
}

bool sites_are_full(void) { return atomic_load_explicit(&sites_full, memory_order_relaxed); }

// Makes room in a full table: the least used frames leave it that no kept one was called from, until a quarter is free.
// Their definitions stay valid; a stack that appears again gets new ids, which readers know for the same stack. Control
// thread; the others wait only if they are to define something. Seldom, since it goes through the whole table.
void sites_make_room(uint64_t now) {
    if (!atomic_load_explicit(&sites_full, memory_order_relaxed) || now < next_room) return;
    uint64_t begin = cpu_ns();
    next_room = now + 1000000000u;
    if (!keep) keep = memory(FRAME_IDS);
    struct index *fresh = other_nodes, *t = atomic_load(&nodes);
    if (fresh && fresh->mask == t->mask)
        memset(fresh->at, 0, (fresh->mask + 1) * sizeof *fresh->at);
    else
        fresh = index_of(t->mask + 1);
    if (!keep || !fresh) return;
    memset(keep, 0, FRAME_IDS);
    other_nodes = fresh;
    os_lock(&site_lock);
    if (t != atomic_load(&nodes)) { // it has grown meanwhile
        os_unlock(&site_lock);
        return;
    }
    uint32_t most = opt.frames - opt.frames / 4;
    for (uint32_t least = 2;; least *= 2) {
        uint32_t n = 0;
        for (uint64_t i = 0; i <= t->mask; i++)
            if (t->at[i] && uses[(uint32_t)t->at[i]] >= least)
                for (uint32_t f = (uint32_t)t->at[i]; f && !keep[f]; f = frames[f].parent) keep[f] = 1, n++;
        if (n <= most) break;
        memset(keep, 0, FRAME_IDS);
    }
    uint32_t kept = 0;
    for (uint64_t i = 0; i <= t->mask; i++) {
        const uint32_t id = (uint32_t)t->at[i];
        if (!id || !keep[id]) continue;
        uses[id] /= 2;
        put_node(fresh, id);
        kept++;
    }
    atomic_fetch_add_explicit(&sites_folded, nnodes - kept, memory_order_relaxed);
    nnodes = kept;
    other_nodes = t;
    atomic_fetch_add_explicit(&sites_rooms, 1, memory_order_relaxed);
    atomic_store_explicit(&nodes, fresh, memory_order_release);
    atomic_store_explicit(&sites_full, nframes + 1 >= FRAME_IDS, memory_order_relaxed);
    os_unlock(&site_lock);
    next_room += 100 * (cpu_ns() - begin); // a hundredth of the time at most
}

uint32_t stack_id(const struct site_frame *fr, int n) {
    uint64_t chain[SITES_STACK], callers = OUTERMOST;
    int first = n; // the innermost frame that can have an id: a table that is full leaves the callers that are known
    for (; first > 0 && fr[first - 1].method; callers = chain[first])
        first--, chain[first] = chain_of(callers, fr[first]);
    bool cut = first > 0;
    uint32_t f = 0;
    int known = first; // from there on
    struct index *t = atomic_load_explicit(&nodes, memory_order_acquire);
    while (known < n && !(f = find_node(t, chain[known], fr[known]))) known++;
    // While room is being made nobody waits.
    if (known > first && !atomic_load_explicit(&sites_full, memory_order_relaxed)) {
        os_lock(&site_lock);
        for (uint32_t next = f; known > first; f = next, known--) {
            const struct frame new = {.chain = chain[known - 1], .parent = f, .at = fr[known - 1]};
            next = find_node(atomic_load_explicit(&nodes, memory_order_relaxed), new.chain, new.at);
            if (!next && !(next = add_node(&new))) break;
        }
        if (known > first) atomic_store_explicit(&sites_full, true, memory_order_relaxed);
        os_unlock(&site_lock);
    }
    cut |= known > first;
    if (cut) atomic_fetch_add_explicit(&sites_cut, 1, memory_order_relaxed);
    return f;
}

void stack_used(uint32_t frame) {
    uint8_t u = atomic_load_explicit(&uses[frame], memory_order_relaxed);
    if (u < UINT8_MAX) atomic_store_explicit(&uses[frame], u + 1, memory_order_relaxed);
}
