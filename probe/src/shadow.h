// shadow.h: the sites of objects in eden. Behind each allocation, code that `exact` has put there stores the site's
// number at the address where the object ends. The table outlives recordings, since that code may still run.
#ifndef HEAPCAM_SHADOW_H
#define HEAPCAM_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "classfile.h"
#include "classtable.h"
#include "encode.h"
#include "heapcam_abi.h"
#include "heapmap.h"
#include "uses.h"

// An entry is the number of the phase (8 bits, never 0) above that of the site. What finds the entry at the end of the
// newest object in use has allocated outside of the thread's buffer: that of a large array is written down by
// its length and type, as an entry above the length. Where two sites meet in such a place it holds none.
enum { SHADOW_SITES = 1 << 22, SHADOW_PHASE = 24, SHADOW_LARGE = 128, SHADOW_OUTSIDE = 1 << 14 };
struct shadow_place { // what the code needs to know: addresses, and the shift from bytes of heap to entries
    uint64_t phase, base, bytes, table, outside, expected;
    int shift;
};
bool shadow_init(struct shadow_place *at);         // false: no memory. The thread that begins
// Gives the number of the site of a frame; 0: there is none left. hash: of its type's name, or a made_kind; kind: what
// holds for several types. Any thread
uint32_t shadow_site(uint32_t frame, uint32_t hash, enum made_kind kind);
uint32_t shadow_hash(uint32_t h, const void *p, uint64_t n); // FNV-1a, never a made_kind; h: 0, or of what is before
bool shadow_switch(bool on);                        // what it was; off: the code stores nothing
bool shadow_is_on(void);
void shadow_give_back(void); // it is off, and the code that stores is gone, but for loops that run
// For walks of eden, of any thread: the table; NULL: it is off.
struct shadow_entries {
    const uint32_t *table;
    int shift;
};
struct shadow_entries shadow_entries(void);
// What says where a survivor of eden comes from, until shadow_put: a bit that no length has, its type, and the entry
// where it ended, in bytes from the heap's begin; 0: a thread has allocated it outside of eden.
#define SHADOW_FOUND (1ull << 63)
static inline uint64_t shadow_found(struct shadow_entries s, uint64_t end, uint32_t type) {
    return SHADOW_FOUND | (uint64_t)(type & TYPE_MASK) << 32 | s.table[end >> s.shift];
}
void shadow_find(uint64_t dw, uint64_t found); // dw: the word of the heap where it is now. VM thread, in the walk
// The version of an epoch's block; newer: it has events of version 3. 0: that of all blocks.
static inline uint8_t shadow_format(bool newer) {
    return uses_are_on() ? HC_FORMAT_USES : shadow_is_on() ? HC_FORMAT_SITED : newer ? HC_FORMAT_SLICES : 0;
}
// The sites of those that survived, after a listing those of all objects outside of eden. VM thread, inside the guard.
void shadow_put(struct enc *e, const struct heapmaps *m);
// In a pause whose moves are not followed, such as the first: the same, but the next one writes it.
void shadow_keep(const struct heapmaps *m);
// The sites of all that a sync point lists outside of eden, into its block: as far as there is room, and time (until:
// in ns, 0: there is). kind: of its pause.
void shadow_put_listed(struct enc *e, uint8_t *block, const struct heapmap *m, int kind, uint64_t until);
void shadow_untold(void); // what shadow_put_listed wrote is dropped
// The pause was written, or not; sync: with a sync point or a part of one. Returns whether that tells all sites; else
// the next epoch does.
bool shadow_committed(bool committed, bool sync);
// At the end of each pause; sound: no fault came amid a walk, and none was missed. VM thread
void shadow_next(bool eden_emptied, bool sound);
uint64_t shadow_marked(void);        // objects that survived with a site; any thread
uint64_t shadow_mistyped(void);      // of those: sites of another type, which were left out

#endif
