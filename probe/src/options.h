// options.h: the options of the probe, from its command line. Written once by options_parse, before anything is
// recorded, and constant afterwards.
#ifndef HEAPCAM_OPTIONS_H
#define HEAPCAM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { HC_MAX_FRAMES = 1 << 18 }; // of all stacks together
struct options {
    char dir[256], spool[256]; // where the ring is made; spool: for an agent elsewhere, and nowhere else
    int depth, stack;
    uint64_t interval, ring;
    uint32_t slots, frames;
    bool allow_untested, oracle;
    char drag[200];              // packages whose code notes uses, with "+" between; "app": all of the application
    bool exact;                  // exact sites: bytecode is changed
    bool hash;                   // and they are written to identity hashes
    uint8_t newsites;            // bytecodes are read for proven sites; 2: whatever that costs, for tests
    bool unmirrored;             // a test's: as where the data cannot be mapped twice
    // a test's: this JDK is taken for an untested one: 1 between the tested ones, 2 whose self-check fails, 3 newer
    // than they are, 4 newer, and the self-check after the first collection fails
    int untested;
    uint64_t fault_at, max_sync; // fault_at: a test's, an epoch; max_sync: ns that any pause may list; 0: any
    uint64_t fault_until; // a test's: epochs from fault_at to this one meet an unknown class word in each listing
    uint64_t slice;       // a test's: ns that a pause may list, and no more if it takes long; 0: as max_sync says
    uint32_t lose;        // a test's: of so many epochs, the last three do not fit into the ring; 0: all do
    uint32_t first_type;  // a test's: ids of types begin behind it
    uint32_t storm;       // thousandths of ten seconds that recording may take in a storm of full collections; 0: any
    uint32_t ask;         // a test's: the JVM is asked for each stack; 1: in any case, 2: to compare
    uint32_t crew;        // a test's: 0 no helper threads; 2 and more: crew.c
    uint32_t late;        // a test's: ms until the control thread begins
    enum { NAMES_FOLDED, NAMES_OFF, NAMES_FULL } names; // of threads
    char disabled[256];                                 // while a file of this name is there nothing is recorded
};
extern struct options opt;

bool options_parse(const char *s); // false: the reason was logged

#endif
