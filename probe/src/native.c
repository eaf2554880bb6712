//go:build ignore

// native.c: native.h.
#ifndef _WIN32
#include "native.h"

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os.h"

// Not by name: until 2.34 glibc has these in another library, which every JVM has loaded.
static struct {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*join)(pthread_t, void **);
    int (*attr_init)(pthread_attr_t *);
    int (*attr_stack)(pthread_attr_t *, size_t);
    int (*attr_destroy)(pthread_attr_t *);
} threads;

static bool find_threads(void) {
    *(void **)&threads.create = os_symbol(RTLD_DEFAULT, "pthread_create");
    *(void **)&threads.join = os_symbol(RTLD_DEFAULT, "pthread_join");
    *(void **)&threads.attr_init = os_symbol(RTLD_DEFAULT, "pthread_attr_init");
    *(void **)&threads.attr_stack = os_symbol(RTLD_DEFAULT, "pthread_attr_setstacksize");
    *(void **)&threads.attr_destroy = os_symbol(RTLD_DEFAULT, "pthread_attr_destroy");
    return threads.create && threads.join && threads.attr_init && threads.attr_stack && threads.attr_destroy;
}

// What a thread that begins inherits. It handles faults, and 32 to 34, which the C library sends to all threads and
// waits for (setuid): the kernel is asked, since the C library blocks these never and what it asks for is its secret.
static void mask_set(uint64_t mask, uint64_t *was) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, was, sizeof mask);
}
static uint64_t bit(int sig) { return 1ull << (sig - 1); }

enum { STACK = 256 << 10 };
bool native_start(pthread_t *t, void *(*f)(void *), void *arg) {
    pthread_attr_t attr;
    if (!find_threads() || threads.attr_init(&attr)) return false;
    bool ok = !threads.attr_stack(&attr, STACK);
    uint64_t was, not = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGFPE) | bit(SIGTRAP) | 7ull << 31;
    mask_set(~not, &was);
    ok = ok && !threads.create(t, &attr, f, arg);
    mask_set(was, NULL);
    threads.attr_destroy(&attr);
    return ok;
}

void native_join(pthread_t t) { threads.join(t, NULL); }

void native_name(const char *name) { syscall(SYS_prctl, PR_SET_NAME, name, 0, 0, 0); }
#endif
