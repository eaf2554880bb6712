// refsend.h: sends a reference listing in parts, each a block of its own, while the application runs. Control thread.
#ifndef HEAPCAM_REFSEND_H
#define HEAPCAM_REFSEND_H

#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"
#include "refwalk.h"

struct refsend_about {
    uint64_t ticket, epoch;
    uint64_t begin, walk, all;    // when the stop began; ns of the walk, of all
    char missing[1024];           // what it lacks, one thing a line
    char refused[HC_MAX_REASON];  // why there is none; "": there is one
};

// Takes r and what map points at (of memory()), which may be NULL, and gives them back when all is sent.
void refsend_begin(JNIEnv *jni, struct refs *r, void *map, const struct refsend_about *about);
bool refsend_busy(void);
void refsend_turn(uint64_t now); // as many parts as there is room for
void refsend_end(void);

#endif
