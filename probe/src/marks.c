//go:build ignore

// marks.c: dead objects that stay in place. A full collection of G1 on 17 to 19 leaves regions as they are of which 95
// % or more live (MarkSweepDeadRatio), dead objects and all; from 20 on it puts fillers over them. Only the bitmap of
// that marking tells which they are.
//
// No table exports the bitmap, so it is looked for where JDK 12 to 19 have it and believed if everything around it is
// as it must be: G1CollectedHeap points at an object (G1ConcurrentMark) whose second word points back; in it stand two
// bitmaps that cover exactly the heap, pointers to both, the first of which is the newest complete marking, and the
// heap's bounds. Behind a region's type stand four other words, and then four that count: up to where the newest
// marking and the running one have seen the region, and how many bytes of it they found alive. If these four make no
// sense in any region, or a full collection has left a mark inside of an object, the bitmap is not used any more.
//
// What a listing left out for dead is a grave: a bit for each of its words. Later walks step over graves, so that
// nothing in them dies a second time.
#include "marks.h"

#include <string.h>

#include "guard.h"
#include "os.h"
#include "recording.h"

PER_RECORDING uint64_t *graves;
PER_RECORDING uint8_t *grave_in;
PER_RECORDING bool graves_known, marks_clean;
// Address of the pointer to the bitmap of the newest complete marking; 0: not found
static PER_RECORDING uint64_t newest;
static PER_RECORDING uint64_t covers; // where its covered range stands in it, bytes
static PER_RECORDING int64_t hr_marked;

enum { HEAP_WORDS = 256, MARK_WORDS = 40 };

PER_RECORDING uint32_t mark_shift = 3; // from bytes of heap to marks

static uint32_t shifter(void) { return mark_shift - 3; }

static bool bitmap_at(const uint64_t *w) {
    uint64_t words = vm.heap_bytes / 8;
    return w[0] == (uint64_t)vm.heap_base && w[1] == words && (uint32_t)w[2] == shifter() && w[3] &&
           w[4] == words >> shifter();
}

static bool marking_at(uint64_t p) {
    uint64_t w[MARK_WORDS], at[2], n = 0, k = 2;
    if (!p || p & 7 || !safe_read(w, p, sizeof w) || w[1] != (uint64_t)vm.heap) return false;
    for (; k + 5 <= MARK_WORDS && n < 2; k++)
        if (bitmap_at(w + k)) at[n++] = p + 8 * k, k += 4;
    for (; n == 2 && k + 4 <= MARK_WORDS; k++) {
        if (w[k + 2] != (uint64_t)vm.heap_base || w[k + 3] != vm.heap_bytes / 8) continue;
        for (uint64_t d = 0; d <= 8; d += 8)
            if ((w[k] == at[0] - d && w[k + 1] == at[1] - d) || (w[k] == at[1] - d && w[k + 1] == at[0] - d)) {
                newest = p + 8 * k, covers = d;
                return true;
            }
    }
    return false;
}

bool marks_init(uint32_t regions) {
    if (!vm_has_regions()) return true;
    mark_shift = (uint32_t)__builtin_ctzll(vm.align);
    uint64_t h[HEAP_WORDS];
    bool found = false;
    for (uint64_t n = HEAP_WORDS; n >= 32 && !found; n /= 2)
        if (safe_read(h, (uint64_t)vm.heap, n * 8)) {
            for (uint64_t i = 0; i < n && !found; i++) found = marking_at(h[i]);
            break;
        }
    if (!found) return true;
    hr_marked = ((vm.hr_tag + 11) & ~7ll) + 32;
    uint64_t n = rd64(vm.g1_len), base = (uint64_t)vm.heap_base;
    for (uint64_t i = 0; i < n && i < regions; i++) {
        uint64_t r, m[4], lo = base + i * vm.region_bytes;
        if (!safe_read(&r, (uint64_t)(rdp(vm.g1_table) + 8 * i), 8) || !r) continue;
        if (!safe_read(m, r + (uint64_t)hr_marked, sizeof m) || m[0] - lo > vm.region_bytes ||
            m[1] - lo > vm.region_bytes || m[2] > m[0] - lo || m[3] > vm.region_bytes) {
            newest = 0;
            return true;
        }
    }
    graves = memory_sparse((vm.heap_bytes >> 6) + 16);
    grave_in = memory(regions);
    return graves && grave_in;
}

bool marks_there(void) { return newest != 0; }

void marks_distrust(void) { newest = 0; }

