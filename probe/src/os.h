// os.h: what the probe asks of the operating system: os_posix.c and os_windows.c. Nothing here is called by the VM
// thread but the clock, the guard, os_give_back, and for words that say so.
#ifndef HEAPCAM_OS_H
#define HEAPCAM_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where the variables of one recording are; os_state tells all of them.
#ifdef _WIN32
#define PER_RECORDING __attribute__((section(".data$hc_m")))
#else
#define PER_RECORDING __attribute__((section("hc_recording")))
#endif
void *os_state(size_t *n);

bool os_init(void); // before all else; false: the guard was not to be had

// ---- time
// ----------------------------------------------------------------------------------------------------------------------------
uint64_t now_ns(void);     // monotonic, the same clock in all processes (docs/format/shared-ring.md, heartbeat)
uint64_t cpu_ns(void);     // of this thread: what it waits for a processor is no cost of ours
uint64_t os_wall_ms(void); // since 1970
void os_sleep_us(unsigned us);

// ---- memory that is zero
// -----------------------------------------------------------------------------------------------------------------
void *os_memory(size_t n); // NULL: none
// The same for tables that stay mostly empty: their pages are had when they are touched.
void *os_sparse(size_t n);
void os_give_back(void *p, size_t n); // of os_sparse: zero again. VM thread
void os_release(void *p, size_t n);   // of either: there no more

// ---- the process
// -------------------------------------------------------------------------------------------------------------------------
uint32_t os_pid(void);
uint64_t os_start_ticks(void);   // when it began, as the agent's shmring.StartTicks counts
uint64_t os_pid_namespace(void); // 0: there are none
uint64_t os_memory_left(void);   // what may still be taken, bytes; UINT64_MAX: no limit can be seen
void os_random(uint8_t b[16]);   // all zero: none was had
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

// ---- a lock for application threads; never taken by the VM thread
// ---------------------------------------------------------------------------
#ifdef _WIN32
typedef struct {
    void *srw;
} os_mutex;
#define OS_MUTEX_INITIALIZER                                                                                           \
    { NULL }
#else
#include <pthread.h>
typedef pthread_mutex_t os_mutex;
#define OS_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#endif
// What this thread keeps below a key of the system's thread-specific storage, which somebody else made; NULL: nothing.
// VM thread
enum { OS_KEYS = 1024 };
void *os_thread_value(unsigned key);

void os_lock(os_mutex *m);
void os_unlock(os_mutex *m);

// ---- the shared ring's file
// ------------------------------------------------------------------------------------------------------------------
// The file belongs to others as well, who may truncate it or punch holes into it: whoever touches map may fault. So the
// VM thread does it inside the guard, everybody else calls os_ring_read and os_ring_write, which fail instead, and
// application threads do neither.
enum { OS_RING_PATH = 400 };
struct os_ring {
    uint8_t *map; // the header; behind it, at OS_RING_DATA, the data; and if mirrored the data once more, right behind
                  // itself
    size_t capacity, mapped; // bytes of data; of map, all of it
    bool mirrored;
    uint32_t flags; // HC_RING_*
    int fd;
    uint64_t dev, ino; // of the file: the descriptor may have been closed, and its number taken, by the application
    char path[OS_RING_PATH]; // "": it has none that could be taken over
};
// Makes the file in dir ("": where the system keeps such), all of it allocated and mapped. after: the ring that it is
// to take over from, in whose folder it gets the name of that one and ".next"; NULL: it is the first. false: why says
// why.
bool os_ring_make(struct os_ring *r, const struct os_ring *after, const char *dir, uint64_t ticks, size_t capacity,
                  char *why);
bool os_ring_read(const struct os_ring *r, size_t off, void *to, size_t n); // false: the file is not what it was
bool os_ring_write(const struct os_ring *r, size_t off, const void *from,
                   size_t n);                // likewise; it never makes the file longer
bool os_ring_waits(const struct os_ring *r); // the one before this has not been taken over yet
void os_ring_close(struct os_ring *r);       // unmaps it; the file stays
void os_ring_drop(struct os_ring *r,
                  const struct os_ring *after); // the same, and the file of one that was never finished goes

#ifdef _WIN32
enum { OS_RING_GROWS = 0 }; // a file that is mapped cannot be replaced
#else
enum { OS_RING_GROWS = 1 };
#endif

// ---- the guard: raw reads of heap and metadata that may fault
// ------------------------------------------------------------------------------- if (GUARD_ENTER()) { guard_arm();
// …reads… } else { …a read faulted, or violation was called… } guard_disarm(); One thread at a time: the VM thread
// while the world stands still, or the loader before anything is recorded, where safe_read is refused. Nothing may be
// called in between that must run to its end.
#ifdef _WIN32
extern void *guard_env[5]; // the compiler's own jump: the C library's unwinds, and what is below the frames of a fault
                           // is the JVM's
#define GUARD_ENTER() (__builtin_setjmp(guard_env) == 0)
#else
#include <setjmp.h>
extern sigjmp_buf guard_env;
#define GUARD_ENTER() (sigsetjmp(guard_env, 0) == 0)
#endif
void guard_arm(void);
void guard_disarm(void);
_Noreturn void guard_leave(void);                          // to the else of GUARD_ENTER
bool safe_read(void *dst, uint64_t addr, size_t n);        // false: not all of it is there. Any thread
bool safe_write(uint64_t addr, const void *src, size_t n); // likewise
void need_memory(uint64_t lo, uint64_t hi);                // or violation

#endif
