//go:build ignore

// guard.c: guard.h, what is common to all systems.
#include "guard.h"

const char *violated;
uint64_t violated_at;
bool guard_without_handler;
static bool unknown; // violated is about a class word. Like violated
const char fault_text[] = "a read faulted";

_Noreturn void violation(const char *what, uint64_t where) {
    violated = what;
    violated_at = where;
    unknown = false;
    guard_leave();
}

_Noreturn void unknown_class(const char *what, uint64_t where) {
    violated = what;
    violated_at = where;
    unknown = true;
    guard_leave();
}

bool violated_by_contents(void) { return violated == fault_text || (violated && unknown); }

bool guarded(void (*f)(void *), void *arg) {
    volatile bool done = false;
    if (GUARD_ENTER()) {
        guard_arm();
        f(arg);
        done = true;
    }
    guard_disarm();
    return done;
}
