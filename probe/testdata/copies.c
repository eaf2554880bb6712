// copies.c: what copies memory in os_posix.c where a seccomp filter refuses process_vm_readv.
//
//   copies ERRNO CASE    the calls are refused with ERRNO (0: they are not). Prints what is wrong; 1: something is
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "os.h"

PER_RECORDING int none_here; // the section must not be empty
enum { PAGE = 4096 };
static int bad;
#define CHECK(x) ((x) ? (void)0 : (void)(bad = 1, printf("line %d: %s (errno %d)\n", __LINE__, #x, errno)))

static void refuse(unsigned e) {
    struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | e),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    if (!e) return;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) abort();
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

static void pages(void) { // as in a pause of a JVM with -Xcheck:jni and 4 GiB of eden
    struct range all = {holed(1 << 20, 1 << 20), 1 << 20}, hole = {holed(1000, 700), 1000};
    guard_without_handler = true;
    uint64_t begin = now_ns();
    CHECK(guarded(walk, &all));
    uint64_t took = now_ns() - begin;
    printf("%llu ms for 4 GiB\n", (unsigned long long)took / 1000000);
    CHECK(took < 5000000000ull); // 0.2 s; one pipe for each page takes many times as long
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

static void many_pipes(void) { // a user with more pages of pipes than pipe-user-pages-soft gets small ones
    struct rlimit many = {4096, 4096};
    if (setrlimit(RLIMIT_NOFILE, &many)) return;
    if (!geteuid() && setuid(65534)) abort(); // a capability lifts the limit
    for (int n = 0, p[2]; n < 1500 && !pipe2(p, O_CLOEXEC | O_NONBLOCK); n++) {
    }
    copies();
}

static void *reads(void *arg) {
    (void)arg;
    char to[3000], from[3000];
    memset(from, (char)(uintptr_t)&to, sizeof from);
    for (int i = 0; i < 3000; i++) {
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
                 {"many_pipes", many_pipes}, {"threads", threads}};
    if (n != 3) return 2;
    refuse((unsigned)atoi(a[1]));
    alarm(120); // whatever waits
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(a[2], cases[i].name)) return cases[i].run(), bad;
    return 2;
}
