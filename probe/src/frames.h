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
// A frame of the thread's stack. Its code, or the address of its method, stays as long as the event lasts.
struct frames_one {
    uint64_t at, is;     // compiled: return address and code blob; interpreted: Method and address of the bytecode
    uint32_t compile_id; // 0: interpreted
};
enum { FRAMES_LISTED = 64 };
struct frames_list {
    int n; // from the innermost on; more than FRAMES_LISTED: not all are listed
    struct frames_one one[FRAMES_LISTED];
};
bool frames_init(void); // after vm_load; false: this JVM's frames are not known
// An application thread, in an event that the JVM posts in native state. most: so many frames of Java at least count.
// list: without the frames of stubs.
bool frames_key(struct frames_key *k, struct frames_list *list, int most);

#endif
