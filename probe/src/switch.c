//go:build ignore

// switch.c: switch.h.
#include "switch.h"

#include "options.h"
#include "os.h"
#include "ring.h"

static PER_RECORDING _Atomic bool switched_off;

bool is_off(void) {
    return atomic_load_explicit(&switched_off, memory_order_relaxed) ||
           atomic_load_explicit(ring32(HC_RING_OFF_PAUSE), memory_order_relaxed);
}

void switch_poll(void) { atomic_store(&switched_off, os_exists(opt.disabled)); }
