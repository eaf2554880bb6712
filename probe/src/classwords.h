// classwords.h: the class word of a sampled object by its class, without a look at the heap: the class is compared with
// that of an earlier object, which a weak reference of the probe leads to. An application thread.
#ifndef HEAPCAM_CLASSWORDS_H
#define HEAPCAM_CLASSWORDS_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

bool classwords_init(void);
uint64_t classwords_find(jclass k); // 0: not known
void classwords_keep(JNIEnv *jni, jclass k, uint64_t word);
void classwords_forget(JNIEnv *jni); // control thread, when no callback comes any more

#endif
