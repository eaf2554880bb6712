//go:build ignore

// recording.c: what one recording has and the next one begins without. A library that was loaded into a JVM stays
// there, so attaching and detaching must neither leave memory behind nor carry anything over.
#include "recording.h"

#include <string.h>

#include "log.h"
#include "os.h"

PER_RECORDING _Atomic bool gave_up;
PER_RECORDING _Atomic uint64_t gc_counter;
PER_RECORDING uint64_t probe_epoch_ns;

// These outlive recordings.
static _Atomic bool recording; // from recording_begin to recording_end
static _Atomic bool is_open;
static _Atomic uint32_t inside; // callbacks that run
_Atomic uint32_t recording_no;
static void *pristine; // the PER_RECORDING variables as they are in the file
static os_mutex memory_lock = OS_MUTEX_INITIALIZER;
enum { MOST_PIECES = 96 };
static struct {
    void *p;
    size_t n;
} pieces[MOST_PIECES];

static void *keep(void *p, size_t n) {
    if (!p) return NULL;
    os_lock(&memory_lock);
    int i = 0;
    while (i < MOST_PIECES && pieces[i].p) i++;
    if (i < MOST_PIECES) pieces[i].p = p, pieces[i].n = n;
    os_unlock(&memory_lock);
    if (i < MOST_PIECES) return p;
    os_release(p, n);
    return NULL;
}

void *memory(size_t n) { return keep(os_memory(n), n); }
void *memory_ready(size_t n) {
    volatile char *p = memory(n);
    for (size_t i = 0; p && i < n; i += 4096) p[i] = 0;
    return (void *)p;
}
void *memory_sparse(size_t n) { return keep(os_sparse(n), n); }

void memory_give_back(void *p) {
    os_lock(&memory_lock);
    for (int i = 0; i < MOST_PIECES; i++)
        if (p && pieces[i].p == p) {
            os_release(p, pieces[i].n);
            pieces[i].p = NULL;
        }
    os_unlock(&memory_lock);
}

static _Atomic uint32_t pauses; // of inside: those of the VM thread

// Counted before it is asked whether there is a recording: whoever closes one waits for all that were let in.
bool enter(void) {
    atomic_fetch_add(&inside, 1);
    if (atomic_load(&is_open)) return true;
    atomic_fetch_sub(&inside, 1);
    return false;
}

void leave(void) { atomic_fetch_sub(&inside, 1); }

bool enter_pause(void) {
    atomic_fetch_add(&pauses, 1);
    if (enter()) return true;
    atomic_fetch_sub(&pauses, 1);
    return false;
}

void leave_pause(void) {
    leave();
    atomic_fetch_sub(&pauses, 1);
}

void wait_for_pause(void) {
    while (atomic_load(&pauses)) os_sleep_us(200);
}

bool recording_begin(void) {
    if (atomic_exchange(&recording, true)) return false;
    size_t n;
    void *state = os_state(&n);
    if (pristine)
        memcpy(state, pristine, n);
    else if ((pristine = os_memory(n)))
        memcpy(pristine, state, n);
    static bool said;
    if (!pristine && !said) said = true, log_line("not recording this JVM: not enough memory for the probe's tables");
    if (!pristine) return atomic_store(&recording, false), false;
    atomic_fetch_add(&recording_no, 1);
    return true;
}

void recording_open(void) { atomic_store(&is_open, true); }

void recording_close(void) {
    atomic_store(&is_open, false);
    while (atomic_load(&inside)) os_sleep_us(200);
}

void recording_end(void) {
    for (int i = 0; i < MOST_PIECES; i++) {
        if (pieces[i].p) os_release(pieces[i].p, pieces[i].n);
        pieces[i].p = NULL;
    }
    atomic_store(&recording, false);
}
