//go:build ignore

// os_windows.c: os.h for Windows (x86-64, mingw). Nothing here is newer than Windows 7.
#ifdef _WIN32
#define _CRT_RAND_S
#include "os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "guard.h"

// ---- time ---------------------------------------------------------------------------------------
static uint64_t frequency = 1; // of the performance counter; os_init asks

uint64_t now_ns(void) { // as shmring.Monotonic counts
    LARGE_INTEGER n;
    QueryPerformanceCounter(&n);
    uint64_t c = (uint64_t)n.QuadPart;
    return c / frequency * 1000000000u + c % frequency * 1000000000u / frequency;
}

// Windows counts the times of threads in ticks of 15 ms, which is more than any pause: wall-clock time replaces CPU
// time.
uint64_t cpu_ns(void) { return now_ns(); }

static uint64_t ticks100(FILETIME t) { return (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime; } // 100 ns since 1601

uint64_t os_wall_ms(void) {
    FILETIME t;
    GetSystemTimeAsFileTime(&t);
    return ticks100(t) / 10000 - 11644473600000ull;
}

void os_sleep_us(unsigned us) { Sleep((us + 999) / 1000); }

// ---- memory -------------------------------------------------------------------------------------
// Windows promises what it hands out: a table of 800 MB that stays empty would count in full. Such ones are reserved
// alone, and committed by the handler below where they are touched, as Linux does by itself: in a pause, too.
enum { CHUNK = 1 << 16, MAX_SPARSE = 8 };
static struct { uintptr_t lo, hi; } sparse[MAX_SPARSE];
static _Atomic int nsparse;

void *os_memory(size_t n) { return VirtualAlloc(NULL, n, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }

void *os_sparse(size_t n) {
    int i = 0;
    while (i < nsparse && sparse[i].hi) i++; // a place that was given back
    if (i == MAX_SPARSE) return NULL;
    void *p = VirtualAlloc(NULL, n, MEM_RESERVE, PAGE_READWRITE);
    if (!p) return NULL;
    sparse[i].lo = (uintptr_t)p, sparse[i].hi = (uintptr_t)p + n;
    if (i == nsparse) nsparse = i + 1;
    return p;
}

void os_have(void *p, size_t n) { (void)p, (void)n; } // each is had when it is touched
void os_give_back(void *p, size_t n) { VirtualFree(p, n, MEM_DECOMMIT); }

void os_release(void *p, size_t n) {
    (void)n;
    for (int i = 0; i < nsparse; i++)
        if (sparse[i].lo == (uintptr_t)p) sparse[i].lo = sparse[i].hi = 0;
    VirtualFree(p, 0, MEM_RELEASE);
}

static bool commit(uintptr_t at) {
    for (int i = 0; i < nsparse; i++) {
        if (at < sparse[i].lo || at >= sparse[i].hi) continue;
        uintptr_t lo = at & ~(uintptr_t)(CHUNK - 1), hi = lo + CHUNK < sparse[i].hi ? lo + CHUNK : sparse[i].hi;
        return VirtualAlloc((void *)lo, hi - lo, MEM_COMMIT, PAGE_READWRITE) != NULL;
    }
    return false;
}

// ---- the process --------------------------------------------------------------------------------
uint32_t os_pid(void) { return GetCurrentProcessId(); }

uint64_t os_start_ticks(void) {
    FILETIME created, exited, kernel, user;
    return GetProcessTimes(GetCurrentProcess(), &created, &exited, &kernel, &user) ? ticks100(created) : 0;
}

uint64_t os_pid_namespace(void) { return 0; }

uint64_t os_memory_left(void) {
    MEMORYSTATUSEX m = {.dwLength = sizeof m};
    return GlobalMemoryStatusEx(&m) ? m.ullAvailPageFile
                                    : UINT64_MAX; // what may still be promised, to this process too
}

unsigned os_cpus(void) { return 1; } // more would be of use to the pool alone, which is not there
void os_random(uint8_t b[16]) {
    for (int i = 0; i < 16; i += 4) {
        unsigned v = 0;
        if (rand_s(&v)) v = 0;
        memcpy(b + i, &v, 4);
    }
}

bool os_exists(const char *path) { return GetFileAttributesA(path) != INVALID_FILE_ATTRIBUTES; }

void os_host_switch(char *path, size_t n) { // as the agent's: paths_windows.go
    const char *d = getenv("ProgramData");
    snprintf(path, n, "%s\\heapcam\\disabled", d && *d ? d : "C:\\ProgramData");
}

void os_stderr(const char *s, size_t n) {
    DWORD done;
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), s, (DWORD)n, &done, NULL);
}

