// os.h: what the probe asks of the operating system: os_posix.c and os_windows.c. Nothing here is called by the VM
// thread but the clock, the guard (guard.h), os_give_back, and for words that say so.
#ifndef HEAPCAM_OS_H
#define HEAPCAM_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where the variables of one recording are; os_state gives all of them.
#ifdef _WIN32
#define PER_RECORDING __attribute__((section(".data$hc_m")))
#else
#define PER_RECORDING __attribute__((section("hc_recording")))
#endif
void *os_state(size_t *n);

// For what the walks of a pause read again and again: it is of this library, so no table of addresses is asked for it.
#ifdef _WIN32
#define HIDDEN
#else
#define HIDDEN __attribute__((visibility("hidden")))
#endif

bool os_init(void); // before all else; false: the guard was not to be had

// ---- time ---------------------------------------------------------------------------------------
uint64_t now_ns(void);     // monotonic, the same clock in all processes (docs/format/shared-ring.md, heartbeat)
uint64_t cpu_ns(void);     // of this thread: what it waits for a processor is no cost of ours
uint64_t os_wall_ms(void); // since 1970
void os_sleep_us(unsigned us);

// ---- memory that is zero ------------------------------------------------------------------------
void *os_memory(size_t n); // NULL: none
// The same for tables that stay mostly empty: their pages are had when they are touched.
void *os_sparse(size_t n);
void os_have(void *p, size_t n);      // of os_sparse: its pages at once, which takes less than one by one
void os_give_back(void *p, size_t n); // of os_sparse: zero again. VM thread
void os_release(void *p, size_t n);   // of either: there no more

// ---- the process --------------------------------------------------------------------------------
uint32_t os_pid(void);
uint64_t os_start_ticks(void);   // when it began, as the agent's shmring.StartTicks counts
uint64_t os_pid_namespace(void); // 0: there are none
#ifndef _WIN32
// Writes n bytes of zeros into a file, so that their blocks are taken; 0 or an errno. In the place of posix_fallocate,
// whose system call a sandbox may end the process for.
int os_write_zeros(int fd, uint64_t at, uint64_t n);
#endif
uint64_t os_memory_left(void);   // what may still be taken, bytes; UINT64_MAX: no limit can be seen
unsigned os_cpus(void);          // that this process may use, by affinity and quota; Windows: 1
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

// ---- a lock for application threads; never taken by the VM thread -------------------------------
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
// Any thread
enum { OS_KEYS = 1024 };
void *os_thread_value(unsigned key);

void os_lock(os_mutex *m);
void os_unlock(os_mutex *m);

#endif
