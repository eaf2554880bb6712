//go:build ignore

// deflog.c: deflog.h.
#include "deflog.h"

#include <string.h>

#include "heapcam_abi.h"
#include "options.h"
#include "os.h"
#include "recording.h"

PER_RECORDING struct deflog type_log, site_log, new_log;

static PER_RECORDING struct deflog spare; // see types_tidy

// The definitions that a reader needs again are written in parts: all at once might never fit.
enum { DEFS_CHUNK = 256 << 10 };

static bool log_init(struct deflog *l, size_t cap) {
    l->mem = memory_sparse(cap);
    l->marks = memory((cap / DEFS_CHUNK + 1) * sizeof *l->marks);
    l->cap = cap;
    return l->mem && l->marks;
}

bool deflogs_init(void) {
    return log_init(&type_log, 64 << 20) && log_init(&spare, 64 << 20) && log_init(&site_log, 64 << 20) &&
           (!opt.newsites || log_init(&new_log, 8 << 20));
}

bool deflog_append(struct deflog *l, const uint8_t *b, size_t n) {
    size_t len = atomic_load_explicit(&l->len, memory_order_relaxed);
    if (n > l->cap - len) return false;
    if (len - l->last_mark >= DEFS_CHUNK) {
        uint32_t m = atomic_load_explicit(&l->nmarks, memory_order_relaxed);
        l->marks[m] = (uint32_t)len;
        l->last_mark = len;
        atomic_store_explicit(&l->nmarks, m + 1, memory_order_release);
    }
    memcpy(l->mem + len, b, n);
    atomic_store_explicit(&l->len, len + n, memory_order_release);
    return true;
}

static void put_defs_of(struct enc *e, struct deflog *l, size_t from, size_t to) {
    if (from == to) return;
    uint8_t *at = block_begin(e, HC_KIND_DEFS);
    if (l == &new_log && !e->over) at[1] = HC_FORMAT_CANDIDATES;
    if (room(e, to - from)) {
        memcpy(e->p, l->mem + from, to - from);
        e->p += to - from;
    }
    block_end(e, at);
}

enum { LOGS = 3 };
static struct deflog *const logs[LOGS] = {&type_log, &site_log, &new_log};

// A pause that finds the writer busy writes the definitions that the writer may be writing just now. They are written
// once more afterwards.
void put_defs(struct enc *e, bool locked) {
    size_t len[LOGS];
    // A log names what stands in those before it, so they are read after it.
    for (int i = LOGS - 1; i >= 0; i--) len[i] = atomic_load_explicit(&logs[i]->len, memory_order_acquire);
    for (int i = 0; i < LOGS; i++) {
        if (locked) logs[i]->pending = len[i];
        put_defs_of(e, logs[i], logs[i]->sent, len[i]);
    }
}

bool put_defs_again(struct enc *e, uint32_t *at) {
    put_defs(e, true); // what is new keeps its order
    uint32_t n = *at;
    for (int i = 0; i < LOGS; i++) {
        struct deflog *l = logs[i];
        uint32_t marks = atomic_load_explicit(&l->nmarks, memory_order_acquire);
        if (n <= marks) {
            put_defs_of(e, l, n ? l->marks[n - 1] : 0, n < marks ? l->marks[n] : l->pending);
            ++*at;
            return true;
        }
        n -= marks + 1;
    }
    return false;
}

void defs_committed(bool ok) {
    for (int i = 0; i < LOGS; i++) {
        if (ok)
            logs[i]->sent = logs[i]->pending;
        else
            logs[i]->pending = logs[i]->sent; // the next commit may have none of them
    }
}

// ---- the type log without what has gone ---------------------------------------------------------
// The control
// thread copies what was sent and has not gone to a second log. In the next pause that has the writer lock the VM
// thread, which alone appends, adds the rest and lets it take the first one's place: thus nobody waits, and who reads
// the log holds the lock. Then the first one is the second.
static PER_RECORDING size_t copied; // so many bytes of the type log are in spare
static PER_RECORDING size_t tidied; // length of the log when it was tidy last
enum { NOTHING, READY, SWAPPING, SWAPPED };
static PER_RECORDING _Atomic int tidy;
// bits by id: types that have gone, loaders that have, loaders of types that have not
static PER_RECORDING uint64_t *id_marks;
enum { ID_WORDS = MAX_TYPE_IDS / 64, TIDY_FROM = 256 << 10 };

