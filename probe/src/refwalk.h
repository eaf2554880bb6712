// refwalk.h: one walk over all objects that copies their references raw, into memory that was populated before. VM
// thread in a stop. What it wrote is read afterwards by the control thread, which made the memory.
//
// Tokens of objects are those of a listing (docs/format/stream.md, reflist), without a start or an end. Slots are 32
// bits each, as the objects have them (narrow), or words from the heap base + 1 (wide). Both are parted, so that each
// part can be sent by itself.
#ifndef HEAPCAM_REFWALK_H
#define HEAPCAM_REFWALK_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

#include "heapmap.h"
#include "log.h"

// Where a part begins: word of its first object, positions in tokens and slots.
struct refpart {
    uint64_t word, token, slot;
};
// A class that some loader has, or of which there are objects.
struct refclass {
    char *klass, *super;
    uint32_t type;    // 0: there are no objects of it
    uint32_t statics; // slots of its mirror
    uint32_t of_type; // 1 + index of types; 0: no object of it was met
};
// What is read of the objects of one type. Blocks are pairs of offset and count in `blocks`.
struct reftype {
    uint32_t type, class; // class: index of classes; 0: unknown
    uint32_t block, nblocks, slots;
    uint8_t kind, strength;
};
struct refmap { // the same for the walk, by TSLOT of the type
    uint8_t how, nblocks;
    uint16_t header;   // bytes, of arrays and mirrors
    uint32_t elements; // all ones: each element is a reference
    uint32_t off[2], count[2];
    uint32_t slots, more; // more: position in blocks of the third block
};
_Static_assert(sizeof(struct refmap) == 32, "its place takes one shift");
struct refextra {
    uint32_t from, to, kind;
};
struct refsample { // a sampled object that lives
    uint64_t id;
    uint32_t word;
};
struct refroot {
    uint32_t target; // word + 1
    int32_t kind, depth;
    int64_t bci, thread;
    jmethodID method;
};

enum { REF_CLASSES = 1 << 20, REF_BLOCKS = 1 << 20, REF_EXTRA = 1 << 20, REF_ROOTS = 1 << 18, REF_REPEATS = 1 << 14 };
enum { REF_MAYBES = 1 << 18, REF_SEEN = 1 << 14 };
enum { REF_PART_TOKENS = 64 << 10, REF_PART_SLOTS = 32 << 10 }; // about: the object that exceeds them is the last
struct refs {
    // memory; its bounds
    uint8_t *token, *token_end;
    uint32_t *slot, *slot_end;
    struct refpart *part, *part_end;
    uint64_t *raw, *raw_end; // positions of two slots that are numbers: class and count of a mirror
    struct refmap *map;
    struct reftype *type;
    struct refclass *class; // from 1 on
    uint32_t *class_at;     // a hash table of them
    uint32_t *block;
    struct refextra *extra;
    struct refroot *root;
    uint64_t *repeats;
    struct refsample *sample;
    uint32_t samples, samples_most;
    uint32_t *maybe, *seen; // what stacks may refer to: words + 1; the newest of them
    struct heapmap heap;

    uint64_t until; // now_ns() at which the walk ends
    uint64_t tokens, slots, objects, chunks, odd_mirrors;
    uint32_t parts, raws, types, classes, blocks, extras, roots, maybes;
    bool late, full, far;           // it took too long, did not fit, has objects more than 32 GiB from the base
    bool extras_full, roots_full;   // the same of these alone
    bool maybes_full;
    bool no_referents, no_resolved; // left out
};

static inline bool refs_failed(const struct refs *r) { return r->late || r->full || r->far; }

bool refwalk_ready(char why[HC_MAX_REASON]); // false: this JVM does not show what it takes
bool refwalk_know_references(JNIEnv *jni);   // not in a pause: how the JVM marks the four kinds of Reference
// Inside a stop and the guard; arg: struct refs. What is not understood leaves it.
void refwalk_all(void *arg);
uint32_t refwalk_class(const struct refs *r, const char *klass); // 0: none
bool refwalk_klass_of(jclass k, uint64_t *klass);                // not in a pause: HotSpot's own of a mirror

void refwalk_add_root(struct refs *r, uint32_t target, int32_t kind); // target: word + 1

// In the stop: adds what the words of a stack from lo to hi may refer to. They may also be numbers.
void refwalk_maybe(struct refs *r, uint64_t lo, uint64_t hi);

// From what objects have (narrow) to words from the heap base + 1; null, and what leads out of the heap: 0.
void refwalk_know_words(void);
uint32_t refwalk_word(uint32_t slot);

#endif
