// classtable.h: class words and their types. The VM thread writes in pauses, any thread looks up: entries are never
// removed.
#ifndef HEAPCAM_CLASSTABLE_H
#define HEAPCAM_CLASSTABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deflog.h"
#include "vmstructs.h"

// Ids of types are never given twice, up to MAX_TYPE_IDS. At a time there are less than MAX_TYPES, each in the place
// TSLOT(id) of the tables.
// TF_SLOW: its size does not follow from the layout helper alone (mirrors), or the word has named more than one class.
enum {
    MAX_TYPES = 1 << 20,
    TF_DEAD = INT32_MIN,
    TF_REUSED = 1 << 30,
    TF_VARIABLE = 1 << 29,
    TYPE_MASK = (1 << 28) - 1,
};
#define TSLOT(id) ((uint32_t)(id) & (MAX_TYPES - 1))
#define TF_SLOW ((uint32_t)TF_DEAD | TF_REUSED | TF_VARIABLE)
struct centry {
    uint64_t word;
    uint32_t type; // TF_* | id
    int32_t lh;
};
struct tinfo {
    uint32_t id; // 0: the place is free
    int32_t lh;
    uint32_t scan;
    uint32_t held; // objects of the dead class in the side table
    uint8_t flags; // HC_TF_*, TI_CHUNK
};
enum { TI_ARCHIVED = 64, TI_CHUNK = 128 }; // a virtual thread's stack: its size hangs on a field of its own
extern HIDDEN struct centry *ctab;
extern HIDDEN uint64_t ctab_mask;
extern HIDDEN int ctab_shift;
extern HIDDEN struct tinfo *tinfo;
extern HIDDEN uint32_t ntypes;  // highest id
extern HIDDEN uint32_t nused;   // places of tinfo
extern HIDDEN uint32_t scan_no; // of the newest scan of all classes
// Places in use in ctab, in the order of insertion: most of it is never read by who looks at all of them in a pause.
extern HIDDEN uint32_t nwords, *word_places;

bool classtable_init(void);
uint64_t word_of(char *klass);
char *klass_of(uint64_t word);
struct centry *class_insert(char *klass, uint64_t word, uint32_t loader);
struct centry *class_learn(uint64_t word); // a class of the CDS archive that nobody loaded yet

static inline struct centry *class_lookup(uint64_t word) {
    uint64_t i = (word * 0x9e3779b97f4a7c15ull) >> ctab_shift;
    for (;; i = (i + 1) & ctab_mask) {
        struct centry *c = &ctab[i];
        uint64_t w = atomic_load_explicit((_Atomic uint64_t *)&c->word, memory_order_acquire);
        if (w == word) return c;
        if (!w) return NULL;
    }
}

// Unloadings after which nobody looked for objects of the classes that died (tops.h) have numbers: the newest, and the
// oldest that counts; none if that is above it. Whether a word of a class that died has been used again since the
// newest, and whether that was so often that CLASS_PASTS types of it are not all.
enum { CLASS_PASTS = 8 };
extern HIDDEN uint32_t unloading_no, unloading_first;
extern HIDDEN bool class_reused, class_reused_often;
// What the word named before, newest first: the type, and unloading_no when the word was used again; 0: none.
struct class_past {
    uint32_t type, number;
};
const struct class_past *class_pasts(const struct centry *c); // CLASS_PASTS of them

void class_died(struct centry *c, uint64_t now); // now: by the clock of samples

// The type of a sample taken at that time: the word may have named another class then. 0: not known yet.
uint32_t class_type_at(uint64_t word, uint64_t time);

// What the walks need of the classes they meet most: a direct-mapped table. What is used of it stays in the first-level
// cache. The address of the next object hangs on class word -> entry -> size, so that chain is kept short and free of
// branches; kinds of objects alternate too fast to be predicted. Objects whose size needs more than this never enter
// it. An entry has 32 bytes, so that its place is a part of the class word, scaled, and costs the chain no
// multiplication. Words of compact headers are numbers in a row; no two others differ in the low three bits alone. Two
// classes with many objects in one place would cost a walk a quarter more, so there are many more places. VM thread.
struct hot {
    uint32_t word, type, lenmask; // lenmask: all ones for arrays
    uint16_t base;                // size, or header of an array, and what rounding up adds
    uint8_t shift, ntok, nlist;
    uint32_t tok, list; // LEB128 of the walk token (its low three bits are free) and of the list token
    uint32_t unused;
};
_Static_assert(sizeof(struct hot) == 32, "hot_at counts on it");
enum { HOTS = 4096 };
extern HIDDEN struct hot hots[HOTS];
static inline struct hot *hot_at(struct hot *table, uint64_t word, bool compact) {
    if (compact) return &table[word & (HOTS - 1)];
    return (struct hot *)((char *)table + 4 * (word & (8 * (HOTS - 1))));
}
void hots_forget(void); // a class word may mean another class from now on

#endif
