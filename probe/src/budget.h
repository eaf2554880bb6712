// budget.h: what a pause may take, and what its walks are expected to take, from what the last ones took. VM thread in
// pauses; nothing here reads memory of the JVM.
#ifndef HEAPCAM_BUDGET_H
#define HEAPCAM_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "heapmap.h"

void budget_learn_eden(uint64_t ns, uint64_t bytes); // CPU time that a walk of so many bytes took
void budget_learn_rest(uint64_t ns, uint64_t bytes);
void budget_learn_finish(uint64_t wall_ns, uint64_t cpu_ns); // of a whole finish

// Whether a listing that is due, of so many bytes, would take longer than it may (max_sync); then nothing is walked
// until it would take a quarter less.
bool budget_listing_too_long(bool due, uint64_t bytes);
bool budget_too_long(void); // what that said last
// Where a listing may be spread over pauses none is too long: ns that one of so many bytes would take.
uint64_t budget_listing(uint64_t bytes);
uint64_t budget_guess(uint64_t bytes); // the same, of a part
void budget_sliced(uint64_t cpu_ns, uint64_t bytes); // what a part of one took
uint64_t budget_slice(uint64_t pause_ns);            // ns that a pause that took so long may list; 0: no limit
struct listing_cost {
    uint64_t bytes, total;             // listed; that a listing walks
    uint64_t began, ended, cpu, until; // until: when it was to be aborted, 0: never
    bool over, sooner;                 // over: it was aborted; sooner: by a budget and not by max_sync
};
void budget_listed(const struct listing_cost *c);

// The depth, at most `depth`, of which an epoch is not expected to take more than may ns.
struct prospect {
    struct work walk;
    uint64_t list_bytes, since_last_finish, may;
    uint32_t depth, last_depth;
    bool have_last;
};
uint32_t budget_depth(const struct prospect *p);
uint64_t budget_may_take(uint64_t start_cost); // ns; 0: no limit

#endif
