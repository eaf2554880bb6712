// refroots.h: the stop of a reference listing: the walk, and the roots as JVMTI enumerates them. Control thread; the
// callbacks run on the VM thread in the stop.
#ifndef HEAPCAM_REFROOTS_H
#define HEAPCAM_REFROOTS_H

#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "refwalk.h"

struct refstop {
    struct refs *refs;
    uint64_t most, expected;   // ns that the stop may take, that it is expected to take
    uint64_t epoch;            // the newest then
    uint64_t begin, walk, all; // when it began; ns of the walk by CPU time, of all by the clock
    bool walked, understood;   // the JVM stopped; the walk came to its end
    bool no_room;              // in the budget of a storm: there was no walk
    const char *what;          // why not, at which address
    uint64_t where;
    uint64_t tid;         // offset of Thread.tid, which says whose name a thread has; 0: not known
    jobject known;        // a JNI global: its object must be among the roots
    uint64_t known_at;    // its address
    uint64_t calls, found, odd; // callbacks; those that named it, that named no address of the heap
    bool oracle; // a test's: JVMTI follows all references, too
    bool cut;    // roots left out: time or room was spent
    bool stores, stacks; // roots that JVMTI does not show are there; what frames hold besides their variables
};
void refroots_stop(JNIEnv *jni, struct refstop *s);
// What a listing lacks, one thing a line; kinds: the kinds of Reference are known.
void refroots_missing(const struct refstop *s, bool kinds, char *to, size_t n);

#endif
