// context.h: the process context that an SDK of OpenTelemetry publishes in this process' memory (OTEP 4719,
// docs/design/0027). A thread of its own copies it, and ends after each look: whoever publishes can make a reader of
// that memory wait for as long as he likes (userfaultfd), and nothing waits for this thread. Only named attributes
// leave it. On Windows there is none.
#ifndef HEAPCAM_CONTEXT_H
#define HEAPCAM_CONTEXT_H

#include <stdbool.h>

#include "encode.h"

// All by the control thread.
void context_begin(uint64_t now); // ns
void context_end(void);           // waits for a second at most; a thread that has not ended by then stays
bool context_turn(uint64_t now);  // starts the thread when it is time; true: something is known that was not sent
void context_sent(void);
void context_put(struct enc *e);  // what is known, as a block

#endif
