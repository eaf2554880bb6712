// compose.h: the methods of a stack, without a call into the JVM. Its compiled frames say themselves which methods they
// stand for (scopes.h), and each method is known by its address, from an answer of the JVM about an earlier stack. Each
// later answer is compared with what would have been composed: if they differ too often, nothing is composed any more.
#ifndef HEAPCAM_COMPOSE_H
#define HEAPCAM_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "frames.h"
#include "sites.h"

bool compose_init(void); // after vm_load; false: no memory
struct composed {
    int n;         // frames, FRAMES_LISTED at most
    int low, high; // the methods of some of these are not known: from low on and below high; low == high: of none
    struct site_frame frame[FRAMES_LISTED]; // method 0: not known
    struct composed_of {
        uint64_t method, position; // their addresses
        bool interpreted;
    } of[FRAMES_LISTED]; // where a method is not known
};
// All: an application thread, in an event, with the list of its own frames. since: how often methods may have been
// freed, read before the list was made.
// false: the JVM must be asked for the whole stack.
bool compose(const struct frames_list *l, uint32_t since, struct composed *c);
// What the JVM said of the frames from c->low on, n of them. false: it must be asked for the whole stack.
bool compose_complete(const struct frames_list *l, uint32_t since, struct composed *c, const struct site_frame *is,
                      int n);
void compose_learn(const struct frames_list *l, uint32_t since, const struct site_frame *is, int n); // of the whole one
void compose_report(void); // control thread: says once that nothing is composed any more
void compose_report_end(void); // a test's: what was counted

#endif
