//go:build ignore

// context.c: context.h.
#include "context.h"

#ifdef _WIN32
void context_begin(uint64_t now) { (void)now; }
void context_end(void) {}
bool context_turn(uint64_t now) { (void)now; return false; }
void context_sent(void) {}
void context_put(struct enc *e) { (void)e; }
#else
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "heapcam_abi.h"
#include "log.h"
#include "native.h"
#include "os.h"
#include "otelmessage.h"

enum { MAPS = 4 << 20, LINE = 1024, CANDIDATES = 8, MESSAGE = 16 << 10 };

// The values of all keys; 0 bytes: there is none.
struct names {
    uint16_t n[OTEL_KEYS];
    uint8_t value[OTEL_KEYS][OTEL_VALUE];
};

// Of the thread. It may be late and outlive a recording, so these are of no recording.
static struct names found;       // the thread writes it while ready is false, the control thread reads it while true
static _Atomic bool ready;
static _Atomic bool quitting;
static _Atomic bool ended;
static bool there; // a thread is, or was and has not been joined
static pthread_t thread;

// Of the control thread.
static PER_RECORDING struct names known;
static PER_RECORDING bool unsent, any;
static PER_RECORDING uint64_t due, wait_s; // the next look, and how long after it the one after that

// ---- /proc/self/maps -----------------------------------------------------------------------------
struct mapping {
    uint64_t lo, hi;
    bool readable, file, context; // file: what others may change, or a device
};

static uint64_t hex(const char **p) {
    uint64_t v = 0;
    for (;; ++*p) {
        const char c = **p;
        if (c >= '0' && c <= '9') v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f') v = v << 4 | (uint64_t)(c - 'a' + 10);
        else return v;
    }
}

static const char *behind_space(const char *p) { // where the next word begins
    while (*p && *p != ' ') p++;
    while (*p == ' ') p++;
    return p;
}

// "lo-hi rwxp offset device inode   name"
static bool parse(const char *line, struct mapping *m) {
    static const char *const names[] = {"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"};
    const char *p = line;
    m->lo = hex(&p);
    if (*p++ != '-') return false;
    m->hi = hex(&p);
    if (*p++ != ' ') return false;
    if (strlen(p) < 5) return false;
    m->readable = *p == 'r';
    const char *inode = behind_space(behind_space(behind_space(p))), *name = behind_space(inode);
    m->file = *inode != '0' && !(p[1] == 'w' && p[3] == 'p');
    m->context = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        m->context = m->context || !strncmp(name, names[i], strlen(names[i]));
    return m->lo < m->hi;
}

// Calls each for the mappings in order of addresses, until it returns false. What lies behind MAPS bytes is not read.
static void each_mapping(bool (*each)(const struct mapping *, void *), void *arg) {
    static char b[8 << 10], line[LINE];
    size_t n = 0, all = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool more = fd >= 0;
    while (more && all < MAPS && (got = read(fd, b, sizeof b)) > 0) {
        all += (size_t)got;
        for (ssize_t i = 0; more && i < got; i++) {
            if (b[i] != '\n') {
                if (n < LINE - 1) line[n++] = b[i]; // the end of a long name is not needed
                continue;
            }
            struct mapping m;
            line[n] = 0, n = 0;
            if (parse(line, &m)) more = each(&m, arg);
        }
    }
    if (fd >= 0) close(fd);
}

struct candidates {
    uint64_t at[CANDIDATES];
    unsigned n;
};

static bool candidate(const struct mapping *m, void *arg) {
    struct candidates *c = arg;
    if (m->context && m->readable) c->at[c->n++] = m->lo;
    return c->n < CANDIDATES;
}

// Of a message: need is what has not been met yet.
struct range {
    uint64_t need, end;
};

// A message may lie in memory that is the process' own, or behind its header. Not elsewhere: to read a device may do
// something.
static bool message_lies(const struct mapping *m, void *arg) {
    struct range *r = arg;
    if (m->hi <= r->need) return true;
    if (m->lo > r->need || !m->readable || (m->file && !m->context)) return false;
    r->need = m->hi;
    return r->need < r->end;
}

