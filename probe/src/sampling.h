// sampling.h: the JVM's allocation sampling, which it gives to one agent at a time; an agent that does not get it may
// end the JVM. The application's agents come first: the probe asks after all of them have had VMInit, records without
// sites if one of them has it, and gives it back while recording is paused.
#ifndef HEAPCAM_SAMPLING_H
#define HEAPCAM_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

void sampling_begin(void);
void sampling_begin_last(void);        // in VMInit: when all agents have begun
void sampling_turn(bool off);          // control thread: follows the switch
void sampling_report(void);            // control thread, and the last of all threads: records what has changed
void sampling_interval(uint64_t want); // control thread: HC_RING_OFF_INTERVAL_WANTED

#endif
