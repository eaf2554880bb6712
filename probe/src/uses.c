//go:build ignore

// uses.c: uses.h.
#include "uses.h"

#include <stdatomic.h>
#include <string.h>

#include "guard.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "vmstructs.h"

static _Atomic uint32_t clock_now; // ms since the probe began, never 0; read by the code that was put into classes
static _Atomic uint32_t *table;    // by number: the time of the last use. Stays where it is, as that code does
static PER_RECORDING struct followed {
    uint64_t id; // of the sample; 0: none
    uint32_t since, said;
    bool reported;
} *followed; // by number
static PER_RECORDING _Atomic bool on;
static PER_RECORDING bool lost; // a report did not get into the ring, or there was none yet
static PER_RECORDING _Atomic uint64_t nfollowed, nblind;

bool uses_init(uint64_t *clock, uint64_t *at) {
    if (!table) table = os_sparse(USES * sizeof *table);
    followed = memory_sparse(USES * sizeof *followed);
    *clock = (uint64_t)(uintptr_t)&clock_now, *at = (uint64_t)(uintptr_t)table;
    uses_tick();
    lost = true;
    return table && followed;
}

void uses_switch(bool now) { atomic_store(&on, now); }
bool uses_are_on(void) { return atomic_load_explicit(&on, memory_order_relaxed); }
uint64_t uses_followed(void) { return atomic_load_explicit(&nfollowed, memory_order_relaxed); }
uint64_t uses_blind(void) { return atomic_load_explicit(&nblind, memory_order_relaxed); }

static uint32_t now_ms(void) { return (uint32_t)((now_ns() - probe_epoch_ns) / 1000000) + 1; }
void uses_tick(void) { atomic_store_explicit(&clock_now, now_ms(), memory_order_relaxed); }

void uses_begin(struct uses_turn *t, struct enc *e, bool full) {
    *t = (struct uses_turn){.e = e, .now = now_ms(), .full = full};
    atomic_store_explicit(&clock_now, (uint32_t)t->now, memory_order_relaxed); // a use right behind is not before
    if (!lost) return;
    for (uint32_t i = 0; i < USES; i++) followed[i].reported = false;
    put8(e, HC_EV_USESCOPE);
    put_str(e, opt.drag, strnlen(opt.drag, sizeof opt.drag));
    lost = false;
}

// What an object is reported with: when it was first followed, how many ms later it was used last, and flags.
static void put_use(struct uses_turn *t, struct followed *f, uint32_t number, uint32_t flags) {
    const uint32_t last = atomic_load_explicit(&table[number], memory_order_relaxed);
    if (!flags && f->reported && last == f->said) return;
    if (!t->at) t->at = blob_begin(t->e, HC_EV_USES);
    put_s(t->e, (int64_t)(f->id - t->id));
    put_u(t->e, f->since);
    put_u(t->e, last < f->since ? 0 : last - f->since + 1);
    put_u(t->e, flags);
    t->id = f->id, f->said = last, f->reported = true;
}

// Gives the object its number. false: its header is another's now, or in use for something else.
static bool stamp(uint64_t addr, uint32_t number, bool *was) {
    if (addr & 7 || addr - (uint64_t)vm.heap_base >= vm.heap_bytes) violation("a sample is outside of the heap", addr);
    const uint64_t mark = rd64((void *)addr), tag = (uint64_t)number << USES_SHIFT;
    const uint64_t above = mark & ~(uint64_t)0 << USES_SHIFT;
    *was = above == tag;
    if (*was) return true;
    if ((mark & 7) != 1 || above) return false; // locked, or biased towards a thread
    __atomic_store_n((uint64_t *)addr, mark | tag, __ATOMIC_RELAXED);
    return true;
}

void uses_of(struct uses_turn *t, uint32_t number, uint64_t id, uint64_t addr) {
    struct followed *f = &followed[number];
    if (f->id && f->id != id) { // it died
        put_use(t, f, number, 0);
        f->id = 0;
    }
    if (!id) return;
    bool was;
    const bool ok = stamp(addr, number, &was), fresh = !f->id;
    if (fresh && !ok) return; // the next pause tries it again
    if (fresh) {
        *f = (struct followed){id, (uint32_t)t->now, 0, false};
        atomic_store_explicit(&table[number], 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&nfollowed, 1, memory_order_relaxed);
    }
    const bool blind = !fresh && !was && !(ok && t->full);
    if (blind) atomic_fetch_add_explicit(&nblind, 1, memory_order_relaxed);
    put_use(t, f, number, blind ? HC_USE_BLIND : 0);
}

void uses_end(struct uses_turn *t) {
    if (t->at) blob_end(t->e, t->at);
}

void uses_committed(bool ok) { lost |= !ok; }
