// faults.c: preloaded into a JVM: calls of the C library that come from the probe fail as the environment says.
//   FAULT=NAME:N:COUNT:ERRNO   the N-th call of NAME and COUNT-1 more fail; ERRNO 0: half of what was asked for
//   FAULT_COUNTS=FILE          at the end, how often each was called
//   FAULT_VICTIM=FILE          the descriptor of the ring becomes this file's, right after the probe has looked at it
//   FAULT_VICTIM_AT=N          for the N-th time
//   FAULT_HANDLERS=N           while the probe's handler for SIGSEGV is set, N times, the application sets
//                              one of its own; it lives on faults
//   FAULT_FORKS=1              a thread forks children that live on without exec, and such that run programs
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };
static struct {
    const char *name;
    atomic_long n;
} calls[MOST];
static char which[40];
static long at, count;
static int with;
static const char *victim;
static long victim_at, handlers;
static _Atomic uintptr_t lo; // the probe
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);

static int probes(void *from) {
    uintptr_t a = (uintptr_t)from, l = atomic_load(&lo);
    Dl_info d;
    if (l && a - l >= 0x100000) return 0; // it is smaller
    if (!dladdr(from, &d) || !d.dli_fname || !strstr(d.dli_fname, "libheapcam")) return 0;
    atomic_store(&lo, (uintptr_t)d.dli_fbase);
    return 1;
}

