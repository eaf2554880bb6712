// ramp_parts.h: which parts of the heap a ramp has not listed yet. ramp.c asks this of ramp_linear.c (Serial, Parallel)
// or ramp_g1.c. Both keep two versions: *now* includes the newest pause, *next* also its slice. When the slice is
// committed, next becomes now.
#ifndef HEAPCAM_RAMP_PARTS_H
#define HEAPCAM_RAMP_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "heapmap.h"
#include "walk.h"

struct slice {
    struct heapmaps *maps;
    uint64_t epoch, until; // until: now_ns() at which it ends
    int reason;            // HC_SYNC_*: a new ramp begins; 0: the present one continues
    bool with_eden;        // survivor space may hold what has no header yet
    int kind;              // of the pause, HC_PAUSE_*
};

struct range {
    uint64_t lo, hi; // addresses
};

// What a slice lists.
struct part {
    struct range *done;
    uint32_t n, most;
    uint64_t objects, bytes;
    uint64_t walked; // of the bytes, those that a walk has read
    bool stopped;    // time or room has ended
};
static inline void part_done(struct part *p, uint64_t lo, uint64_t hi) {
    if (lo == hi || p->n == p->most) return;
    if (p->n && p->done[p->n - 1].hi == lo)
        p->done[p->n - 1].hi = hi;
    else
        p->done[p->n++] = (struct range){lo, hi};
}

// Ranges of a blob; those that touch become one.
struct ranges {
    struct enc *e;
    uint64_t lo, hi, prev;
};
void ranges_add(struct ranges *r, uint64_t lo, uint64_t hi);
void ranges_end(struct ranges *r);

struct ramp_parts {
    bool (*init)(uint32_t *most); // most: of ranges that a slice may list
    void (*forget)(void);
    void (*emptied)(const struct heapmaps *m, bool evac);
    const uint64_t *(*uncounted)(void);
    void (*put_lost)(struct enc *e, const struct heapmaps *m, uint64_t since);
    void (*begin)(struct heapmaps *m); // next: all that the heap holds now
    void (*go_on)(void);               // next: as now
    void (*none)(void);                // next: nothing
    void (*put_pending)(struct ranges *r, const struct heapmap *m);
    void (*list)(struct enc *e, const struct slice *s, struct part *p);
    uint64_t (*left)(const struct heapmap *m, bool uncounted); // bytes, of next; uncounted: without what was lost
    void (*keep)(void);                                        // next is now
    void (*committed)(const struct heapmap *m);                // a reader now knows all of this
};
extern const struct ramp_parts ramp_linear, ramp_g1;

#endif
