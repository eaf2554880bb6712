// refhead.h: the part of a reference listing that stands before the objects: whole events, in memory that grows.
// Control thread.
#ifndef HEAPCAM_REFHEAD_H
#define HEAPCAM_REFHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encode.h"

struct refhead {
    uint8_t *b;
    size_t len, cap, last;
    size_t *end; // where pieces of about HEAD_PIECE bytes end
    uint32_t pieces, most;
    bool failed;
};
struct enc refhead_begin(struct refhead *h, size_t most); // an event of at most so many bytes
void refhead_end(struct refhead *h, const struct enc *e);

void refhead_close(struct refhead *h); // the last piece ends here
void refhead_free(struct refhead *h);

#endif
