// rewriteuse.h: what is put before an instruction that uses an object, for rewritecode. Any thread
#ifndef HEAPCAM_REWRITEUSE_H
#define HEAPCAM_REWRITEUSE_H

#include "classfile.h"
#include "rewriteflow.h"

enum { USE_MOST = 7, USE_ENTRY = 4 }; // bytes of one; at the method's begin

struct uses { // of one method
    const struct file *f;
    const uint8_t *code;
    size_t n;
    uint8_t *target; // n: how jumps and handlers lead there
    uint64_t *vars;  // n: the variables that were checked on all ways there
    struct flow flow;
    bool falls; // the last instruction may be followed by the next one
    bool entry;      // `this` is checked at the method's begin
    bool held;       // it is locked there
    bool constructor;
};

// The attribute's exception table is of n entries. false: no memory. uses_free frees it in any case.
bool uses_look(struct uses *u, const struct file *f, const uint8_t *code, size_t code_n, struct in exceptions,
               uint32_t n);
void uses_free(struct uses *u);
void uses_method(struct uses *u, uint32_t flags, struct text name);
// Before each pass through the code, which calls use_before for one instruction after the other.
void uses_restart(struct uses *u);
// Writes what goes before the instruction at i, of len bytes: how many bytes; 0: nothing.
size_t use_before(struct uses *u, size_t i, size_t len, uint8_t to[USE_MOST]);
void use_entry(const struct uses *u, uint8_t to[USE_ENTRY]);

#endif
