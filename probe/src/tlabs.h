// tlabs.h: holes in eden: what threads have not filled yet of their allocation buffers. VM thread in pauses.
#ifndef HEAPCAM_TLABS_H
#define HEAPCAM_TLABS_H

#include <stdbool.h>
#include <stdint.h>

#include "os.h"

struct hole {
    uint64_t lo, hi;
};
extern HIDDEN struct hole *holes; // by address
extern HIDDEN uint32_t nholes;
bool tlabs_init(void);
void tlab_holes(void); // inside the guard

#endif
