// frames.h: the Java stack of the calling thread as a number, read from the stack itself. Two stacks with the same
// number are the same for JVMTI. A compiled frame counts with its return address and with the number of its
// compilation, which the JVM gives only once: from these follow its methods and positions, those that were inlined too.
// An interpreted frame counts with its method and its position in the bytecode. Linux on x86-64 alone; elsewhere, and
// where a frame is not understood, there is no number, and the JVM must be asked.
#ifndef HEAPCAM_FRAMES_H
#define HEAPCAM_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct frames_key {
    uint64_t a, b;
    bool interpreted; // among the frames is an interpreted one: the key is void once methods may have been freed
};
bool frames_init(void); // after vm_load; false: this JVM's frames are not known
// An application thread, in an event that the JVM posts in native state. most: so many frames of Java at least count.
bool frames_key(struct frames_key *k, int most);

#endif
