// guard.h: raw reads of heap and metadata that may fault.
//
// if (GUARD_ENTER()) { guard_arm(); reads } else { a read faulted, or violation was called } guard_disarm();
// One thread at a time: the VM thread while the world stands still, or the loader before anything is recorded, where
// safe_read is refused. Nothing may be called in between that must run to its end. What is changed in between and read
// afterwards lives in a struct behind a pointer (guarded's arg), never in a local variable.
// guard.c has what is common; os_posix.c and os_windows.c have the rest.
#ifndef HEAPCAM_GUARD_H
#define HEAPCAM_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
// Handlers that stayed because a thread of the pool was late. guard_disarm tries it; the control thread where no pause
// can come.
void guard_put_back(void);
_Noreturn void guard_leave(void);           // to the else of GUARD_ENTER
bool guarded(void (*f)(void *), void *arg); // false: f was left by a fault or by violation

// A self-check failed: leaves the walk like a fault does. Only between guard_arm and guard_disarm.
_Noreturn void violation(const char *what, uint64_t where);
// The same where it is a class word that is unknown: of an object that died before its class was unloaded, most likely.
_Noreturn void unknown_class(const char *what, uint64_t where);
// Why the guard was left last; NULL: it was not. Written by the thread that is guarded; the control thread reads them
// after it has seen gave_up, which is stored later.
extern const char *violated;
extern uint64_t violated_at;
extern const char fault_text[]; // what violated points at after a fault
// A fault, or an unknown class: what is read is not as expected, but the structures that lead there are known.
bool violated_by_contents(void);

// -Xcheck:jni complains about handlers of others, so there the guard sets none: what may fault is asked for first
// (need_memory, safe_read, safe_write). Set by vm_load, on the thread that begins, and constant while something is
// recorded.
extern bool guard_without_handler;

bool safe_read(void *dst, uint64_t addr, size_t n);        // false: not all of it is there. Any thread
enum { READ_MANY = 256 };
// Copies n (READ_MANY at most) pieces of `bytes` each in one system call. How many, from the first on, are there. One
// that is reported as not there may still be read alone. Any thread
size_t safe_read_many(void *const *dst, const uint64_t *addr, size_t n, size_t bytes);
bool safe_write(uint64_t addr, const void *src, size_t n); // likewise
void need_memory(uint64_t lo, uint64_t hi);                // or violation

#endif
