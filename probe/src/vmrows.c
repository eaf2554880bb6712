//go:build ignore

// vmrows.c: vmrows.h.
#include "vmrows.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "heapcam_abi.h"
#include "options.h"
#include "vmtable.h"

// The words of vmrows.def.
enum {
    SERIAL = 1 << HC_COLLECTOR_SERIAL,
    PARALLEL = 1 << HC_COLLECTOR_PARALLEL,
    G1 = 1 << HC_COLLECTOR_G1,
    ALL = SERIAL | PARALLEL | G1,
    EVERY = ALL | 1 << HC_COLLECTOR_ZGC | 1 << HC_COLLECTOR_SHENANDOAH | 1 << HC_COLLECTOR_EPSILON,
    INSTANCE = 0,
    STATIC = 1,
    INT = 0,
    LONG = 1,
    NEEDED = 0,
    OPTIONAL = 1,
    NEWER = INT_MAX,
};

#define USE(slot_, needed_by, first_, last_, need)                                                                     \
    .use = {.slot = slot_, .collectors = needed_by, .first = first_, .last = last_, .optional = need}
#define ROW(slot, needed_by, kind, shape_, type_, field_, first, last, need, use_)                                     \
    {USE(SLOT_##slot, needed_by, first, last, need),                                                                   \
     .is_static = kind,                                                                                                \
     .shape = VM_##shape_,                                                                                             \
     .type = #type_,                                                                                                   \
     .field = #field_},
#define PART(slot, needed_by, inner_, type_, field_, first, last, need, use_)                                          \
    {USE(SLOT_##slot, needed_by, first, last, need),                                                                   \
     .shape = VM_STRUCT,                                                                                               \
     .inner = #inner_,                                                                                                 \
     .type = #type_,                                                                                                   \
     .field = #field_},
#define CONSTANT VM_NOTHING
#define ALT_ROW ROW
#define ALT_PART PART
#define ALT_CONSTANT CONSTANT
#define TESTED VM_NOTHING
static struct vm_field fields[] = {
#include "vmrows.def"
};
#undef ROW
#undef PART
#undef CONSTANT
#define ROW VM_NOTHING
#define PART VM_NOTHING
#define CONSTANT(slot, needed_by, table, least_, most_, name_, first, last, need, use_)                                \
    {USE(VALUE_##slot, needed_by, first, last, need),                                                                  \
     .is_long = table,                                                                                                 \
     .least = least_,                                                                                                  \
     .most = most_,                                                                                                    \
     .name = #name_},
static struct vm_constant constants[] = {
#include "vmrows.def"
};
#undef CONSTANT
#undef TESTED
#define CONSTANT VM_NOTHING
#define TESTED(major) major,
static const int tested[] = {
#include "vmrows.def"
};

#define COUNT(a) (sizeof(a) / sizeof *(a))
static struct vm_place places[SLOTS];
static int values[VALUES];
static bool take_bodies; // the rows of proven sites: asked for, and of a JDK whose bytecodes are known
static bool take_scopes; // the rows of scopes.c: of a JDK on which it was tested

int64_t vm_offset(enum vm_slot s) { return places[s].found && !places[s].address ? places[s].offset : -1; }
uint64_t vm_address(enum vm_slot s) { return (uint64_t)(uintptr_t)places[s].address; }
int vm_value(enum vm_value v) { return values[v]; }

uint64_t vm_size_of(const char *type) {
    for (size_t i = 0; i < COUNT(fields); i++)
        if (!strcmp(fields[i].type, type)) return fields[i].type_size;
    return 0;
}

bool vm_rows_read(void *library, int major, uint64_t *flag_size, char why[HC_MAX_REASON]) {
    for (int i = 0; i < SLOTS; i++) places[i] = (struct vm_place){.offset = -1};
    for (int i = 0; i < VALUES; i++) values[i] = 0;
    take_scopes = major == 17 || major == 25;
    take_bodies = opt.newsites && take_scopes;
    vm_apply(fields, sizeof *fields, COUNT(fields), major);
    vm_apply(constants, sizeof *constants, COUNT(constants), major);
    return vm_read_fields(library, fields, COUNT(fields), flag_size, why) &&
           vm_read_constants(library, false, constants, COUNT(constants), why) &&
           vm_read_constants(library, true, constants, COUNT(constants), why);
}

static bool take_fields(int first, int end, unsigned collectors, char *why) {
    int done = first - 1;
    for (size_t i = 0; i < COUNT(fields); i++) {
        const struct vm_field *f = &fields[i];
        if (f->use.slot <= done || f->use.slot >= end) continue;
        if (f->use.slot >= SLOT_CLASS_METHODS && f->use.slot <= SLOT_LIST_BYTES && !take_bodies) continue;
        if (f->use.slot >= SLOT_METHOD_BODY && f->use.slot <= SLOT_MUTABLE_RELOCATIONS && !take_scopes) continue;
        done = f->use.slot;
        if (f->use.collectors & collectors && !vm_take_field(f, fields + COUNT(fields), &places[done], why))
            return false;
    }
    return true;
}

enum { FIRST_END = SLOT_FLAG_VALUE + 1 };
bool vm_rows_take_first(char why[HC_MAX_REASON]) { return take_fields(0, FIRST_END, EVERY, why); }

bool vm_rows_take(int collector, char why[HC_MAX_REASON]) {
    int done = -1;
    if (!take_fields(FIRST_END, SLOTS, 1u << collector, why)) return false;
    for (size_t i = 0; i < COUNT(constants); i++) {
        const struct vm_constant *c = &constants[i];
        if (c->use.slot == done) continue;
        done = c->use.slot;
        if (c->use.collectors & 1u << collector &&
            !vm_take_constant(c, constants + COUNT(constants), &values[done], why))
            return false;
    }
    return true;
}

bool vm_tested(int major) {
    for (size_t i = 0; i < COUNT(tested); i++)
        if (tested[i] == major) return true;
    return false;
}
int vm_oldest(void) { return tested[0]; }
int vm_newest(void) { return tested[COUNT(tested) - 1]; }

const char *vm_tested_majors(char *to, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < COUNT(tested) && at < n; i++) {
        const char *between = i == 0 ? "" : i + 1 < COUNT(tested) ? ", " : " and ";
        at += (size_t)snprintf(to + at, n - at, "%s%d", between, tested[i]);
    }
    return to;
}
