// sidetable.h: objects of classes that died, by address, so that they can still be measured. VM thread in pauses.
#ifndef HEAPCAM_SIDETABLE_H
#define HEAPCAM_SIDETABLE_H

#include <stdbool.h>
#include <stdint.h>

bool side_init(void);
void side_clear(void);
void side_add(uint64_t addr, uint32_t type);
uint32_t side_get(uint64_t addr); // its type; 0: not in the table
// What is new from now on where freed says so: arg is handed on.
void side_drop(bool (*freed)(const void *arg, uint64_t addr), const void *arg);
void side_met(uint64_t addr);
// What was not met since classes_scan_all is dropped where walked says so.
void side_end(bool (*walked)(const void *arg, uint64_t addr), const void *arg);

#endif
