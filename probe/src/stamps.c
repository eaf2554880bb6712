//go:build ignore

// stamps.c: stamps.h.
//
// A hash has 31 bits. Those of a site come from blocks of its own, each twice as large as the one before, so a site
// with many objects has many hashes, and the number of the site takes the fewer bits the more objects it has. Within a
// block no two objects have the same hash, and the low bits, which choose a bucket of a hash table, are mixed.
#include "stamps.h"

#include <stdatomic.h>

#include "guard.h"
#include "os.h"
#include "recording.h"
#include "vmstructs.h"

enum { HASH_BITS = 31, LEAST = 10 }; // LEAST: bits of a site's first block
static PER_RECORDING uint32_t *owner; // by block of the least size: its site
static PER_RECORDING struct hashes {
    uint32_t first, used; // of the newest block
    uint32_t bits;        // of its size; 0: none
} *by_site;
static uint64_t next_free = 1u << LEAST; // not 0, which means no hash. Objects keep the hashes of earlier recordings
static PER_RECORDING _Atomic bool on;
static PER_RECORDING _Atomic uint64_t written;

bool stamps_init(void) {
    if (!vm.hash_shift) return false;
    owner = memory_sparse((1ul << (HASH_BITS - LEAST)) * sizeof *owner);
    by_site = memory_sparse(STAMP_SITES * sizeof *by_site);
    return owner && by_site;
}

void stamps_switch(bool to) { atomic_store_explicit(&on, to, memory_order_relaxed); }
bool stamps_are_on(void) { return atomic_load_explicit(&on, memory_order_relaxed); }
uint64_t stamps_put(void) { return atomic_load_explicit(&written, memory_order_relaxed); }

static bool new_block(struct hashes *h, uint32_t site) {
    const uint32_t bits = h->bits ? h->bits + 1 : LEAST;
    const uint64_t size = 1ull << bits, first = (next_free + size - 1) & ~(size - 1);
    if (bits >= HASH_BITS || first + size > 1ull << HASH_BITS) return false;
    next_free = first + size;
    *h = (struct hashes){.first = (uint32_t)first, .bits = bits};
    for (uint64_t b = first >> LEAST; b < next_free >> LEAST; b++) owner[b] = site;
    return true;
}

// The next hash of a site; 0: there is none left.
static uint32_t hash_for(uint32_t site) {
    struct hashes *h = &by_site[site];
    if ((!h->bits || h->used >> h->bits) && !new_block(h, site)) return 0;
    const uint32_t mask = (1u << h->bits) - 1, i = h->used++;
    return h->first | ((i * 0x9e3779b1u + site * 0x85ebca6bu) & mask); // odd factors: i to i are one to one
}

void stamp(uint64_t a, uint32_t site) {
    enum { LOCK_BITS = 7, UNLOCKED = 1 };
    if (a - (uint64_t)vm.heap_base >= vm.heap_bytes || a % 8) return;
    const uint64_t mark = rd64((void *)a), all = (1ull << HASH_BITS) - 1;
    if ((mark & LOCK_BITS) != UNLOCKED || mark >> vm.hash_shift & all || !site || site >= STAMP_SITES) return;
    const uint32_t hash = hash_for(site);
    if (!hash) return;
    *(volatile uint64_t *)(uintptr_t)a = mark | (uint64_t)hash << vm.hash_shift;
    atomic_fetch_add_explicit(&written, 1, memory_order_relaxed);
}

uint32_t stamped(uint64_t mark) {
    if ((mark & 3) != 1) return 0; // locked: the header is elsewhere
    const uint32_t hash = (uint32_t)(mark >> vm.hash_shift) & ((1u << HASH_BITS) - 1);
    return hash ? owner[hash >> LEAST] : 0;
}
