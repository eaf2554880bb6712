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
// Both: an application thread, in an event, with the list of its own frames. since: how often methods may have been
// freed, read before the list was made.
// How many frames, FRAMES_LISTED at most; 0: the JVM must be asked.
int compose(const struct frames_list *l, uint32_t since, struct site_frame *to);
void compose_learn(const struct frames_list *l, uint32_t since, const struct site_frame *is, int n); // the JVM's answer
void compose_report(void); // control thread: says once that nothing is composed any more
void compose_report_end(void); // a test's: what was counted

#endif
