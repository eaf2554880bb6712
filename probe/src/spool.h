// spool.h: a ring where no agent reaches this process. Control thread, but for spool_waits, which the VM thread reads.
#ifndef HEAPCAM_SPOOL_H
#define HEAPCAM_SPOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// The ring's file, size bytes of it allocated (a ring_opener); -1: why.
int spool_open(uint64_t size, uint64_t ticks, uint32_t *flags, char *why);
void spool_name(const char *command); // records what runs here, from sun.java.command
bool spool_turn(uint64_t now);        // true: a new segment is to begin, with META and all definitions
void spool_mark(uint64_t at);         // and it begins here
extern _Atomic bool spool_waits;      // nothing is recorded until then

#endif
