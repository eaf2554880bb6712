//go:build ignore

// sidetable.c: sidetable.h. As small as it can be, since it is gone through whenever regions are freed.
#include "sidetable.h"

#include <string.h>

#include "classtable.h"
#include "guard.h"
#include "os.h"
#include "recording.h"

static PER_RECORDING struct side {
    uint64_t addr;
    uint32_t type, met;
} * side, *side_other;
enum { SIDE = 1 << 20, FIRST_SIDE = 1 << 12 };
static PER_RECORDING uint32_t nside, side_size = FIRST_SIDE; // entries, of which some were dropped; places in use

bool side_init(void) {
    side = memory(SIDE * sizeof *side);
    side_other = memory(SIDE * sizeof *side);
    return side && side_other;
}

// As small as it can be, since it is
// gone through whenever regions are freed.
void side_clear(void) {
    for (uint32_t i = 0; nside && i < side_size; i++)
        if (side[i].type) tinfo[TSLOT(side[i].type)].held--;
    if (nside) memset(side, 0, side_size * sizeof *side);
    nside = 0;
}

static struct side *side_at(struct side *t, uint32_t size, uint64_t addr) {
    uint64_t i = (addr * 0x9e3779b97f4a7c15ull) >> 32 & (size - 1);
    while (t[i].addr && t[i].addr != addr) i = (i + 1) & (size - 1);
    return &t[i];
}

// Leaves out what was dropped, and makes room for twice of what is left.
static void side_tidy(void) {
    uint32_t left = 0, size = FIRST_SIDE;
    for (uint32_t i = 0; i < side_size; i++) left += side[i].type != 0;
    while (size < 4 * left) size *= 2;
    if (size > SIDE) violation("too many objects of unloaded classes", left);
    memset(side_other, 0, size * sizeof *side);
    for (uint32_t i = 0; i < side_size; i++)
        if (side[i].type) *side_at(side_other, size, side[i].addr) = side[i];
    struct side *t = side;
    side = side_other, side_other = t;
    side_size = size;
    nside = left;
}

void side_add(uint64_t addr, uint32_t type) {
    if (nside >= side_size / 2) side_tidy();
    struct side *s = side_at(side, side_size, addr);
    if (s->type) return; // the first note is the right one: later ones may see a reused class
    if (!s->addr) nside++;
    tinfo[TSLOT(type)].held++;
    *s = (struct side){addr, type, scan_no};
}

uint32_t side_get(uint64_t addr) { return nside ? side_at(side, side_size, addr)->type : 0; }

// What stands from now on where freed says so is new. Entries stay, with type 0, until the table is tidied.
void side_drop(bool (*freed)(const void *arg, uint64_t addr), const void *arg) {
    for (uint32_t i = 0; nside && i < side_size; i++)
        if (side[i].type && freed(arg, side[i].addr)) {
            tinfo[TSLOT(side[i].type)].held--;
            side[i].type = 0;
        }
}

// A JVM may put fillers where dead objects stood. What a walk of all objects does not meet is not there any more.
void side_met(uint64_t addr) {
    if (nside) side_at(side, side_size, addr)->met = scan_no;
}

void side_end(bool (*walked)(const void *arg, uint64_t addr), const void *arg) {
    for (uint32_t i = 0; nside && i < side_size; i++)
        if (side[i].type && side[i].met != scan_no && walked(arg, side[i].addr)) {
            tinfo[TSLOT(side[i].type)].held--;
            side[i].type = 0;
        }
}
