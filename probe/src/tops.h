// tops.h: classes of G1 that died and whose objects nobody has looked for (unloading.c): where each region ended then.
// If their words name other classes by now, that tells their objects from those of the other ones, which lie above.
// VM thread in pauses.
#ifndef HEAPCAM_TOPS_H
#define HEAPCAM_TOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "classtable.h"
#include "heapmap.h"

bool tops_init(uint32_t regions);
// Classes died. false: the types of objects of some that died earlier are no longer known. A listing has to leave out
// what is dead, so that no walk meets it.
bool tops_note(const struct heapmap *m);
void tops_drop(uint32_t region); // it was freed: what stands there from now on is new
void tops_clear(void);           // everything was compacted
// The type of an object whose class may have died before its word was used again; 0: that which the word has now.
uint32_t tops_type(const struct centry *c, uint64_t addr);

#endif