bool next_def(const uint8_t **p, uint64_t f[6], const char **name, uint64_t *len) {
    const uint8_t *q = *p;
    f[0] = *q++;
    *len = 0;
    bool type = f[0] == HC_EV_TYPE, named = type || f[0] == HC_EV_LOADER;
    if (!named && f[0] != HC_EV_TYPEGONE && f[0] != HC_EV_LOADERGONE) return false;
    for (int i = 1; i <= (type ? 6 : 1) + named; i++) {
        uint64_t v = 0;
        for (int s = 0;; s += 7) {
            v |= (uint64_t)(*q & 127) << s;
            if (*q++ < 128) break;
        }
        if (named && i == (type ? 7 : 2))
            *len = v;
        else if (i < 6)
            f[i] = v;
    }
    *name = (const char *)q;
    *p = q + *len;
    return true;
}

static bool marked(int which, uint64_t id) {
    return id < MAX_TYPE_IDS && id_marks[which * ID_WORDS + id / 64] >> id % 64 & 1;
}

static void mark(int which, uint64_t id) {
    if (id < MAX_TYPE_IDS) id_marks[which * ID_WORDS + id / 64] |= 1ull << id % 64;
}

static void log_empty(struct deflog *l) {
    os_give_back(l->mem, l->cap);
    l->len = l->sent = l->pending = l->last_mark = 0;
    l->nmarks = 0;
}

// One that is taking its place now has done so when the caller gets the lock.
void types_keep(void) {
    int ready = READY;
    if (atomic_compare_exchange_strong(&tidy, &ready, NOTHING)) tidied = 0;
}

void types_tidy(void) {
    int was = atomic_load(&tidy);
    if (was == READY || was == SWAPPING) return;
    if (was == SWAPPED) atomic_store(&tidy, NOTHING);
    size_t n = type_log.sent;
    if (n < 2 * tidied + TIDY_FROM) {
        if (spare.len) log_empty(&spare);
        return;
    }
    enum { TYPES, LOADERS, USED };
    size_t bytes = 3 * ID_WORDS * sizeof *id_marks;
    if (!id_marks && !(id_marks = memory_sparse(bytes))) return;
    if (spare.len) log_empty(&spare);
    uint64_t f[6], len;
    const char *name;
    const uint8_t *end = type_log.mem + n;
    for (const uint8_t *p = type_log.mem; p < end && next_def(&p, f, &name, &len);)
        if (f[0] == HC_EV_TYPEGONE)
            mark(TYPES, f[1]);
        else if (f[0] == HC_EV_LOADERGONE)
            mark(LOADERS, f[1]);
    for (const uint8_t *p = type_log.mem; p < end && next_def(&p, f, &name, &len);)
        if (f[0] == HC_EV_TYPE && !marked(TYPES, f[1])) mark(USED, f[5]);
    for (const uint8_t *p = type_log.mem, *from = p; p < end && next_def(&p, f, &name, &len); from = p) {
        bool type = f[0] == HC_EV_TYPE || f[0] == HC_EV_TYPEGONE;
        if (type ? !marked(TYPES, f[1]) : !marked(LOADERS, f[1]) || marked(USED, f[1]))
            (void)deflog_append(&spare, from, (size_t)(p - from));
    }
    os_give_back(id_marks, bytes);
    copied = n;
    tidied = spare.len;
    atomic_store(&tidy, READY);
}

void types_swap(void) {
    int ready = READY;
    if (!atomic_compare_exchange_strong(&tidy, &ready, SWAPPING)) return;
    size_t from = copied, len = type_log.len, sent = spare.len + (type_log.sent - copied);
    for (uint32_t m = 0; m < type_log.nmarks; m++) // in the parts that it has
        if (type_log.marks[m] > from)
            (void)deflog_append(&spare, type_log.mem + from, type_log.marks[m] - from), from = type_log.marks[m];
    (void)deflog_append(&spare, type_log.mem + from, len - from);
    spare.sent = spare.pending = sent;
    struct deflog t;
    memcpy(&t, &type_log, sizeof t);
    memcpy(&type_log, &spare, sizeof t);
    memcpy(&spare, &t, sizeof t);
    atomic_store(&tidy, SWAPPED);
}
