// budget.h: how much time a pause may take, and a prediction of how much its walks will take. The prediction follows
// from the times of the last walks. VM thread in pauses; nothing here reads memory of the JVM.
#ifndef HEAPCAM_BUDGET_H
#define HEAPCAM_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "heapmap.h"

void budget_learn_eden(uint64_t ns, uint64_t bytes); // CPU time that a walk of so many bytes took
void budget_learn_rest(uint64_t ns, uint64_t bytes);
void budget_learn_finish(uint64_t wall_ns, uint64_t cpu_ns); // of a whole finish

// Whether a listing of so many bytes would take longer than budget_whole. due: a listing is due now. After the answer
// "true" no object is walked until the listing would take a quarter less than that.
bool budget_listing_too_long(bool due, uint64_t bytes);
bool budget_too_long(void); // the newest answer of budget_listing_too_long
// The same where a listing may be spread over pauses: none is too long. Returns the ns that so many bytes would take.
uint64_t budget_listing(uint64_t bytes);
uint64_t budget_guess(uint64_t bytes); // predicted ns for a part of a listing
bool budget_fits(uint64_t bytes, uint64_t room); // whether a listing of so many bytes is expected to fit
void budget_sliced(uint64_t cpu_ns, uint64_t bytes, uint64_t written); // reports what a part of a listing took
uint64_t budget_slice(uint64_t pause_ns); // ns that a pause of that length may list: max_sync or a fifth; 0: no limit
uint64_t budget_whole(void); // ns that a listing may take that is not spread: an agent cannot store it, or a storm
struct listing_cost {
    uint64_t bytes, total, written;    // listed; that a listing walks; to the ring
    uint64_t began, ended, cpu, until; // until: when it was to be aborted, 0: never
    bool over, sooner;                 // over: it was aborted; sooner: by another budget
};
void budget_listed(const struct listing_cost *c);

// budget_depth returns the greatest depth, up to `depth`, at which the epoch is predicted to take at most `may` ns.
struct prospect {
    struct work walk;
    uint64_t list_bytes, since_last_finish, may;
    uint32_t depth, last_depth;
    bool have_last;
};
void budget_note_walk(struct work walk); // what a pause's walks would take at each depth, for the agent
uint32_t budget_depth(const struct prospect *p);
uint64_t budget_may_take(uint64_t start_cost); // ns; 0: no limit

// Predicted wall time of a listing of so many bytes, ns.
uint64_t budget_expect(uint64_t bytes);

#endif
