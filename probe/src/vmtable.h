// vmtable.h: reads the tables that libjvm exports about itself (gHotSpotVM*), and all else that the loader reads.
// Nothing in them is believed
// before it is checked: a JVM that nobody has tested may describe itself in another way than the loader expects.
//
// Invariants: (1) every byte is read by vm_peek, which copies whole pages by safe_read and fails where there is no
// memory; (2) every loop over
// foreign memory has a limit; (3) an offset is stored only if the field lies inside its type, an address only if it
// can be read.
#ifndef HEAPCAM_VMTABLE_H
#define HEAPCAM_VMTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

// ---- reading ------------------------------------------------------------------------------------
// One thread at a time. Begins anew: what was read before may have changed. false: this process refuses safe_read
// (seccomp); then the guard
// is used, which swaps the handlers of SIGSEGV and SIGBUS for each page.
bool vm_peek_begin(void);
bool vm_peek(void *to, uint64_t from, size_t n);        // false: not all of it can be read
bool vm_peek_string(char *to, size_t n, uint64_t from); // false: it cannot be read, or has n bytes and more
// false: not readable, or what is there does not point to readable, aligned memory
bool vm_peek_pointer(char **to, uint64_t from);

// ---- fields -------------------------------------------------------------------------------------
// What a field must be declared as. The name of a pointed-at type does not matter, its width and kind do.
enum vm_shape { VM_POINTER, VM_SIZE, VM_INT, VM_SHORT, VM_STRUCT, VM_UNTYPED_POINTER, VM_UNTYPED_BYTES };

// What rows of both kinds have: vmrows.def explains it.
struct vm_use {
    int slot;
    unsigned collectors; // bit HC_COLLECTOR_*: recording with these needs the slot
    int first, last;     // majors of the JDK
    bool optional;
    bool applies, required; // to this JDK, by it: vm_apply
    bool found, differs;    // differs: the JVM lists it twice, with different values
};

// A name of a field.
struct vm_field {
    struct vm_use use;
    bool is_static;
    enum vm_shape shape;
    const char *inner; // VM_STRUCT: its type, without the prefix G1 that some JDKs have
    const char *type, *field;
    // what the JVM's table says
    uint32_t says_static;
    uint64_t at_offset, at_address, declared; // declared: address of the type's name, 0: none
    uint64_t type_size, inner_size;           // 0: gHotSpotVMTypes does not say
};
// Where the field of a slot is.
struct vm_place {
    bool found;
    int64_t offset; // of an instance's field
    char *address;  // of a static one
};

// A name of a constant of gHotSpotVMIntConstants or gHotSpotVMLongConstants.
struct vm_constant {
    struct vm_use use;
    bool is_long;
    int64_t least, most;
    const char *name;
    int64_t value;
};

// Which rows of each slot apply to a JDK, and whether it must have the slot. rows: n structs of width bytes that begin
// with a vm_use; the rows of a slot follow each other.
void vm_apply(void *rows, size_t width, size_t n, int major);
// Both tables in one pass each. false: why says which table is damaged. Says nothing yet of a single field.
bool vm_read_fields(void *library, struct vm_field *f, size_t n, uint64_t *flag_size, char why[HC_MAX_REASON]);
// is_long: which of the two tables, and which of the rows
bool vm_read_constants(void *library, bool is_long, struct vm_constant *c, size_t n, char why[HC_MAX_REASON]);
// Check the rows of one slot, which begin at f or c, and store the place or the value. false: why names the row. A slot
// that need not be there stays not found, or keeps its value.
bool vm_take_field(const struct vm_field *f, const struct vm_field *end, struct vm_place *to, char why[HC_MAX_REASON]);
bool vm_take_constant(const struct vm_constant *c, const struct vm_constant *end, int *to, char why[HC_MAX_REASON]);

#endif
