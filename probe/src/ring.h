// ring.h: the shared ring (docs/format/shared-ring.md): words of its header, commits, the reserve, a larger ring that
// takes over. Nothing is visible to the agent before ring_commit stores head.
#ifndef HEAPCAM_RING_H
#define HEAPCAM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapcam_abi.h"
#include "log.h"
#include "ring_file.h"

enum { HC_RING_WORDS = HC_RING_OFF_NAME + HC_RING_LEN_NAME };
#define RETRY_GROWTH_NS 10000000000ull
extern uint8_t ring[]; // the header's words: our own copy
extern bool ring_made;
extern _Atomic uint64_t largest_epoch; // bytes; the VM thread's
static inline _Atomic uint64_t *ring64(int off) { return (_Atomic uint64_t *)(ring + off); }
static inline _Atomic uint32_t *ring32(int off) { return (_Atomic uint32_t *)(ring + off); }
bool ring_create(uint64_t used, ring_opener *open_file, char why[HC_MAX_REASON]); // open_file: NULL, or spool_open
void ring_show(void);
void ring_state(uint32_t state, const char *reason);
void ring_lost(void);
void ring_exchange(void);
bool ring_publish(void);
bool ring_there(void);
bool ring_abandoned(void); // any thread: an agent has read it, and none has for a minute
void ring_broken(void);
void ring_refresh_in_pause(void); // these two inside the guard
void ring_publish_in_pause(void);
bool ring_faulted(void);
uint64_t ring_tail(void); // as it is in the file now; this and the next for spool.c
bool ring_set_tail(uint64_t tail);
void ring_grow(uint64_t now, bool read, bool overflowed);
void ring_close(void);
bool ring_try(void);
void ring_unlock(void);
// In a pause these four run inside the guard.
uint64_t ring_room_in_pause(void);             // bytes
void ring_begin(struct enc *e, bool in_pause); // caller holds the lock; e writes behind head
bool ring_commit(struct enc *e, bool in_pause);
bool reserve_flush(bool in_pause); // caller holds the lock
void reserve_begin(struct enc *e); // when the lock is taken: the VM thread's private reserve
bool reserve_commit(struct enc *e);
void reserve_drop(void); // caller holds the lock
extern _Atomic uint64_t reserve_len;
void lock_writer(void); // waits; only for threads that may

#endif
