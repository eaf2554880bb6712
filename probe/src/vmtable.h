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

// One field that the probe needs, under all names that JDKs have for it. Exactly one of offset and address is set: a
// field without static has an
// offset, a static one an address.
struct vm_field {
    unsigned collectors; // bit HC_COLLECTOR_*: recording with these needs the field
    bool optional;       // it may be missing; if it is there it must be right
    enum vm_shape shape;
    int64_t *offset; // -1: missing
    char **address;  // NULL: missing
    struct {
        const char *type, *field;
    } name[2];
    const char *inner; // VM_STRUCT: its type, without the prefix G1 that some JDKs have
    // what the table says
    int found;    // 1 + index into name; 0: missing
    bool differs; // it is listed twice, with different values
    uint32_t is_static;
    uint64_t at_offset, at_address, declared; // declared: address of the type's name, 0: none
    uint64_t type_size[2], inner_size;        // of name[i].type; 0: gHotSpotVMTypes does not say
};

// A constant, of gHotSpotVMIntConstants or gHotSpotVMLongConstants.
struct vm_constant {
    unsigned collectors;
    bool optional;
    int *to; // stays as it is if the constant is missing
    int64_t least, most;
    const char *name[2];
    int found;
    bool differs;
    int64_t value;
};

// Both tables in one pass each. false: why says which table is damaged. Says nothing yet of a single field.
bool vm_read_fields(void *library, struct vm_field *f, size_t n, uint64_t *flag_size, char why[HC_MAX_REASON]);
// kind: Int, Long
bool vm_read_constants(void *library, const char *kind, struct vm_constant *c, size_t n, char why[HC_MAX_REASON]);
// Check one field or constant and store it where it belongs. false: why names it.
bool vm_take_field(struct vm_field *f, char why[HC_MAX_REASON]);
bool vm_take_constant(struct vm_constant *c, char why[HC_MAX_REASON]);

#endif