// What of a region the newest marking has seen, and its bits, one for each place where an object may begin in the heap.
// Objects from *seen on are newer and live.
const uint64_t *marks_of(uint64_t bottom, uint64_t top, uint64_t *seen) {
    uint64_t i = (bottom - (uint64_t)vm.heap_base) / vm.region_bytes;
    char *r = rdp(rdp(vm.g1_table) + 8 * i);
    uint64_t to = rd64(r + hr_marked), next = rd64(r + hr_marked + 8), live = rd64(r + hr_marked + 16),
             next_live = rd64(r + hr_marked + 24);
    // What is listed may end below the top: a region grows while a listing is spread over pauses.
    uint64_t end = rd64(r + vm.hr_top);
    if (to < bottom || to > end || next < bottom || next > end || live > to - bottom || next_live > end - bottom) {
        marks_distrust();
        violation("the marks of a region are invalid", bottom);
    }
    // Closed archive regions are not marked: all in them lives.
    *seen =
        vm.g1_archive_mask && (int)rd32(r + vm.hr_tag) & vm.g1_archive_mask && rd32(r + vm.hr_tag) & 1 ? bottom : to;
    if (*seen > top) *seen = top;
    const uint64_t *bits = (const uint64_t *)rdp(rdp((void *)newest) + covers + 24);
    // No word more: the bits of the next region may have been given back with it.
    if (*seen > bottom)
        need_memory((uint64_t)bits + ((bottom - (uint64_t)vm.heap_base) >> (3 + mark_shift)),
                    (uint64_t)bits + 8 * ((((top - (uint64_t)vm.heap_base) >> mark_shift) + 63) >> 6));
    return bits;
}

// How many marks a region has up to hi: regions begin at a word of the bitmap.
uint64_t marks_in(const uint64_t *bits, uint64_t lo, uint64_t hi) {
    uint64_t n = 0, i = (lo - (uint64_t)vm.heap_base) >> mark_shift, end = (hi - (uint64_t)vm.heap_base) >> mark_shift;
    for (; i < end; i += 64) {
        uint64_t w = rd64(&bits[i >> 6]);
        if (end - i < 64) w &= (1ull << (end - i)) - 1;
        w -= w >> 1 & 0x5555555555555555ull;
        w = (w & 0x3333333333333333ull) + (w >> 2 & 0x3333333333333333ull);
        n += ((w + (w >> 4)) & 0x0f0f0f0f0f0f0f0full) * 0x0101010101010101ull >> 56;
    }
    return n;
}

static uint64_t region_at(uint64_t a) { return (a - (uint64_t)vm.heap_base) / vm.region_bytes; }

void grave_dig(uint64_t lo, uint64_t hi) {
    grave_in[region_at(lo)] |= GRAVES_SOME;
    for (uint64_t i = WORD(lo), n = WORD(hi) - i, k; n; i += k, n -= k) {
        k = 64 - (i & 63) < n ? 64 - (i & 63) : n;
        graves[i >> 6] |= (k == 64 ? ~0ull : (1ull << k) - 1) << (i & 63);
    }
}

uint64_t grave_words(uint64_t a, uint64_t hi) {
    uint64_t i = WORD(a), end = WORD(hi), from = i;
    while (i < end) {
        uint64_t w = ~(graves[i >> 6] >> (i & 63)), k = w ? (uint64_t)__builtin_ctzll(w) : 64, left = 64 - (i & 63);
        i += k < left ? k : left;
        if (k < left) break;
    }
    return (i < end ? i : end) - from;
}

void graves_drop(uint32_t region) {
    if (!grave_in || !grave_in[region]) return;
    bool some = grave_in[region] & GRAVES_SOME;
    grave_in[region] = 0;
    if (!some) return;
    memset((uint8_t *)graves + (uint64_t)region * (vm.region_bytes >> 6), 0, vm.region_bytes >> 6);
}

bool graves_at(uint64_t bottom) {
    return graves_known && grave_in[region_at(bottom)] & GRAVES_SOME;
}

void graves_begin(uint32_t regions) {
    if (!marks_there()) return;
    for (uint32_t i = 0; i < regions; i++) {
        graves_drop(i);
        grave_in[i] = GRAVES_ASK;
    }
    graves_known = true;
}

bool graves_ask(uint64_t bottom) {
    return graves_known && marks_there() && grave_in[region_at(bottom)] & GRAVES_ASK;
}

void graves_asked(uint64_t bottom) { grave_in[region_at(bottom)] &= (uint8_t)~GRAVES_ASK; }
