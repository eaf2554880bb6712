// os.h: what the probe asks of the operating system: os_posix.c and os_windows.c. Nothing here is called by the VM thread but the clock, the
// guard, os_give_back, and for words that say so.
#ifndef HEAPCAM_OS_H
#define HEAPCAM_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool os_init(void); // before all else; false: the guard was not to be had

// ---- time ----------------------------------------------------------------------------------------------------------------------------
uint64_t now_ns(void); // monotonic, the same clock in all processes (docs/format/shared-ring.md, heartbeat)
uint64_t cpu_ns(void); // of this thread: what it waits for a processor is no cost of ours
uint64_t os_wall_ms(void); // since 1970
void os_sleep_us(unsigned us);

// ---- memory that is zero -----------------------------------------------------------------------------------------------------------------
void *os_memory(size_t n); // NULL: none
// The same for tables that stay mostly empty: their pages are had when they are touched.
void *os_sparse(size_t n);
void os_give_back(void *p, size_t n); // of os_sparse: zero again. VM thread

// ---- the process -------------------------------------------------------------------------------------------------------------------------
uint32_t os_pid(void);
uint64_t os_start_ticks(void);    // when it began, as the agent's shmring.StartTicks counts
uint64_t os_pid_namespace(void);  // 0: there are none
uint64_t os_memory_left(void);    // what may still be taken, bytes; UINT64_MAX: no limit can be seen
void os_random(uint8_t b[16]);    // all zero: none was had
bool os_exists(const char *path);
void os_host_switch(char *path, size_t n); // the default of the option disabled=
void os_stderr(const char *s, size_t n);
void *os_library_of(void *address); // NULL: in no library
void *os_symbol(void *library, const char *name);
#ifdef _WIN32
#define OPTION_SEPARATORS "," // a colon stands in every path
#else
#define OPTION_SEPARATORS ",:"
#endif

// ---- a lock for application threads; never taken by the VM thread ---------------------------------------------------------------------------
#ifdef _WIN32
typedef struct {
    void *srw;
} os_mutex;
#define OS_MUTEX_INITIALIZER {NULL}
#else
#include <pthread.h>
typedef pthread_mutex_t os_mutex;
#define OS_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#endif
// What this thread keeps below a key of the system's thread-specific storage, which somebody else made; NULL: nothing. VM thread
enum { OS_KEYS = 1024 };
void *os_thread_value(unsigned key);

void os_lock(os_mutex *m);
void os_unlock(os_mutex *m);

// ---- the shared ring's file ------------------------------------------------------------------------------------------------------------------
// Makes the file in dir ("": where the system keeps such), header bytes and behind them capacity bytes, all allocated and mapped; flags gets
// HC_RING_*. With OS_MIRRORED the data is mapped a second time right behind itself. NULL: why says why.
uint8_t *os_ring(const char *dir, uint64_t ticks, size_t header, size_t capacity, uint32_t *flags, char *why);
#ifdef _WIN32
enum { OS_MIRRORED = 0 }; // a view begins at a multiple of 64 KiB of its file, and the header has 4
#else
enum { OS_MIRRORED = 1 };
#endif

// ---- the guard: raw reads of heap and metadata that may fault -------------------------------------------------------------------------------
// if (GUARD_ENTER()) { guard_arm(); …reads… } else { …a read faulted, or violation was called… } guard_disarm();
// One thread at a time: the VM thread while the world stands still, or the loader before anything is recorded, where safe_read is refused. Nothing may be called in between that must run to its end.
#ifdef _WIN32
extern void *guard_env[5]; // the compiler's own jump: the C library's unwinds, and what is below the frames of a fault is the JVM's
#define GUARD_ENTER() (__builtin_setjmp(guard_env) == 0)
#else
#include <setjmp.h>
extern sigjmp_buf guard_env;
#define GUARD_ENTER() (sigsetjmp(guard_env, 0) == 0)
#endif
void guard_arm(void);
void guard_disarm(void);
_Noreturn void guard_leave(void); // to the else of GUARD_ENTER
bool safe_read(void *dst, uint64_t addr, size_t n); // false: not all of it is there. Any thread
void need_memory(uint64_t lo, uint64_t hi); // or violation

#endif
