// rewritemade.h: what an instruction allocates, for rewritecode. Any thread
#ifndef HEAPCAM_REWRITEMADE_H
#define HEAPCAM_REWRITEMADE_H

#include "classfile.h"

// What the instruction at i of understood code makes as the last thing. false: nothing, or nobody knows what.
bool made_at(const struct file *f, const uint8_t *code, size_t i, struct made *m);

#endif