// ---- the thread ----------------------------------------------------------------------------------
struct header { // as OTEP 4719 has it
    char signature[8];
    uint32_t version, size;
    uint64_t published_at; // 0: it is being changed
    uint64_t message;
};

static bool take(uint64_t at, struct names *to) {
    static uint8_t message[MESSAGE];
    struct header h, again;
    struct otel_value v[OTEL_KEYS];
    if (!safe_read(&h, at, sizeof h) || memcmp(h.signature, "OTEL_CTX", 8) || h.version != 2 || !h.published_at ||
        !h.size || h.size > MESSAGE || h.message > UINT64_MAX - MESSAGE)
        return false;
    struct range r = {h.message, h.message + h.size};
    each_mapping(message_lies, &r);
    if (r.need < r.end || !safe_read(message, h.message, h.size) || !safe_read(&again, at, sizeof again) ||
        memcmp(&h, &again, sizeof h))
        return false; // at the next time
    otel_find(message, h.size, v);
    memset(to, 0, sizeof *to);
    for (int i = 0; i < OTEL_KEYS; i++) {
        to->n[i] = (uint16_t)v[i].n;
        if (v[i].n) memcpy(to->value[i], v[i].at, v[i].n);
    }
    return true;
}

static void look(void) {
    static struct names now;
    struct candidates c = {{0}, 0};
    each_mapping(candidate, &c);
    for (unsigned i = 0; i < c.n; i++) {
        if (atomic_load(&quitting)) return;
        if (!take(c.at[i], &now)) continue;
        if (atomic_load(&ready) || !memcmp(&now, &found, sizeof now)) return;
        found = now;
        atomic_store(&ready, true);
        return;
    }
}

static void *reader(void *arg) {
    (void)arg;
    native_name("heapcam names");
    look();
    atomic_store(&ended, true);
    return NULL;
}

// ---- the control thread --------------------------------------------------------------------------
static bool joined(void) {
    if (there && !atomic_load(&ended)) return false;
    if (there) native_join(thread);
    there = false;
    return true;
}

enum { FIRST = 1, LONGEST = 3600, SECOND = 1000000000 }; // s, s, ns

void context_begin(uint64_t now) {
    due = now + FIRST * (uint64_t)SECOND, wait_s = 2 * FIRST;
    if (joined()) atomic_store(&ready, false); // else that of an earlier recording waits still
}

// After 1, 3, 7, 15, … seconds, later every hour: an SDK starts soon after the JVM, and most JVMs have none. Between
// looks there is no thread: a JVM may have room for few.
static void start_when_due(uint64_t now) {
    if (now < due || !joined()) return;
    due = now + wait_s * SECOND;
    wait_s = wait_s < LONGEST / 2 ? 2 * wait_s : LONGEST;
    if (!any) memset(&found, 0, sizeof found); // an earlier recording's
    atomic_store(&quitting, false);
    atomic_store(&ended, false);
    there = native_start(&thread, reader, NULL);
}

enum { END_TRIES = 1000 }; // ms
void context_end(void) {
    if (joined() || atomic_exchange(&quitting, true)) return; // an earlier recording's: not waited for again
    for (int i = 0; i < END_TRIES && !joined(); i++) os_sleep_us(1000);
    if (there)
        log_line("process context: reading it has not ended, most likely because of userfaultfd; the thread that reads "
                 "it stays until the memory can be read");
}

void context_put(struct enc *e) {
    if (!any) return;
    uint8_t *at = block_begin(e, HC_KIND_META);
    for (int i = 0; i < OTEL_KEYS; i++) {
        if (!known.n[i]) continue;
        put8(e, HC_EV_RESOURCE);
        put_str(e, otel_keys[i], strlen(otel_keys[i]));
        put_str(e, (const char *)known.value[i], known.n[i]);
    }
    if (!e->over) at[HC_BLOCK_OFF_VERSION] = HC_FORMAT_RESOURCE;
    block_end(e, at);
}

bool context_turn(uint64_t now) {
    if (atomic_load(&ready)) {
        known = found;
        atomic_store(&ready, false);
        any = unsent = true;
    }
    start_when_due(now);
    return unsent;
}

void context_sent(void) { unsent = false; }
#endif
