// switch.h: whether recording is paused, by the agent's word or by the host's switch (option disabled=).
#ifndef HEAPCAM_SWITCH_H
#define HEAPCAM_SWITCH_H

#include <stdbool.h>

bool is_off(void);      // any thread: only two flags are read
void switch_poll(void); // looks for the host's file; control thread, or the one that begins

#endif
