// deflog.h: the definitions of types, methods, frames and threads that have been recorded, so that an agent that comes
// later gets all of them.
#ifndef HEAPCAM_DEFLOG_H
#define HEAPCAM_DEFLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encode.h"

enum {
    MAX_TYPE_IDS = 1 << 22
}; // ids of types are never given twice (heap.denseTypes; in a walk token they have 25 bits)

// Definition logs: append-only; readers read [sent, len) without a lock. To remove types that are gone, a second type
// log without them replaces the first one (ring.c).
struct deflog {
    uint8_t *mem;
    size_t cap;
    _Atomic size_t len;
    _Atomic size_t sent;
    size_t pending; // value of sent after the present commit, if it succeeds
    size_t last_mark;
    uint32_t *marks; // where events begin, every DEFS_CHUNK bytes or so
    _Atomic uint32_t nmarks;
};
// type_log: VM thread appends; site_log: under site_lock; new_log (newsites.c): control thread
extern struct deflog type_log, site_log, new_log;
bool deflog_append(struct deflog *l, const uint8_t *b, size_t n);
void put_defs(struct enc *e, bool locked); // locked: the caller has the writer lock, and defs_committed follows
// One part of all definitions so far; *at counts the parts and starts at 0. False when there is none left.
bool put_defs_again(struct enc *e, uint32_t *at);
void defs_committed(bool ok); // caller holds the lock
void types_tidy(void);        // these two: control thread
void types_keep(void);        // the type log stays as it is until types_tidy
void types_swap(void);        // VM thread in a pause, with the lock
bool next_def(const uint8_t **p, uint64_t f[6], const char **name,
              uint64_t *len); // of the type log; f[0] is the tag, f[5] a type's loader
bool deflogs_init(void);

#endif
