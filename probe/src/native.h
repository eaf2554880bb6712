// native.h: threads of the probe that the JVM does not know: no stop waits for them, and the JVM's exit neither. They
// get no signals but those of faults, which they cause themselves. Not on Windows.
#ifndef HEAPCAM_NATIVE_H
#define HEAPCAM_NATIVE_H

#ifndef _WIN32
#include <pthread.h>
#include <stdbool.h>

bool native_start(pthread_t *t, void *(*f)(void *), void *arg); // false: it could not be made
void native_join(pthread_t t);                                  // of one that ends now
void native_name(const char *name);                             // of the calling thread; 15 bytes at most
#endif

#endif
