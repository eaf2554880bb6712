// rewriteuse.h: what is put before an instruction that uses an object, for rewritecode. Any thread
#ifndef HEAPCAM_REWRITEUSE_H
#define HEAPCAM_REWRITEUSE_H

#include "classfile.h"

enum { USE_MOST = 7, USE_ENTRY = 4 }; // bytes of one; at the method's begin

struct uses { // of one method
    const struct file *f;
    const uint8_t *code;
    size_t n;
    uint8_t *target; // n: whether a jump or a handler leads there
    bool entry;      // `this` is checked at the method's begin
    bool held;       // it is locked there
    bool constructor;
    size_t fresh; // up to here nothing takes long behind that check
};

// The attribute's exception table is of n entries. false: no memory.
bool uses_look(struct uses *u, const struct file *f, const uint8_t *code, size_t code_n, struct in exceptions,
               uint32_t n);
void uses_method(struct uses *u, uint32_t flags, struct text name);
// Writes what goes before the instruction at i, which follows that at prev: how many bytes; 0: nothing.
size_t use_before(const struct uses *u, size_t i, size_t prev, uint8_t to[USE_MOST]);
void use_entry(const struct uses *u, uint8_t to[USE_ENTRY]);

#endif
