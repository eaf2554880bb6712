// rewriteflow.h: which objects code has just checked, for rewriteuse. It follows references through variables and the
// operand stack, as far as no jump leads in between. Any thread
#ifndef HEAPCAM_REWRITEFLOW_H
#define HEAPCAM_REWRITEFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLOW_VARS = 64, FLOW_STACK = 64, FLOW_SEEN = 64 };

struct flow {
    uint32_t next;                             // the number of the next value
    uint32_t var[FLOW_VARS], stack[FLOW_STACK]; // numbers of values; 0: nobody knows
    uint32_t depth;                            // of the stack, above what is unknown
    uint32_t seen[FLOW_SEEN], nseen;           // values that were checked
};

void flow_begin(struct flow *f, bool this_seen);
uint64_t flow_vars(const struct flow *f);         // the variables whose values were checked, a bit each
void flow_join(struct flow *f, uint64_t vars);    // several ways lead here; on all of them these were checked
void flow_forget(struct flow *f);                 // what follows may come much later
bool flow_seen(const struct flow *f, uint32_t n); // the value below n others on the stack was checked
void flow_see(struct flow *f, uint32_t n);
// The instruction at code[i], of len bytes, is done. field: words of the field that it names; 0: none, or unknown.
void flow_step(struct flow *f, const uint8_t *code, size_t i, size_t len, uint32_t field);

#endif
