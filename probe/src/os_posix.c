//go:build ignore

// os_posix.c: os.h for Linux.
#ifndef _WIN32
#include "os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"
#include "pool.h"

static unsigned keys; // of thread-specific storage: glibc has 1,024, musl 128, and musl checks no key that is too large

static void look_for_filter(void);

bool os_init(void) {
    long n = sysconf(_SC_THREAD_KEYS_MAX);
    keys = n > 0 && n < OS_KEYS ? (unsigned)n : OS_KEYS;
    look_for_filter();
    return true;
}

extern uint8_t __start_hc_recording[], __stop_hc_recording[]; // the linker's
void *os_state(size_t *n) {
    *n = (uintptr_t)__stop_hc_recording - (uintptr_t)__start_hc_recording;
    return __start_hc_recording;
}

// ---- time ---------------------------------------------------------------------------------------
static uint64_t clock_ns(clockid_t c) {
    struct timespec t;
    clock_gettime(c, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
uint64_t os_wall_ms(void) { return clock_ns(CLOCK_REALTIME) / 1000000; }
void os_sleep_us(unsigned us) { usleep(us); }

// ---- memory -------------------------------------------------------------------------------------
void *os_memory(size_t n) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
void *os_sparse(size_t n) { return os_memory(n); }
void os_have(void *p, size_t n) {
    enum { POPULATE_WRITE = 23 }; // MADV_POPULATE_WRITE, Linux 5.14; before, each is had when it is touched
    madvise(p, n, POPULATE_WRITE);
}
void os_give_back(void *p, size_t n) { madvise(p, n, MADV_DONTNEED); }
void os_release(void *p, size_t n) { munmap(p, n); }

int os_write_zeros(int fd, uint64_t at, uint64_t n) {
    enum { PAGES = 64, TRIES = 1000 };
    static const char page[4096];
    struct iovec v[PAGES];
    int tries = 0;
    for (int i = 0; i < PAGES; i++) v[i] = (struct iovec){(void *)(uintptr_t)page, sizeof page};
    if (lseek(fd, (off_t)at, SEEK_SET) < 0) return errno;
    while (n) {
        const uint64_t whole = n / sizeof page;
        const ssize_t did = whole ? writev(fd, v, whole < PAGES ? (int)whole : PAGES) : write(fd, page, n);
        if (did > 0)
            n -= (uint64_t)did;
        else if (!did || errno != EINTR || ++tries == TRIES)
            return did ? errno : ENOSPC;
    }
    return 0;
}

// ---- the process --------------------------------------------------------------------------------
uint32_t os_pid(void) { return (uint32_t)getpid(); }

static ssize_t content(const char *path, char *b, size_t n) { // NUL-terminated, cut
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, b, n - 1);
    if (fd >= 0) close(fd);
    b[got > 0 ? got : 0] = 0;
    return got;
}

// What the time namespace of this process adds to a clock, ns. An agent may be in another one: neither counts it.
static int64_t clock_shift(const char *clock) {
    char b[256];
    long long s = 0, n = 0;
    content("/proc/self/timens_offsets", b, sizeof b);
    const char *p = strstr(b, clock);
    if (p) sscanf(p + strlen(clock), "%lld %lld", &s, &n);
    return s * 1000000000ll + n;
}

uint64_t now_ns(void) {
    // The first call is at the load: no pause reads a file.
    static _Atomic int64_t time_shift;
    static _Atomic bool time_shift_known;
    if (!atomic_load_explicit(&time_shift_known, memory_order_acquire)) {
        atomic_store(&time_shift, clock_shift("monotonic"));
        atomic_store_explicit(&time_shift_known, true, memory_order_release);
    }
    return clock_ns(CLOCK_MONOTONIC) - (uint64_t)atomic_load_explicit(&time_shift, memory_order_relaxed);
}

uint64_t os_start_ticks(void) {
    const int64_t tick = 10000000; // ns: USER_HZ is 100
    char b[1024];
    content("/proc/self/stat", b, sizeof b);
    char *p = strrchr(b, ')');
    unsigned long long t = 0;
    if (p) sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &t);
    return t ? t - (uint64_t)(clock_shift("boottime") / tick) : 0;
}

uint64_t os_pid_namespace(void) {
    struct stat st; // the kernel's own call: glibc has stat as a symbol since 2.33 only
    return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &st, 0) == 0 ? st.st_ino : 0;
}

static uint64_t number_in(const char *path) { // of a file that holds one; 0: none
    char b[32];
    content(path, b, sizeof b);
    return strtoull(b, NULL, 10); // "max" is 0
}

