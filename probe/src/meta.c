//go:build ignore

// meta.c: meta.h.
#include "meta.h"

#include <string.h>

#include "context.h"
#include "deflog.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "ring.h"
#include "samples.h"
#include "version.h"
#include "vmstructs.h"

PER_RECORDING char vm_name[VM_NAME];
PER_RECORDING bool at_start;
PER_RECORDING _Atomic bool sampling_denied;
static PER_RECORDING uint64_t probe_epoch_wall_ms;
static PER_RECORDING const char *note;

void meta_begin(void) {
    probe_epoch_ns = now_ns();
    probe_epoch_wall_ms = os_wall_ms();
}

static void put_jvm_event(struct enc *e) {
    uint8_t *at = block_begin(e, HC_KIND_META);
    put8(e, HC_EV_JVM);
    uint64_t v[] = {HC_ABI_VERSION,
                    (uint64_t)vm.major,
                    (uint64_t)vm.collector,
                    os_pid(),
                    probe_epoch_wall_ms,
                    probe_epoch_wall_ms,
                    (uint64_t)vm.heap_base,
                    vm.heap_bytes >> 3,
                    vm.align,
                    vm.collector == HC_COLLECTOR_G1 ? vm.region_bytes >> 3 : 0,
                    (vm.compressed_oops ? HC_JF_COMPRESSED_OOPS : 0) |
                        (vm.compressed_class ? HC_JF_COMPRESSED_CLASS : 0) |
                        (vm.compact_headers ? HC_JF_COMPACT_HEADERS : 0) | (at_start ? HC_JF_AT_START : 0) |
                        (sampling_denied ? HC_JF_NO_SAMPLING : 0),
                    (uint64_t)opt.depth,
                    opt.interval,
                    vm.max_heap};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) put_u(e, v[i]);
    put_str(e, (char *)ring + HC_RING_OFF_SESSION, HC_RING_LEN_SESSION);
    put_str(e, vm_name, strlen(vm_name));
    put_str(e, HC_PROBE_VERSION, strlen(HC_PROBE_VERSION));
    block_end(e, at);
}

static bool commit(void (*fill)(struct enc *)) {
    struct enc e;
    lock_writer();
    bool ok = reserve_flush(false); // else what comes would overtake it
    if (ok) {
        ring_begin(&e, false);
        fill(&e);
        ok = ring_commit(&e, false);
        defs_committed(ok);
        samples_committed(ok);
    }
    ring_unlock();
    return ok;
}

static void fill_samples(struct enc *e) {
    samples_gather();
    put_defs(e, true);
    samples_put(e, false);
}

bool meta_commit(void (*fill)(struct enc *e)) { return commit(fill); }
void meta_fill_samples(struct enc *e) { fill_samples(e); }

static void fill_first(struct enc *e) {
    put_jvm_event(e);
    put_defs(e, true);
}

static void fill_note(struct enc *e) {
    put_jvm_event(e);
    uint8_t *at = block_begin(e, HC_KIND_META);
    put8(e, HC_EV_NOTE);
    put_u(e, now_ns() - probe_epoch_ns);
    put_str(e, note, strlen(note));
    block_end(e, at);
}

static PER_RECORDING uint32_t again_part, again_next;
static PER_RECORDING uint64_t again_at;
static PER_RECORDING bool again_more;
static void fill_again(struct enc *e) {
    if (!again_part) {
        again_at = *ring64(HC_RING_OFF_HEAD);
        put_jvm_event(e);
        context_put(e);
    }
    again_next = again_part;
    again_more = put_defs_again(e, &again_next);
}

static PER_RECORDING uint64_t end_reason;
static void fill_end(struct enc *e) {
    fill_samples(e);
    uint8_t *at = block_begin(e, HC_KIND_END);
    put8(e, HC_EV_END);
    put_u(e, now_ns() - probe_epoch_ns);
    put_u(e, end_reason);
    put_str(e, "", 0);
    block_end(e, at);
}

static PER_RECORDING bool again_first;

bool meta_put_first(void) { return commit(fill_first); }
static void fill_context(struct enc *e) {
    fill_samples(e);
    context_put(e);
}

bool meta_put_context(void) { return commit(fill_context); }
bool meta_put_samples(void) { return commit(fill_samples); }
bool meta_put_note(const char *text) {
    note = text;
    return commit(fill_note);
}
bool meta_put_end(uint64_t reason) {
    end_reason = reason;
    return commit(fill_end);
}

void meta_again_begin(void) { again_part = 0; }

bool meta_again_next(uint64_t *from, bool *more) {
    if (!commit(fill_again)) return false;
    again_first = !again_part;
    again_part = again_next;
    *from = again_at;
    *more = again_more;
    return true;
}

bool meta_again_is_first(void) { return again_first; }
