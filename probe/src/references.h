// references.h: reference listings: all objects, their references and the roots, as of one moment, on request. Control
// thread.
//
// The world is stopped by JVMTI, which enumerates the roots. In the stop the objects and their references are copied
// raw into memory that was populated before (refwalk.h). What follows happens while the application runs: names of
// classes and fields are read (refnames.h), and all is sent in parts (refsend.h). No primitive value and no character
// of a string is read.
#ifndef HEAPCAM_REFERENCES_H
#define HEAPCAM_REFERENCES_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

void references_begin(void);                     // the thread that begins: the probe can take them
void references_turn(JNIEnv *jni, uint64_t now); // answers a request, or sends more of the answer
void references_end(void);                       // what was not sent yet is not sent
bool references_busy(void);                      // the next turn should come soon

#endif