// Of what a group uses: pages of files that nobody has used lately, which the kernel takes first.
static uint64_t cached_by(bool v2, const char *group) {
    char path[600], b[8192];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/memory.stat", v2 ? "" : "/memory", group);
    content(path, b, sizeof b);
    const char *key = v2 ? "\ninactive_file " : "\ntotal_inactive_file ", *p = strstr(b, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

// Makes a group its parent; false: it was the root of what is mounted. Inside a container the path of a process is the
// host's or "/", and what is mounted is the container's own group: so the root is looked at as well.
static bool to_parent(char *group) {
    char *slash = strrchr(group, '/');
    if (!group[0]) return false;
    *(slash ? slash : group) = 0;
    return true;
}

static uint64_t left_of(bool v2, const char *group) {
    char max[600], now[600];
    const char *tree = v2 ? "" : "/memory";
    snprintf(max, sizeof max, "/sys/fs/cgroup%s%s/memory.%s", tree, group, v2 ? "max" : "limit_in_bytes");
    snprintf(now, sizeof now, "/sys/fs/cgroup%s%s/memory.%s", tree, group, v2 ? "current" : "usage_in_bytes");
    uint64_t m = number_in(max), c = m ? number_in(now) : 0, cached = m ? cached_by(v2, group) : 0;
    c -= cached < c ? cached : c;
    return !m || m >= 1ull << 60 ? UINT64_MAX : m > c ? m - c : 0;
}

// What the system, the cgroup of this process, and those that it is in have left.
uint64_t os_memory_left(void) {
    char b[4096], *save = NULL;
    content("/proc/meminfo", b, sizeof b);
    const char *free_kb = strstr(b, "MemAvailable:");
    uint64_t left = free_kb ? strtoull(free_kb + strlen("MemAvailable:"), NULL, 10) << 10 : UINT64_MAX;
    content("/proc/self/cgroup", b, sizeof b);
    for (char *line = strtok_r(b, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *path = strrchr(line, ':');
        bool v2 = !strncmp(line, "0::", 3);
        if (!path || strlen(path) > 400 || (!v2 && !strstr(line, ":memory:"))) continue;
        do {
            const uint64_t n = left_of(v2, path + 1);
            if (n < left) left = n;
        } while (to_parent(path + 1));
    }
    return left;
}

// What a quota of CPU time allows, of this cgroup or the container's; UINT64_MAX: it has none.
static uint64_t quota_of(bool v2, const char *group) {
    char path[600], b[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/cpu.%s", v2 ? "" : "/cpu", group, v2 ? "max" : "cfs_quota_us");
    if (content(path, b, sizeof b) <= 0) return UINT64_MAX;
    uint64_t quota = strtoull(b, NULL, 10), period = 0; // "max" is 0
    if (b[0] == '-' || !quota) return UINT64_MAX;
    if (v2) {
        const char *second = strchr(b, ' ');
        period = second ? strtoull(second, NULL, 10) : 0;
    } else {
        snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", group);
        period = number_in(path);
    }
    return period ? quota / period : UINT64_MAX;
}

unsigned os_cpus(void) {
    uint64_t set[128] = {0}, cpus = 0, most = UINT64_MAX;
    long n = syscall(SYS_sched_getaffinity, 0, sizeof set, set);
    for (long i = 0; i < n / 8; i++) cpus += (uint64_t)__builtin_popcountll(set[i]);
    char b[4096], *save = NULL;
    content("/proc/self/cgroup", b, sizeof b);
    for (char *line = strtok_r(b, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *path = strrchr(line, ':');
        bool v2 = !strncmp(line, "0::", 3);
        bool v1 = strstr(line, ":cpu:") || strstr(line, ":cpu,") || strstr(line, ",cpu:");
        if (!path || strlen(path) > 400 || (!v2 && !v1)) continue;
        do {
            const uint64_t q = quota_of(v2, path + 1);
            if (q < most) most = q;
        } while (to_parent(path + 1));
    }
    return (unsigned)(cpus < most ? cpus : most);
}

void os_random(uint8_t b[16]) {
    if (syscall(SYS_getrandom, b, 16, 0) != 16) memset(b, 0, 16);
}

bool os_exists(const char *path) { return access(path, F_OK) == 0; }
void os_host_switch(char *path, size_t n) { snprintf(path, n, "/etc/heapcam/disabled"); }

void os_stderr(const char *s, size_t n) {
    ssize_t r = write(2, s, n);
    (void)r;
}

void *os_library_of(void *address) {
    Dl_info di;
    return dladdr(address, &di) ? dlopen(di.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
}
void *os_symbol(void *library, const char *name) { return dlsym(library, name); }

void *os_thread_value(unsigned key) { return key < keys ? pthread_getspecific((pthread_key_t)key) : NULL; }
void os_lock(os_mutex *m) { pthread_mutex_lock(m); }
void os_unlock(os_mutex *m) { pthread_mutex_unlock(m); }

// ---- the guard ----------------------------------------------------------------------------------
sigjmp_buf guard_env;
static volatile sig_atomic_t armed;
static pthread_t armed_thread;
// The application may set handlers of its own while ours are there, and then passes on to ours what is not its own, for
// good. So ours are several: one that somebody has built on is not armed again, and always passes on to what was there
// before it.
enum { GUARDS = 4 };
static struct guard_of {
    int sig;
    volatile sig_atomic_t no; // the one to arm; GUARDS: there is none left
    bool set;
    struct sigaction before[GUARDS];
} guards[2] = {{.sig = SIGSEGV}, {.sig = SIGBUS}};

static void on_fault(int no, int sig, siginfo_t *si, void *uc) {
    if (armed && pthread_equal(pthread_self(), armed_thread)) {
        violated = fault_text;
        violated_at = (uint64_t)si->si_addr;
        siglongjmp(guard_env, 1);
    }
    pool_fault();
    // Another thread's fault belongs to the JVM (stack banging, SafeFetch): hand it on.
    struct sigaction *o = &guards[sig == SIGBUS].before[no];
    if (o->sa_flags & SA_SIGINFO)
        o->sa_sigaction(sig, si, uc);
    else if (o->sa_handler != SIG_DFL && o->sa_handler != SIG_IGN)
        o->sa_handler(sig);
    else
        sigaction(sig, o, NULL); // it faults again, and the system does what it does
}
static void on_fault0(int sig, siginfo_t *si, void *uc) { on_fault(0, sig, si, uc); }
static void on_fault1(int sig, siginfo_t *si, void *uc) { on_fault(1, sig, si, uc); }
static void on_fault2(int sig, siginfo_t *si, void *uc) { on_fault(2, sig, si, uc); }
static void on_fault3(int sig, siginfo_t *si, void *uc) { on_fault(3, sig, si, uc); }
static void (*const handlers[GUARDS])(int, siginfo_t *, void *) = {on_fault0, on_fault1, on_fault2, on_fault3};

static bool is_ours(const struct sigaction *a, int no) {
    return a->sa_flags & SA_SIGINFO && a->sa_sigaction == handlers[no];
}

static void guard_set(struct guard_of *g) {
    struct sigaction is;
    if (g->set) { // a thread of the pool was late, so ours stayed
        if (!sigaction(g->sig, NULL, &is) && is_ours(&is, g->no)) return;
        g->no++; // somebody has built on it
    }
    if (g->no == GUARDS)
        violation("other agents keep replacing the signal handler during collections", (uint64_t)g->sig);
    struct sigaction a, *before = &g->before[g->no], was;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = handlers[g->no];
    a.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    // Known before ours can be called, in whatever thread.
    g->set = (before->sa_handler || !sigaction(g->sig, NULL, before)) && !sigaction(g->sig, &a, &was);
    if (!g->set) violation("cannot install the signal handler", (uint64_t)g->sig);
    if (!is_ours(&was, g->no)) *before = was; // else somebody kept ours, and has put it back
}

static void guard_unset(struct guard_of *g) {
    struct sigaction is;
    if (!g->set) return;
    g->set = false;
    if (!sigaction(g->sig, NULL, &is) && !is_ours(&is, g->no)) { // the application's, set meanwhile: it stays
        g->no++;
        return;
    }
    // If it cannot be put back ours stays, and passes on.
    if (sigaction(g->sig, &g->before[g->no], &is) || is_ours(&is, g->no)) return;
    sigaction(g->sig, &is, NULL); // set in between
    g->no++;
}

void guard_arm(void) {
    violated = NULL;
    armed_thread = pthread_self();
    armed = 1;
    if (guard_without_handler)
        return; // -Xcheck:jni complains about a foreign handler; walks are bounded by what is committed
    for (int i = 0; i < 2; i++) guard_set(&guards[i]);
}

void guard_disarm(void) {
    if (!armed) return;
    pool_close();
    armed = 0;
    guard_put_back();
}

void guard_put_back(void) {
    if (armed || !pool_quiet()) return;
    for (int i = 0; i < 2; i++) guard_unset(&guards[i]);
}

_Noreturn void guard_leave(void) { siglongjmp(guard_env, 2); }

// process_vm_readv copies what may not be there. Where it is missing (qemu-user) or refused, and where a seccomp filter
// is in force, a file without a name copies instead: the kernel checks both addresses there too, and answers EFAULT. A
// filter may end the process at a call that it does not know, and nobody can ask it. So below a filter nothing is
// called that the JVM itself does not call: no pipe either. The file is in memory and lives for one copy, so threads
// share nothing.
static volatile sig_atomic_t copy_by_file; // for good

// To read /proc takes no call that a filter may forbid. A filter may also come later, for one thread or for all: so
// each thread asks again before each call.
static void look_for_filter(void) {
    char b[8192];
    if (content("/proc/thread-self/status", b, sizeof b) <= 0) content("/proc/self/status", b, sizeof b);
    const char *line = strstr(b, "\nSeccomp:");
    if (line && strtoull(line + sizeof "\nSeccomp:" - 1, NULL, 10)) copy_by_file = 1;
}

static bool may_call(void) {
    if (copy_by_file) return false;
    int mode = (int)syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0);
    if (!mode || (mode < 0 && errno == EINVAL)) return errno = 0, true; // EINVAL: the kernel has no filters
    copy_by_file = 1;
    return false;
}

static int scratch(void) {
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EMFILE && errno != ENFILE) errno = EPERM; // refused, whatever is wrong with the folder
    return fd;
}

static bool give_back(int fd, bool ok) {
    int e = errno;
    close(fd);
    errno = e == ENOSPC || e == EDQUOT ? EPERM : e;
    return ok;
}

static bool copied(void *dst, const void *src, size_t n) {
    enum { AT_ONCE = 64 << 10 };
    int fd = scratch();
    if (fd < 0) return false;
    bool ok = true;
    for (size_t done = 0, part; ok && done < n; done += part) {
        part = n - done < AT_ONCE ? n - done : AT_ONCE;
        ok = lseek(fd, 0, SEEK_SET) == 0 && write(fd, (const char *)src + done, part) == (ssize_t)part &&
             lseek(fd, 0, SEEK_SET) == 0 && read(fd, (char *)dst + done, part) == (ssize_t)part;
    }
    return give_back(fd, ok);
}

// Whether each of n bytes can be read. One file for a MiB takes a pause about twice as long as process_vm_readv does.
static bool readable(const struct iovec *from, size_t n) {
    int fd = scratch();
    return fd >= 0 && give_back(fd, writev(fd, from, (int)n) == (ssize_t)n);
}
static bool no_call(void) { return errno == ENOSYS || errno == EPERM || errno == EACCES; }

bool safe_read(void *dst, uint64_t addr, size_t n) {
    struct iovec l = {dst, n}, r = {(void *)addr, n};
    errno = 0;
    if (may_call()) {
        if (process_vm_readv(getpid(), &l, 1, &r, 1, 0) == (ssize_t)n) return true;
        if (!no_call()) return false;
        copy_by_file = 1;
    }
    errno = 0;
    return copied(dst, (const void *)addr, n);
}

size_t safe_read_many(void *const *dst, const uint64_t *addr, size_t n, size_t bytes) {
    struct iovec l[READ_MANY], r[READ_MANY];
    for (size_t i = 0; i < n; i++)
        l[i] = (struct iovec){dst[i], bytes}, r[i] = (struct iovec){(void *)(uintptr_t)addr[i], bytes};
    errno = 0;
    const ssize_t got = may_call() ? process_vm_readv(getpid(), l, n, r, n, 0) : 0;
    return got > 0 ? (size_t)got / bytes : 0;
}

bool safe_write(uint64_t addr, const void *src, size_t n) {
    struct iovec l = {(void *)src, n}, r = {(void *)addr, n};
    errno = 0;
    if (may_call()) {
        if (process_vm_writev(getpid(), &l, 1, &r, 1, 0) == (ssize_t)n) return true;
        if (!no_call()) return false;
        copy_by_file = 1;
    }
    errno = 0;
    return copied((void *)addr, src, n);
}

// A collection may have returned the memory that it emptied before the probe is called. The guard finds that out; where
// there is none (-Xcheck:jni) each page is asked for before it is walked.
void need_memory(uint64_t lo, uint64_t hi) {
    if (!guard_without_handler) return;
    enum { PAGE = 4096, AT_ONCE = 256 };
    struct iovec from[AT_ONCE];
    uint8_t byte[AT_ONCE];
    while (lo < hi) {
        size_t n = 0;
        for (uint64_t a = lo; a < hi && n < AT_ONCE; a = (a | (PAGE - 1)) + 1) from[n++] = (struct iovec){(void *)a, 1};
        // cppcheck-suppress legacyUninitvar ; the call fills it
        struct iovec to = {byte, n};
        const ssize_t got = may_call() ? process_vm_readv(getpid(), &to, 1, from, n, 0) : -1;
        if (got < 0 && no_call()) copy_by_file = 1;
        if (copy_by_file ? !readable(from, n) : got != (ssize_t)n)
            violation("memory that was emptied has been given back", lo);
        lo = ((uint64_t)from[n - 1].iov_base | (PAGE - 1)) + 1;
    }
}
#endif
