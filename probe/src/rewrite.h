// rewrite.h: puts a call behind each allocation of a class file: `bipush HIGH; sipush LOW; invokestatic
// HELPER.site(II)V`. Or, for `uses`, one before each use of an object and at the begin of methods: `invokestatic
// HELPER.use(Object)V`. Nothing of the file is believed. A method that is not understood, or that would become too
// long, stays as it is and is counted. Any thread
#ifndef HEAPCAM_REWRITE_H
#define HEAPCAM_REWRITE_H

#include "classfile.h"

// true: *out is what to use instead, *n its length; the caller frees it. false: the class stays as it is; odd says
// whether that is because it was not understood.
bool class_rewrite(const uint8_t *in, size_t in_n, struct rewriting *w, uint8_t **out, size_t *n, bool *odd);

#endif
