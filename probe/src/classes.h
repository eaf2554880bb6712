// classes.h: which classes the JVM has, by walking ClassLoaderDataGraph inside pauses. An unloaded class keeps its type
// while the heap still contains objects of it. Afterwards the type is free ("gone"), and the probe reports that to the
// agent. VM thread in pauses.
#ifndef HEAPCAM_CLASSES_H
#define HEAPCAM_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

bool classes_init(void);
void classes_scan_new(void);     // classes loaded since the last scan
uint32_t classes_scan_all(void); // all; how many died
bool classes_dying(void);        // some died and have not gone
void classes_measured(void);     // of what died then every object that is left is in the side table, but for eden
void classes_unseen(void);       // what survived the last collection is not known: classes that died may have objects
// Frees the types that nothing can name any more. eden_emptied: this pause emptied eden. all: the heap contains no dead
// object. samples_sent: no sample waits to be sent (samples name types, too).
void classes_forget(bool eden_emptied, bool all, bool samples_sent);

#endif
