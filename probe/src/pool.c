//go:build ignore

// pool.c: pool.h. On Windows there are no such threads: the guard there is for one thread.
#include "pool.h"

_Atomic uint32_t pool_job;

#ifdef _WIN32
unsigned pool_begin(unsigned n, pool_work *work, pool_work *rest) { return (void)n, (void)work, (void)rest, 0; }
bool pool_end(void) { return true; }
unsigned pool_ready(void) { return 0; }
void pool_open(void) {}
void pool_more(void) {}
void pool_close(void) {}
bool pool_quiet(void) { return true; }
void pool_fault(void) {}
void pool_die(void) {}
#else
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "native.h"
#include "os.h"

static struct member {
    _Alignas(64) _Atomic bool busy; // reads what a job has, or may yet; stays set in one that has died
    _Atomic bool armed, ended;
    unsigned heard; // bell
    pthread_t thread;
    pthread_t self; // the same, by itself: before armed
    sigjmp_buf env;
} members[POOL_MOST];
static _Atomic uint32_t nmembers;
static _Atomic uint32_t bell; // a futex: changes when there is something to do
static _Atomic bool quitting;
static uint32_t number; // of the newest job; VM thread
static pool_work *to_do, *to_rest;

static void futex(int op, uint32_t v) { syscall(SYS_futex, &bell, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL, 0); }

static void ring_bell(void) {
    atomic_fetch_add(&bell, 1);
    futex(FUTEX_WAKE, INT_MAX);
}

// The order of busy and pool_job here, and the reverse one of pool_close and pool_quiet, are what keeps the handler in
// place for a thread that wakes up late: either it sees that the job is closed, or it is seen.
static void turn(struct member *m) {
    atomic_store(&m->busy, true);
    if (!sigsetjmp(m->env, 0)) {
        atomic_store(&m->armed, true);
        (atomic_load(&pool_job) ? to_do : to_rest)((unsigned)(m - members));
    }
    atomic_store(&m->armed, false);
    atomic_store(&m->busy, false);
}

static void *member(void *arg) {
    struct member *m = arg;
    native_name("heapcam walk");
    m->self = pthread_self();
    while (!atomic_load(&quitting)) {
        uint32_t b = atomic_load(&bell);
        if (b == m->heard) {
            futex(FUTEX_WAIT, b);
            continue;
        }
        m->heard = b;
        turn(m);
    }
    atomic_store(&m->ended, true);
    return NULL;
}

unsigned pool_begin(unsigned n, pool_work *work, pool_work *rest) {
    if (atomic_load(&nmembers)) return 0;
    to_do = work, to_rest = rest;
    atomic_store(&quitting, false);
    unsigned i = 0;
    for (; i < n && i < POOL_MOST; i++) {
        members[i] = (struct member){.heard = atomic_load(&bell)};
        if (!native_start(&members[i].thread, member, &members[i])) break;
    }
    atomic_store(&nmembers, i);
    return i;
}

enum { END_TRIES = 5000 }; // ms
bool pool_end(void) {
    uint32_t n = atomic_load(&nmembers), ended = 0;
    if (atomic_exchange(&quitting, true)) return !n; // an earlier recording's: not waited for again
    ring_bell();
    for (int i = 0; i < END_TRIES && ended < n; i++) {
        if (i) os_sleep_us(1000);
        for (ended = 0; ended < n && atomic_load(&members[ended].ended);) ended++;
    }
    if (ended < n) return false;
    for (uint32_t i = 0; i < n; i++) native_join(members[i].thread);
    atomic_store(&nmembers, 0);
    return true;
}

// The VM thread's own: whoever set it has set that of the others, or wanted to.
static bool has_cpus(void) {
    uint64_t set[128] = {0};
    long n = syscall(SYS_sched_getaffinity, 0, sizeof set, set);
    int cpus = 0;
    for (long i = 0; i < n / 8; i++) cpus += __builtin_popcountll(set[i]);
    return cpus > 1;
}

bool pool_quiet(void) {
    for (uint32_t i = 0, n = atomic_load(&nmembers); i < n; i++)
        if (atomic_load(&members[i].busy)) return false;
    return true;
}

unsigned pool_ready(void) {
    uint32_t n = atomic_load(&nmembers);
    return n && !atomic_load(&pool_job) && !guard_without_handler && pool_quiet() && has_cpus() ? n : 0;
}

void pool_open(void) {
    if (!++number) ++number;
    atomic_store(&pool_job, number);
    ring_bell();
}

void pool_more(void) { ring_bell(); }

void pool_close(void) {
    if (!atomic_exchange(&pool_job, 0)) return;
    ring_bell();
}

void pool_die(void) { syscall(SYS_exit, 0); }

void pool_fault(void) {
    for (uint32_t i = 0; i < POOL_MOST; i++)
        if (atomic_load(&members[i].armed) && pthread_equal(pthread_self(), members[i].self))
            siglongjmp(members[i].env, 1);
}
#endif
