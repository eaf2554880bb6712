// metadata.h: what the JVM keeps of its classes and methods, read by copies alone (safe_read): nothing that was read is
// followed as a pointer, so memory that the JVM has given back is a failed read. A copy may be of something else, if a
// class was unloaded meanwhile: the caller looks at gc_counter before and after. Control thread
#ifndef HEAPCAM_METADATA_H
#define HEAPCAM_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytecode.h"
#include "encode.h"

bool metadata_init(void); // false: this JVM does not export what is needed, or its bytecodes are not known (17 and 25)

void metadata_begin(uint64_t gc); // forgets all copies: what follows reads anew. gc: gc_counter now
bool metadata_keep(uint64_t gc);  // forgets them if memory may have been given back since. Whether they stay
uint64_t metadata_reads(void); // copies that were made so far, which is what a turn pays for
// Asks the system for some of the memory that copies take, which may take as long as the copies. Whether it has all.
bool metadata_warm(void);

struct metaclass {
    uint64_t klass, name, pool, methods; // methods: the array
    uint32_t count;                      // of methods
};
bool metadata_class(struct metaclass *c, uint64_t klass);
enum { META_AHEAD = 64 };
enum meta_need { META_NOTHING, META_IF_EXECUTED, META_BODY }; // of a method
typedef enum meta_need metadata_need(uint32_t class, uint32_t method);
// Copies by few system calls what will be read of n classes (META_AHEAD at most), a step in each call. 0: there are
// more, for the same classes; else how many of them were looked at.
uint32_t metadata_ahead(const uint64_t *klass, uint32_t n, metadata_need *need);

enum { META_METHODS = 16 }; // at a time: what they take bounds a slice
// Reads where n methods from first on are.
bool metadata_methods(const struct metaclass *c, uint32_t first, uint32_t n);

// A method of those, by its place among them. The body is of one that was executed (always: of any), and stays until
// the next call.
struct metabody {
    const uint8_t *code, *lines; // lines: the packed table, NULL if there is none
    size_t code_bytes, lines_bytes;
    uint32_t name, sig; // in the pool
    bool executed;
};
bool metadata_body(const struct metaclass *c, uint32_t i, bool always, struct metabody *b);

// The class that an entry of the pool has led to. 0: to none so far. false: not understood.
bool metadata_resolved(const struct metaclass *c, uint32_t index, uint64_t *klass);
uint64_t metadata_name(uint64_t klass); // its symbol; 0: not read
// flags: HC_MADE_CLONEABLE, HC_MADE_THROWABLE
bool metadata_flags(uint64_t klass, uint32_t *flags);
struct bytecode_lines metadata_lines(const struct metabody *b);

// Texts, written as str. An entry that cannot be read is "".
void metadata_put_entry(const struct metaclass *c, struct enc *e, uint32_t index);
void metadata_put_signature(struct enc *e, uint64_t symbol); // Lname;
void metadata_put_file(const struct metaclass *c, struct enc *e);

#endif
