// posix.h: the few functions of Windows that fakejvm.c uses, for glibc and musl.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef pthread_mutex_t SRWLOCK;
typedef int LONG;
typedef unsigned DWORD;
typedef void *HANDLE, *HMODULE;
#define SRWLOCK_INIT PTHREAD_MUTEX_INITIALIZER
#define AcquireSRWLockExclusive pthread_mutex_lock
#define ReleaseSRWLockExclusive pthread_mutex_unlock
#define InterlockedIncrement(p) (__atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST))
#define InterlockedDecrement(p) (__atomic_sub_fetch(p, 1, __ATOMIC_SEQ_CST))
#define WINAPI
#define LoadLibraryA(path) dlopen(path, RTLD_NOW | RTLD_LOCAL)
#define GetProcAddress dlsym

static void Sleep(unsigned ms) { nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL); }

struct posix_thread {
    DWORD (*f)(void *);
    void *arg;
};
static void *posix_thread(void *p) {
    struct posix_thread t = *(struct posix_thread *)p;
    free(p);
    return (void *)(uintptr_t)t.f(t.arg);
}
// CreateThread gives a handle to join, or NULL.
static HANDLE CreateThread(void *a, size_t stack, DWORD (*f)(void *), void *arg, int flags, void *id) {
    (void)a, (void)stack, (void)flags, (void)id;
    struct posix_thread *t = malloc(sizeof *t);
    pthread_t *thread = malloc(sizeof *thread);
    if (!t || !thread) return NULL;
    *t = (struct posix_thread){f, arg};
    return pthread_create(thread, NULL, posix_thread, t) ? NULL : thread;
}
