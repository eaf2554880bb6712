// bytecode.h: reads the body of a method as the JVM keeps it: the bytecodes of the class file, of which some were
// rewritten (17 and 25). Nothing in it is believed: no read leaves the n bytes that the caller gives. Any thread
#ifndef HEAPCAM_BYTECODE_H
#define HEAPCAM_BYTECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The next `new` from *bci on. 1: there is one at *at, with the index of its class in the constant pool, and *bci is
// behind it. 0: there is none, and the body was understood to its last byte. -1: it was not (a breakpoint, nonsense).
int bytecode_new(const uint8_t *code, size_t n, size_t *bci, size_t *at, uint32_t *index);

// The length of the instruction at bci, which is less than n; 0: it is none. It may reach beyond the body
size_t bytecode_length(const uint8_t *code, size_t n, size_t bci);

// The JVM's packed table of lines, in its order. excess: since 20 a byte of a packed number is one more.
struct bytecode_lines {
    const uint8_t *p, *end;
    bool excess;
    int64_t bci, line;
};
// The next row. false: there is none, or it is not understood.
bool bytecode_next_line(struct bytecode_lines *l);

#endif
