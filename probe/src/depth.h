// depth.h: the depth at which epochs are recorded: the one that the agent wants, or less if a budget or a loss requires
// it. VM thread in pauses.
#ifndef HEAPCAM_DEPTH_H
#define HEAPCAM_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

uint32_t depth_now(void); // HC_DEPTH_*
// The depth is lowered at once and raised at the finish, so that an epoch is recorded at one depth.
void depth_lower(void);
void depth_set_next(bool cut, uint32_t cut_to); // cut: the budget allowed no more than cut_to

#endif
