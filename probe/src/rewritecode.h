// rewritecode.h: rewrites the code of one method, for rewrite. Any thread
#ifndef HEAPCAM_REWRITECODE_H
#define HEAPCAM_REWRITECODE_H

#include "classfile.h"

// Writes the attribute Code, whose name is written. One that is not understood stays as it is.
struct method {
    uint32_t flags;
    struct text name, sig;
};
void rewrite_code(struct out *o, struct file *f, struct in body, const struct method *m);

#endif