void *os_library_of(void *address) {
    HMODULE m = NULL;
    GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, address,
                       &m);
    return m;
}

void *os_symbol(void *library, const char *name) { return (void *)(uintptr_t)GetProcAddress(library, name); }

_Static_assert(sizeof(os_mutex) == sizeof(SRWLOCK), "os.h is without windows.h");
void *os_thread_value(unsigned key) { return TlsGetValue(key); }
void os_lock(os_mutex *m) { AcquireSRWLockExclusive((SRWLOCK *)m); }
void os_unlock(os_mutex *m) { ReleaseSRWLockExclusive((SRWLOCK *)m); }

// ---- the guard ----------------------------------------------------------------------------------
void *guard_env[5];
static volatile DWORD armed_thread; // 0: none

// Where a guarded thread continues after a fault: on its own stack and outside of the handler. This never returns.
static void after_fault(void) { guard_leave(); }

// The first of the process' handlers, called on any thread. It passes on each fault that is not the probe's: the JVM
// itself uses faults (safepoints, null checks, stack banging).
static LONG CALLBACK on_fault(EXCEPTION_POINTERS *x) {
    const EXCEPTION_RECORD *r = x->ExceptionRecord;
    if ((r->ExceptionCode != EXCEPTION_ACCESS_VIOLATION && r->ExceptionCode != EXCEPTION_IN_PAGE_ERROR) ||
        r->NumberParameters < 2)
        return EXCEPTION_CONTINUE_SEARCH;
    if (commit(r->ExceptionInformation[1])) return EXCEPTION_CONTINUE_EXECUTION;
    if (armed_thread != GetCurrentThreadId()) return EXCEPTION_CONTINUE_SEARCH;
    violated = fault_text;
    violated_at = r->ExceptionInformation[1];
    CONTEXT *c = x->ContextRecord;
    c->Rip = (DWORD64)(uintptr_t)after_fault;
    c->Rsp = ((c->Rsp - 128) & ~(DWORD64)15) - 8; // as after a call: the stack is aligned to 16 before it
    return EXCEPTION_CONTINUE_EXECUTION;
}

// The linker sorts these by what follows the dollar sign.
static __attribute__((section(".data$hc_a"), used)) uint64_t state_begin = 1;
static __attribute__((section(".data$hc_z"), used)) uint64_t state_end = 1;
void *os_state(size_t *n) {
    *n = (size_t)((uint8_t *)&state_end - (uint8_t *)(&state_begin + 1));
    return &state_begin + 1;
}

bool os_init(void) {
    LARGE_INTEGER f;
    HMODULE m;
    static bool done;
    if (QueryPerformanceFrequency(&f) && f.QuadPart > 0) frequency = (uint64_t)f.QuadPart;
    if (done) return true;
    // The handler stays as long as the process, and so must the library.
    done = GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                              (void *)(uintptr_t)on_fault, &m) &&
           AddVectoredExceptionHandler(1, on_fault);
    return done;
}

void guard_arm(void) {
    violated = NULL;
    armed_thread = GetCurrentThreadId();
}

void guard_disarm(void) { armed_thread = 0; }
void guard_put_back(void) {}

_Noreturn void guard_leave(void) { __builtin_longjmp(guard_env, 1); }

bool safe_read(void *dst, uint64_t addr, size_t n) {
    SIZE_T got = 0;
    return ReadProcessMemory(GetCurrentProcess(), (void *)(uintptr_t)addr, dst, n, &got) && got == n;
}

size_t safe_read_many(void *const *dst, const uint64_t *addr, size_t n, size_t bytes) {
    size_t i = 0;
    while (i < n && safe_read(dst[i], addr[i], bytes)) i++;
    return i;
}

bool safe_write(uint64_t addr, const void *src, size_t n) {
    SIZE_T done = 0;
    return WriteProcessMemory(GetCurrentProcess(), (void *)(uintptr_t)addr, src, n, &done) && done == n;
}

// The handler is not asked for by -Xcheck:jni: the guard finds out what was given back.
void need_memory(uint64_t lo, uint64_t hi) { (void)lo, (void)hi; }
#endif
