// copies.c: what copies memory in os_posix.c where process_vm_readv must not be called.
//
//   copies HOW CASE    prints what is wrong; 1: something is. HOW is what the calls meet:
//                      an errno (a seccomp filter refuses them; 0: nothing does), missing (they are refused without a
//                      filter, as in qemu-user), kill (a filter ends the process at them, at pipe and at memfd_create),
//                      blind (at prctl, too), later (as kill, after calls that worked)
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "os.h"

PER_RECORDING int none_here; // the section must not be empty
enum { PAGE = 4096 };
static int bad;
#define CHECK(x) ((x) ? (void)0 : (void)(bad = 1, printf("line %d: %s (errno %d)\n", __LINE__, #x, errno)))

// What the probe calls, in the place of the C library's: where they are missing no filter says so. Calls that look at
// memory are counted.
static bool missing;
static _Atomic unsigned long looks;
ssize_t writev(int fd, const struct iovec *v, int n) {
    looks++;
    return syscall(SYS_writev, fd, v, n);
}
ssize_t process_vm_readv(pid_t p, const struct iovec *l, unsigned long nl, const struct iovec *r, unsigned long nr,
                         unsigned long flags) {
    looks++;
    return missing ? errno = ENOSYS, -1 : syscall(SYS_process_vm_readv, p, l, nl, r, nr, flags);
}
ssize_t process_vm_writev(pid_t p, const struct iovec *l, unsigned long nl, const struct iovec *r, unsigned long nr,
                          unsigned long flags) {
    return missing ? errno = ENOSYS, -1 : syscall(SYS_process_vm_writev, p, l, nl, r, nr, flags);
}

#define AT(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, then)
static void filter(unsigned then, bool more, bool blind) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              AT(SYS_process_vm_readv),
                              AT(SYS_process_vm_writev),
                              AT(more ? SYS_pipe2 : SYS_process_vm_readv),
#ifdef SYS_pipe
                              AT(more ? SYS_pipe : SYS_process_vm_readv),
#endif
                              AT(more ? SYS_memfd_create : SYS_process_vm_readv),
                              AT(blind ? SYS_prctl : SYS_process_vm_readv),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) abort();
}

static void meet(const char *how) {
    uint64_t from = 7, to = 0;
    if (!strcmp(how, "missing"))
        missing = true;
    else if (!strcmp(how, "kill") || !strcmp(how, "blind"))
        filter(SECCOMP_RET_KILL_PROCESS, true, *how == 'b');
    else if (atoi(how))
        filter(SECCOMP_RET_ERRNO | (unsigned)atoi(how), false, false);
    CHECK(os_init()); // after the filter, as below a container
    if (strcmp(how, "later")) return;
    CHECK(safe_read(&to, (uint64_t)&from, sizeof to) && to == 7);
    filter(SECCOMP_RET_KILL_PROCESS, true, false);
}

static int descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 4096; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static char *holed(size_t pages, size_t hole) { // one page of it cannot be read
    char *m = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED || (hole < pages && mprotect(m + hole * PAGE, PAGE, PROT_NONE))) abort();
    return m;
}

static void copies(void) {
    static char to[20 * PAGE];
    char *m = holed(24, 20);
    for (size_t i = 0; i < sizeof to; i++) m[i] = (char)(i * 7 + i / PAGE);
    CHECK(safe_read(to, (uint64_t)m, sizeof to) && !memcmp(to, m, sizeof to));
    CHECK(safe_read(to, (uint64_t)m + 4000, 200) && !memcmp(to, m + 4000, 200));
    CHECK(!safe_read(to, (uint64_t)m + 20 * PAGE - 100, 200));
    CHECK(!safe_read(to, (uint64_t)m + 19 * PAGE, 2 * PAGE));
    CHECK(!safe_read(to, 8, 8) && !safe_read(to, 0x8000000000000000, 8) && !safe_read(to, ~7ull, 8));
    memset(to, 1, sizeof to);
    CHECK(safe_write((uint64_t)m, to, sizeof to) && !memcmp(to, m, sizeof to));
    CHECK(!safe_write((uint64_t)m + 19 * PAGE, to, 2 * PAGE));
    CHECK(!mprotect(m, PAGE, PROT_READ) && !safe_write((uint64_t)m, to, 8));
}

struct range {
    char *m;
    size_t pages;
};
static void walk(void *arg) {
    const struct range *r = arg;
    need_memory((uint64_t)r->m + 8, (uint64_t)r->m + r->pages * PAGE);
}

static void pages(void) { // as in a pause of a JVM with -Xcheck:jni
    enum { N = 1 << 14 };
    struct range all = {holed(N, N), N}, hole = {holed(1000, 700), 1000};
    guard_without_handler = true;
    uint64_t begin = cpu_ns(); // for the reader: a busy machine multiplies it
    CHECK(guarded(walk, &all));
    printf("%d pages: %lu calls, %llu us\n", N, (unsigned long)looks, (unsigned long long)(cpu_ns() - begin) / 1000);
    CHECK(looks <= N / 256 + 4); // one for 256 pages, and those that find out what may be called
    CHECK(!guarded(walk, &hole) && violated_at);
    hole.pages = 700;
    CHECK(guarded(walk, &hole));
    guard_without_handler = false;
}

static void exhausted(void) { // no descriptor is left: false, at once, and the reason
    char b[64];
    struct rlimit none = {3, 3};
    for (int fd = 3; fd < 64; fd++) close(fd);
    CHECK(!setrlimit(RLIMIT_NOFILE, &none));
    errno = 0;
    CHECK(!safe_read(b, (uint64_t)&none, sizeof b) && errno == EMFILE);
    CHECK(!safe_write((uint64_t)b, &none, sizeof b) && errno == EMFILE);
}

// No room in /dev/shm, or none that may be written to: refused, and no word of an address.
static void no_room(void) {
    char b[64], *m = holed(1, 1);
    if (geteuid() || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/dev/shm", "tmpfs", 0, "size=4096"))
        return (void)printf("not run: /dev/shm without room (needs root)\n");
    int fd = open("/dev/shm/full", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, m, PAGE) == PAGE);
    errno = 0;
    CHECK(!safe_read(b, (uint64_t)m, sizeof b) && errno == EPERM);
    close(fd);
    CHECK(!unlink("/dev/shm/full") && safe_read(b, (uint64_t)m, sizeof b));
    CHECK(!mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_RDONLY, NULL));
    errno = 0;
    CHECK(!safe_write((uint64_t)m, b, sizeof b) && errno == EPERM);
}

static void *reads(void *arg) {
    (void)arg;
    char to[3000], from[3000];
    memset(from, (char)(uintptr_t)&to, sizeof from);
    for (int i = 0; i < 500; i++) {
        memset(to, 0, sizeof to);
        CHECK(safe_read(to, (uint64_t)from, sizeof to) && !memcmp(to, from, sizeof to));
        CHECK(!safe_read(to, 8, 8));
    }
    return NULL;
}

static void threads(void) { // others fork all the time; no descriptor is left over in the end
    pthread_t t[8];
    int before = descriptors();
    for (int i = 0; i < 8; i++) pthread_create(&t[i], NULL, reads, NULL);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (!child) _exit(0);
        waitpid(child, NULL, 0);
    }
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    CHECK(descriptors() == before);
}

int main(int n, char **a) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"copies", copies},       {"pages", pages},         {"exhausted", exhausted},
                 {"no_room", no_room}, {"threads", threads}};
    if (n != 3) return 2;
    alarm(120); // whatever waits
    meet(a[1]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(a[2], cases[i].name)) return cases[i].run(), bad;
    return 2;
}
