// marks.h: dead objects that G1 leaves in place (marks.c says how they are found). VM thread in a pause, but for
// marks_init.
#ifndef HEAPCAM_MARKS_H
#define HEAPCAM_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmstructs.h"

#define WORD(a) (((a) - (uint64_t)vm.heap_base) >> 3)

bool marks_init(uint32_t regions);
bool marks_there(void); // false: this JVM shows none, or has shown that they are not what they seem
void marks_distrust(void);
const uint64_t *marks_of(uint64_t bottom, uint64_t top, uint64_t *seen); // of a region; or violation
extern HIDDEN uint32_t mark_shift;
uint64_t marks_in(const uint64_t *bits, uint64_t lo, uint64_t hi);
static inline bool is_marked(const uint64_t *bits, uint64_t a) {
    uint64_t i = (a - (uint64_t)vm.heap_base) >> mark_shift;
    return bits[i >> 6] >> (i & 63) & 1;
}
// The first marked object from a on; hi: none before that.
static inline uint64_t marked_from(const uint64_t *bits, uint64_t a, uint64_t hi) {
    if (a >= hi) return hi;
    uint64_t i = (a - (uint64_t)vm.heap_base) >> mark_shift, end = (hi - (uint64_t)vm.heap_base) >> mark_shift;
    for (uint64_t w = rd64(&bits[i >> 6]) >> (i & 63);; w = rd64(&bits[i >> 6])) {
        if (w) {
            i += (uint64_t)__builtin_ctzll(w);
            break;
        }
        i = (i | 63) + 1;
        if (i >= end) break;
    }
    return i < end ? (uint64_t)vm.heap_base + (i << mark_shift) : hi;
}
extern bool marks_clean; // a full collection has just made them: there is none inside of an object, as there is after
                         // an evacuation failure
extern HIDDEN uint64_t *graves; // one bit a word of heap: of an object that no listing counts
extern uint8_t *grave_in;       // of a region: GRAVES_*
enum { GRAVES_SOME = 1, GRAVES_ASK = 2 };
// graves_known: a listing leaves out all dead objects, except those that died after the newest marking. After
// graves_begin each region is looked up in the marks once, by the first listing of it.
extern bool graves_known;
void graves_begin(uint32_t regions);
bool graves_ask(uint64_t bottom);
void graves_asked(uint64_t bottom);
void grave_dig(uint64_t lo, uint64_t hi);
uint64_t grave_words(uint64_t a, uint64_t hi); // from a on, which is one
void graves_drop(uint32_t region);
bool graves_at(uint64_t bottom); // of a region
static inline bool is_grave(uint64_t a) {
    uint64_t w = (a - (uint64_t)vm.heap_base) >> 3;
    return graves[w >> 6] >> (w & 63) & 1;
}

#endif
