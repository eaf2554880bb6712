// unloading.h: classes that die, and objects of them that stay in the heap. VM thread, inside the guard.
#ifndef HEAPCAM_UNLOADING_H
#define HEAPCAM_UNLOADING_H

#include <stdbool.h>

#include "heapmap.h"

// What died with its class is measured while the class is still known (G1 leaves such objects in place after remark),
// if that takes no longer than a slice of a listing may in a pause that began at from (ns); else by tops.h. left_out:
// in a storm, and no object is looked at. Returns whether a listing has to leave out what is dead.
bool unloading_look(const struct heapmaps *m, int kind, int depth, uint64_t from, bool left_out);
// What stands from now on where this pause has freed regions is new.
void unloading_freed(const struct heapmaps *m, int kind);
// Classes that died and of whose objects none is left. unseen: what survived this or an earlier pause is not known.
void unloading_forget(const struct heapmaps *m, int kind, bool unseen, bool samples_sent);

#endif