static int fails(const char *name) { // 0: no, 1: errno, 2: short
    int i = 0;
    while (i < MOST && calls[i].name && strcmp(calls[i].name, name)) i++;
    if (i == MOST) return 0;
    calls[i].name = name; // two threads at once: the same name twice at worst
    long n = atomic_fetch_add(&calls[i].n, 1) + 1;
    if (strcmp(which, name) || n < at || n >= at + count) return 0;
    errno = with;
    return with ? 1 : 2;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define OURS (probes(__builtin_return_address(0)))
#define WRAP(type, name, params, args, bad) \
    type name params { REAL(name); if (OURS && fails(#name) == 1) return bad; return real args; }

static void *fork_on(void *arg) {
    static char *const none[] = {NULL}; // `true` must not preload this library: its own thread would fork as well
    for (int i = 0, alive = 0;; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) alive -= alive > 0;
        struct timespec pause = {0, 5000000};
        nanosleep(&pause, NULL);
        if (alive > 100) continue;
        alive++;
        pid_t p = i % 3 ? fork() : vfork();
        if (!p && i % 3 == 1) { // lives on for a while, with all that is open
            struct timespec t = {0, 200000000};
            nanosleep(&t, NULL);
        }
        if (!p && i % 3 != 1) execle("/bin/true", "true", NULL, none);
        if (!p) _exit(0);
    }
    return arg;
}

__attribute__((constructor)) static void begin(void) {
    const char *f = getenv("FAULT");
    if (f) sscanf(f, "%39[^:]:%ld:%ld:%d", which, &at, &count, &with);
    victim = getenv("FAULT_VICTIM");
    if ((f = getenv("FAULT_VICTIM_AT"))) victim_at = atol(f);
    if ((f = getenv("FAULT_HANDLERS"))) handlers = atol(f);
    pthread_t t;
    if (getenv("FAULT_FORKS")) pthread_create(&t, NULL, fork_on, NULL);
}

__attribute__((destructor)) static void end(void) {
    const char *f = getenv("FAULT_COUNTS");
    FILE *o = f ? fopen(f, "w") : NULL;
    for (int i = 0; o && i < MOST && calls[i].name; i++) fprintf(o, "%s %ld\n", calls[i].name, (long)calls[i].n);
    if (o) fclose(o);
}

int open(const char *path, int flags, ...) {
    REAL(open);
    va_list ap;
    va_start(ap, flags);
    int mode = va_arg(ap, int);
    va_end(ap);
    return OURS && fails("open") == 1 ? -1 : real(path, flags, mode);
}
int openat(int dir, const char *path, int flags, ...) {
    REAL(openat);
    va_list ap;
    va_start(ap, flags);
    int mode = va_arg(ap, int);
    va_end(ap);
    return OURS && fails("openat") == 1 ? -1 : real(dir, path, flags, mode);
}
#define IO(name, params, less, args) \
    ssize_t name params { \
        REAL(name); \
        int f = OURS ? fails(#name) : 0; \
        if (f == 1) return -1; \
        return f ? real less : real args; \
    }
IO(read, (int fd, void *b, size_t n), (fd, b, n / 2), (fd, b, n))
IO(pread, (int fd, void *b, size_t n, off_t o), (fd, b, n / 2, o), (fd, b, n, o))
IO(write, (int fd, const void *b, size_t n), (fd, b, n / 2), (fd, b, n))
IO(writev, (int fd, const struct iovec *v, int n), (fd, v, (n + 1) / 2), (fd, v, n))
IO(pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n / 2, o), (fd, b, n, o))

#define VM(name) \
    ssize_t name(pid_t p, const struct iovec *l, unsigned long nl, const struct iovec *r, unsigned long nr, \
                 unsigned long flags) { \
        REAL(name); \
        int f = OURS ? fails(#name) : 0; \
        if (f == 1) return -1; \
        if (!f) return real(p, l, nl, r, nr, flags); \
        struct iovec half = {l->iov_base, l->iov_len / 2}; \
        return real(p, &half, 1, r, nr, flags); \
    }
VM(process_vm_readv)
VM(process_vm_writev)

WRAP(void *, mmap, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o), MAP_FAILED)
WRAP(int, munmap, (void *a, size_t n), (a, n), -1)
WRAP(int, madvise, (void *a, size_t n, int w), (a, n, w), -1)
WRAP(int, flock, (int fd, int op), (fd, op), -1)
WRAP(int, unlink, (const char *p), (p), -1)
WRAP(int, unlinkat, (int d, const char *p, int f), (d, p, f), -1)
WRAP(int, access, (const char *p, int m), (p, m), -1)
WRAP(long, sysconf, (int n), (n), -1)
WRAP(char *, strdup, (const char *s), (s), NULL)
WRAP(int, usleep, (useconds_t u), (u), -1)

// An agent of the application that lives on faults at an address of its own.
enum { MOST_HANDLERS = 8 };
static char *own;
static struct sigaction old[MOST_HANDLERS];
static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static void on_own(int k, int sig, siginfo_t *si, void *uc) {
    if (si->si_addr == own) {
        mprotect(own, 4096, PROT_READ);
        return;
    }
    if (old[k].sa_flags & SA_SIGINFO) old[k].sa_sigaction(sig, si, uc);
    else if (old[k].sa_handler != SIG_DFL && old[k].sa_handler != SIG_IGN) old[k].sa_handler(sig);
    else abort();
}
#define H(k) static void own##k(int s, siginfo_t *i, void *u) { on_own(k, s, i, u); }
H(0) H(1) H(2) H(3) H(4) H(5) H(6) H(7)
static void (*const owns[MOST_HANDLERS])(int, siginfo_t *, void *) = {own0, own1, own2, own3, own4, own5, own6, own7};
static void *fault_on(void *arg) {
    for (;;) {
        mprotect(own, 4096, PROT_NONE);
        *(volatile char *)own;
        struct timespec t = {0, 300000};
        nanosleep(&t, NULL);
    }
    return arg;
}
int sigaction(int s, const struct sigaction *n, struct sigaction *o) {
    if (!real_sigaction) real_sigaction = (__typeof__(real_sigaction))dlsym(RTLD_NEXT, "sigaction");
    int ours = OURS;
    if (ours && fails("sigaction") == 1) return -1;
    int r = real_sigaction(s, n, o);
    static int set, armed;
    if (!ours || s != SIGSEGV || !n || set >= handlers || !probes((void *)n->sa_sigaction) || ++armed % 3 != 1)
        return r;
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = owns[set];
    a.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    if (!own) own = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    real_sigaction(SIGSEGV, &a, &old[set]);
    pthread_t t;
    if (!set++) pthread_create(&t, NULL, fault_on, NULL);
    return r;
}
WRAP(void *, pthread_getspecific, (pthread_key_t k), (k), NULL)

int close(int fd) { // Linux closes it whatever it says
    REAL(close);
    int bad = OURS && fails("close") == 1, r = real(fd);
    if (bad) errno = with;
    return bad ? -1 : r;
}
int fcntl(int fd, int cmd, ...) {
    REAL(fcntl);
    va_list ap;
    va_start(ap, cmd);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    return OURS && fails("fcntl") == 1 ? -1 : real(fd, cmd, arg);
}
long syscall(long no, ...) {
    REAL(syscall);
    va_list ap;
    va_start(ap, no);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = va_arg(ap, long);
    va_end(ap);
    int ours = OURS;
    if (ours && fails("syscall") == 1) return -1;
    long r = real(no, a[0], a[1], a[2], a[3], a[4], a[5]);
    static atomic_int seen;
    if (ours && victim && no == SYS_fstat && !r && atomic_fetch_add(&seen, 1) == victim_at) {
        int fd = open(victim, O_RDWR);
        dup2(fd, (int)a[0]);
    }
    return r;
}
void *malloc(size_t n) { return atomic_load(&lo) && OURS && fails("malloc") == 1 ? NULL : __libc_malloc(n); }
void *calloc(size_t k, size_t n) {
    return atomic_load(&lo) && OURS && fails("calloc") == 1 ? NULL : __libc_calloc(k, n);
}
