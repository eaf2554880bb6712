// sites.h: stacks of sampled allocations, as a trie of frames, and their definitions. Application threads; they take a
// lock only when a method or a stack is seen for the first time, and never one that the VM thread wants.
#ifndef HEAPCAM_SITES_H
#define HEAPCAM_SITES_H

#include <jvmti.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "encode.h"
#include "os.h"

bool sites_init(void);
extern os_mutex site_lock;                         // who appends to site_log holds it
// One definition, of e that began at b; false: the log has no room. With the lock.
bool site_define(const uint8_t *b, struct enc *e);

struct site_frame {
    uint32_t method; // 0: the table of methods is full
    int32_t bci;     // as JVMTI gives it: -1 in a native method
};
enum { SITES_STACK = 512 };
// The innermost frame of a stack of n frames, SITES_STACK at most, which begin there; 0: none of it is known, and the
// tables are full.
uint32_t stack_id(const struct site_frame *fr, int n);
uint32_t sites_method(jvmtiEnv *env, JNIEnv *jni, jmethodID m); // its id; 0: the table is full
uint32_t sites_methods(void); // how many are defined, of 65,536
size_t sites_name(const char *class, size_t n); // how much of a class's name says which one it is
// The id of a method that is defined from body to e, with SITES_HEAD bytes free before body; 0: no room.
enum { SITES_HEAD = 11 };
uint32_t sites_same_method(uint8_t *body, struct enc *e);
uint32_t sites_outermost(uint32_t method, int32_t bci); // a frame without a caller; 0: the table is full
void stack_used(uint32_t frame);      // one more sample was taken there
bool sites_are_full(void);            // what is not in the table is cut
void sites_make_room(uint64_t now);   // control thread
extern _Atomic uint32_t sites_rooms;  // how often room was made: an id of a frame may have got a successor since
extern _Atomic uint64_t sites_cut;    // samples whose stack was cut where the table of frames or of methods was full
extern _Atomic uint64_t sites_folded; // frames that left the table

#endif
