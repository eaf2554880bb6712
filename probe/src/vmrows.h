// vmrows.h: what vmrows.def names, in the JVM that the probe is in. Written while the JVM's tables are loaded, by one
// thread, and constant while something is recorded.
#ifndef HEAPCAM_VMROWS_H
#define HEAPCAM_VMROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

#define VM_NOTHING(...)
#define VM_SLOT(slot, ...) SLOT_##slot,
#define ROW VM_SLOT
#define PART VM_SLOT
#define CONSTANT VM_NOTHING
#define ALT_ROW VM_NOTHING
#define ALT_PART VM_NOTHING
#define ALT_CONSTANT VM_NOTHING
#define TESTED VM_NOTHING
enum vm_slot {
#include "vmrows.def"
    SLOTS
};
#undef ROW
#undef PART
#undef CONSTANT
#define VM_VALUE(slot, ...) VALUE_##slot,
#define ROW VM_NOTHING
#define PART VM_NOTHING
#define CONSTANT VM_VALUE
enum vm_value {
#include "vmrows.def"
    VALUES
};
#undef ROW
#undef PART
#undef CONSTANT
#undef ALT_ROW
#undef ALT_PART
#undef ALT_CONSTANT
#undef TESTED

// Read the four tables of a libjvm, whose JDK is `major`. false: one of them is damaged.
bool vm_rows_read(void *library, int major, uint64_t *flag_size, char why[HC_MAX_REASON]);
// Check and store what reading the JVM's options takes, then all that this collector (HC_COLLECTOR_*) takes. false: why
// names the row.
bool vm_rows_take_first(char why[HC_MAX_REASON]);
bool vm_rows_take(int collector, char why[HC_MAX_REASON]);

int64_t vm_offset(enum vm_slot s);        // of an instance's field; -1: not there
uint64_t vm_address(enum vm_slot s);      // of a static field; 0: not there
int vm_value(enum vm_value v);            // 0: not there
uint64_t vm_size_of(const char *type);    // of a type in vmrows.def; 0: not exported

bool vm_tested(int major);
int vm_oldest(void); // of the tested JDKs
int vm_newest(void);
const char *vm_tested_majors(char *to, size_t n); // "17, 21 and 25"

#endif
