//go:build ignore

// retry.c: retry.h.
#include "retry.h"

#include <stdatomic.h>

#include "os.h"

static PER_RECORDING uint32_t faults_in_a_row;
static PER_RECORDING uint32_t structural;   // of them: for which there is no hope
static PER_RECORDING uint32_t left;         // epochs to go without walking objects
static PER_RECORDING _Atomic uint32_t wait; // of how many; the VM thread writes, the control thread reads

void retry_faulted(bool by_contents) {
    faults_in_a_row++;
    structural += !by_contents;
    if (!by_contents || faults_in_a_row < FAULTS_IN_A_ROW) return;
    uint32_t n = atomic_load_explicit(&wait, memory_order_relaxed);
    n = n == 0 ? RETRY_FIRST : n < RETRY_MOST ? 2 * n : RETRY_MOST;
    atomic_store_explicit(&wait, n, memory_order_relaxed);
    left = n + 1; // this epoch's own question is one of them
}

void retry_understood(bool walked) {
    uint32_t n = atomic_load_explicit(&wait, memory_order_relaxed);
    if (n && !walked) return; // while waiting nothing is learnt, and the fault after it is one in the same row
    faults_in_a_row = structural = 0;
    if (n) atomic_store_explicit(&wait, 0, memory_order_relaxed);
}

bool retry_is_hopeless(void) { return structural >= FAULTS_IN_A_ROW; }

bool retry_waits(void) { return left && --left; }

uint32_t retry_after_epochs(void) { return atomic_load_explicit(&wait, memory_order_relaxed); }
