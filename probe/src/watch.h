// watch.h: of which samples it is known whether they live, where objects have no address: a random part, through weak
// globals. Each one's chances are the inverse of the probability with which it was chosen.
//
// A site with few samples has more of them watched than one with many: each site has about as many watched.
//
// A weak global can keep garbage alive for a while (generational ZGC: until one or two major cycles later), so few are
// made: WATCH_RATE a second, fewer while WATCH_UNDECIDED of them may be garbage, and WATCH_MOST in all.
#ifndef HEAPCAM_WATCH_H
#define HEAPCAM_WATCH_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "encode.h"

enum { WATCH_RATE = 4, WATCH_UNDECIDED = 64, WATCH_MOST = 4096, WATCH_NONE = -1 };

bool watch_init(void);

struct watched {
    uint64_t id, time, size, interval, birth;
    uint32_t frame, thread, type;
};
// Application threads: decide whether the sample is watched. The place of it, or WATCH_NONE. watch_back: it was
// dropped.
int32_t watch_take(JNIEnv *jni, jobject o, const struct watched *s);
void watch_back(int32_t at);

// Whoever holds the writer lock: the sample is in the block. The blob that says which of the block are watched.
void watch_sent(int32_t at);
void watch_put_sent(struct enc *e);

// Control thread, or the thread that ends the JVM; one at a time. All but watch_look change nothing before
// watch_committed.
void watch_turn(uint64_t now); // adapts the chances
// Looks which are dead. decisive: a cycle that began at that time (ns since the probe's start) has ended, which clears
// the weak globals of what was garbage then, or does so with the next one.
void watch_look(JNIEnv *jni, bool decisive, uint64_t began);
bool watch_crowded(void);
// The events of an EPOCH. thin: give up half of them, to make room.
void watch_put(struct enc *e, bool thin);
void watch_list(struct enc *e); // those of a SYNC
void watch_committed(JNIEnv *jni);
void watch_forget(JNIEnv *jni); // the recording ends

#endif
