// scopes.h: the methods of Java that a return address of compiled code stands for, read from what the compiler keeps
// beside the code. The addresses of methods that come out are those of methods that live as long as the code.
#ifndef HEAPCAM_SCOPES_H
#define HEAPCAM_SCOPES_H

#include <stdbool.h>
#include <stdint.h>

struct scope {
    uint64_t method; // the address of HotSpot's Method; not followed
    int32_t bci;     // as JVMTI gives it: -1 in a native method
};
bool scopes_init(void); // after vm_load; false: this JVM keeps them in a way that is not known
// careful, in both: nothing is read before the system has said that it is there.
// pc is in the code blob of an nmethod that has a frame on the calling thread's stack. How many methods, the innermost
// first; 0: not understood, or more than most.
int scopes_at(uint64_t blob, uint64_t pc, bool careful, struct scope *to, int most);
// Where the bytecodes of a method begin that is on the calling thread's stack, and what else tells methods apart that
// lie at the same address one after the other: how many bytecodes, indices of name and signature, number in its class.
// begin 0: not there.
struct bytecodes {
    uint64_t begin;
    uint16_t bytes, name, signature, number;
};
struct bytecodes scopes_bytecodes(uint64_t method, bool careful);

#endif
