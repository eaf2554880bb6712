// stamps.h: the site in the identity hash of an object, as VEE'10 has it (--sites hash). A full collection moves
// objects without a word to the probe, but keeps their hashes. This writes to the heap: while the world stands, into
// headers without a hash.
#ifndef HEAPCAM_STAMPS_H
#define HEAPCAM_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

enum { STAMP_SITES = 1 << 20 }; // their numbers are below
bool stamps_init(void); // false: the JVM does not say where the hash is, or no memory
void stamps_switch(bool on);
bool stamps_are_on(void);
// Inside the guard, VM thread: the object at a comes from that site. What has a hash or is locked stays as it is.
void stamp(uint64_t a, uint32_t site);
uint32_t stamped(uint64_t mark); // the site; 0: none. A hash that the JVM made may look like one
uint64_t stamps_put(void);       // how many were written

#endif
