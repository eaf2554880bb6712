//go:build ignore

// frames.c: frames.h.
//
// What is read: the thread's own JavaThread; its own stack, between this function and the stack's base; heaps of code,
// up to what is committed (that is never given back), and there the headers of code that has a frame on this stack and
// so cannot be freed; the map of segments of each. No address that was read is followed anywhere else.
#include "frames.h"

#include <stddef.h>

#include "vmrows.h"
#include "vmstructs.h"
#include "vmtable.h"

#if defined(__x86_64__) && !defined(_WIN32)

enum { HEAPS = 8, HOPS = 4096, NO_BLOCK = 0xff };
// Words from the frame pointer of an interpreted frame (frame_x86.hpp, the same in 11 to 28). The first is in the
// JVM's tables; the others follow it.
enum { SENDER_SP = -1, METHOD = -3, POSITION = -8 };

// A heap of code. Its space grows at the top alone.
struct code {
    uint64_t low, map;           // first byte; first byte of the map of segments
    const char *high, *map_high; // where the JVM keeps their ends
    unsigned shift;              // of a segment's size
};

// Constant while something is recorded.
static struct code codes[HEAPS];
static int ncodes;
static uint64_t interpreter, interpreter_end, from_entry, block_bytes, blob_bytes, nmethod_bytes;
static int64_t anchor, anchor_sp, anchor_pc, anchor_fp, stack_base, stack_bytes, wrapper_anchor, wrapper;
static int64_t header_bytes, frame_words, stub_offset, compile_id;

static bool find_code(void) {
    char *array, *data, *heap;
    uint32_t n;
    const int64_t memory = vm_offset(SLOT_CODE_MEMORY), map = vm_offset(SLOT_CODE_MAP);
    const int64_t low = vm_offset(SLOT_VIRTUAL_LOW), high = vm_offset(SLOT_VIRTUAL_HIGH);
    const int64_t length = vm_offset(SLOT_ARRAY_LENGTH), at = vm_offset(SLOT_ARRAY_DATA);
    const int64_t shift = vm_offset(SLOT_CODE_SHIFT);
    ncodes = 0;
    if (memory < 0 || map < 0 || low < 0 || high < 0 || length < 0 || at < 0 || shift < 0) return false;
    if (!vm_peek_pointer(&array, vm_address(SLOT_CODE_HEAPS)) || !vm_peek(&n, (uint64_t)array + (uint64_t)length, 4) ||
        !n || n > HEAPS || !vm_peek_pointer(&data, (uint64_t)array + (uint64_t)at))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        struct code *c = &codes[i];
        uint64_t end, map_end;
        uint32_t s;
        if (!vm_peek_pointer(&heap, (uint64_t)data + i * sizeof heap)) return false;
        c->high = heap + memory + high, c->map_high = heap + map + high;
        if (!vm_peek(&c->low, (uint64_t)(heap + memory + low), 8) || !vm_peek(&end, (uint64_t)c->high, 8) ||
            !vm_peek(&c->map, (uint64_t)(heap + map + low), 8) || !vm_peek(&map_end, (uint64_t)c->map_high, 8) ||
            !vm_peek(&s, (uint64_t)(heap + shift), 4))
            return false;
        if (!c->low || c->low > end || !c->map || c->map > map_end || s < 4 || s > 16) return false;
        c->shift = s;
    }
    ncodes = (int)n;
    return true;
}

static bool find_interpreter(void) {
    char *queue;
    const int64_t buffer = vm_offset(SLOT_QUEUE_BUFFER), limit = vm_offset(SLOT_QUEUE_LIMIT);
    uint32_t n;
    if (buffer < 0 || limit < 0 || !vm_peek_pointer(&queue, vm_address(SLOT_INTERPRETER)) ||
        !vm_peek(&interpreter, (uint64_t)(queue + buffer), 8) || !vm_peek(&n, (uint64_t)(queue + limit), 4))
        return false;
    interpreter_end = interpreter + n;
    return interpreter && n && vm_peek(&from_entry, vm_address(SLOT_CALL_STUB_RETURN), 8) && from_entry;
}

bool frames_init(void) {
    anchor = vm_offset(SLOT_THREAD_ANCHOR), anchor_sp = vm_offset(SLOT_ANCHOR_SP);
    anchor_pc = vm_offset(SLOT_ANCHOR_PC), anchor_fp = vm_offset(SLOT_ANCHOR_FP);
    stack_base = vm_offset(SLOT_STACK_BASE), stack_bytes = vm_offset(SLOT_STACK_BYTES);
    wrapper_anchor = vm_offset(SLOT_WRAPPER_ANCHOR), wrapper = vm_value(VALUE_ENTRY_WRAPPER);
    header_bytes = vm_offset(SLOT_BLOB_HEADER), frame_words = vm_offset(SLOT_BLOB_FRAME);
    stub_offset = vm_offset(SLOT_NMETHOD_STUBS), compile_id = vm_offset(SLOT_NMETHOD_ID);
    block_bytes = vm_size_of("HeapBlock"), blob_bytes = vm_size_of("CodeBlob"), nmethod_bytes = vm_size_of("nmethod");
    const int64_t all[] = {anchor,         anchor_sp,    anchor_pc,   anchor_fp,   stack_base, stack_bytes,
                           wrapper_anchor, header_bytes, frame_words, stub_offset, compile_id};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] < 0) return false;
    if (!vm_address(SLOT_CODE_HEAPS) || !vm_address(SLOT_INTERPRETER) || !vm_address(SLOT_CALL_STUB_RETURN))
        return false;
    return block_bytes >= 8 && block_bytes <= 64 && blob_bytes >= 32 && nmethod_bytes > blob_bytes &&
           nmethod_bytes < 0x10000 && wrapper < 0 && vm_value(VALUE_FRAME_SENDER_SP) == SENDER_SP && find_code() &&
           find_interpreter();
}

// The code that pc is in; 0: none.
static uint64_t blob_of(uint64_t pc) {
    for (int i = 0; i < ncodes; i++) {
        const struct code *c = &codes[i];
        if (pc < c->low || pc >= rd64(c->high)) continue;
        const uint8_t *map = (const uint8_t *)(uintptr_t)c->map;
        uint64_t s = (pc - c->low) >> c->shift;
        if (s >= rd64(c->map_high) - c->map) return 0;
        for (int hop = 0; hop < HOPS; hop++) { // each says how many segments before it the block may begin
            const uint8_t back = __atomic_load_n(&map[s], __ATOMIC_RELAXED);
            if (back == NO_BLOCK || back > s) return 0;
            if (!back) return c->low + (s << c->shift) + block_bytes;
            s -= back;
        }
        return 0;
    }
    return 0;
}

struct walk {
    struct frames_key *k;
    struct frames_list *list;
    uint64_t sp, fp, pc, low, base; // all that is read of the stack lies from low on and below base
};

static void mix(struct frames_key *k, uint64_t x) {
    k->a = (k->a ^ x) * 0xbf58476d1ce4e5b9ull, k->a ^= k->a >> 29;
    k->b = (k->b + x) * 0xc2b2ae3d27d4eb4full, k->b ^= k->b >> 31;
}

static bool on_stack(const struct walk *w, uint64_t addr) {
    return addr >= w->low && addr <= w->base - 8 && addr % 8 == 0;
}

static uint64_t word(uint64_t base, int64_t words) { return rd64((void *)(uintptr_t)(base + (uint64_t)(words * 8))); }

// The next frame begins at sp, which is further up.
static bool caller(struct walk *w, uint64_t sp, uint64_t fp, uint64_t pc) {
    if (sp <= w->sp || sp > w->base) return false;
    w->sp = sp, w->fp = fp, w->pc = pc;
    return true;
}

static void list(struct walk *w, uint64_t at, uint64_t is, uint32_t id) {
    const int n = w->list->n++;
    if (n < FRAMES_LISTED) w->list->one[n] = (struct frames_one){at, is, id};
}

static bool interpreted(struct walk *w) {
    if (!on_stack(w, w->fp + 8 * (int64_t)POSITION) || !on_stack(w, w->fp + 8) || w->fp < w->sp) return false;
    const uint64_t method = word(w->fp, METHOD), position = word(w->fp, POSITION);
    mix(w->k, method);
    mix(w->k, position);
    w->k->interpreted = true;
    list(w, method, position, 0);
    return caller(w, word(w->fp, SENDER_SP), word(w->fp, 0), word(w->fp, 1));
}

static bool compiled(struct walk *w) {
    const uint64_t blob = blob_of(w->pc);
    if (!blob || w->pc - blob < blob_bytes) return false;
    const char *b = (const char *)(uintptr_t)blob;
    const uint64_t words = rd32(b + frame_words);
    mix(w->k, w->pc);
    // 4 bytes on older JDKs, 2 on newer ones; no header is longer than 64 KiB
    if ((rd32(b + header_bytes) & 0xffff) == nmethod_bytes) {
        // What returns to the stubs behind the code is not where it was called from: it is going to be deoptimised.
        if (w->pc - blob < nmethod_bytes || w->pc - blob >= rd32(b + stub_offset)) return false;
        const uint32_t id = rd32(b + compile_id);
        if (!id) return false;
        mix(w->k, id);
        list(w, w->pc, blob, id);
    }
    const uint64_t sp = w->sp + 8 * words;
    if (words < 2 || words > 0x10000 || !on_stack(w, sp - 16) || !on_stack(w, sp - 8)) return false;
    return caller(w, sp, word(sp, -2), word(sp, -1));
}

// From an anchor: where Java was left last. 1: a frame, 0: there is none, -1: not understood.
static int anchored(struct walk *w, const char *at) {
    const uint64_t sp = rd64(at + anchor_sp), fp = rd64(at + anchor_fp);
    uint64_t pc = rd64(at + anchor_pc);
    if (!sp) return 0;
    if (!on_stack(w, sp - 8) || !on_stack(w, sp)) return -1;
    if (!pc) pc = word(sp, -1);
    return caller(w, sp, fp, pc) ? 1 : -1;
}

// The frame by which the JVM has called Java.
static int entry(struct walk *w) {
    const uint64_t at = w->fp + 8 * (uint64_t)wrapper;
    if (!on_stack(w, at)) return -1;
    const uint64_t held = word(at, 0);
    if (!on_stack(w, held) || !on_stack(w, held + (uint64_t)wrapper_anchor + (uint64_t)anchor_fp) ||
        !on_stack(w, held + (uint64_t)wrapper_anchor + (uint64_t)anchor_pc))
        return -1;
    return anchored(w, (const char *)(uintptr_t)held + wrapper_anchor);
}

bool frames_key(struct frames_key *k, struct frames_list *frames, int most) {
    const char *thread = vm_this_thread();
    if (!ncodes || !thread) return false;
    const uint64_t here = (uint64_t)__builtin_frame_address(0), base = rd64(thread + stack_base);
    if (base % 8 || base <= here || base - here > rd64(thread + stack_bytes)) return false; // on another stack
    *k = (struct frames_key){0x9e3779b97f4a7c15ull, 0xc2b2ae3d27d4eb4full, false};
    frames->n = 0;
    struct walk w = {.k = k, .list = frames, .low = here, .base = base, .sp = here};
    int more = anchored(&w, thread + anchor);
    if (more <= 0) return false;
    for (int n = 0; more > 0 && frames->n < most; n++) {
        if (n > 4 * most + 64) return false;
        if (w.pc == from_entry)
            more = entry(&w);
        else if (w.pc >= interpreter && w.pc < interpreter_end)
            more = interpreted(&w) ? 1 : -1;
        else
            more = compiled(&w) ? 1 : -1;
    }
    return more >= 0;
}

#else

bool frames_init(void) { return false; }
bool frames_key(struct frames_key *k, struct frames_list *frames, int most) {
    (void)k, (void)frames, (void)most;
    return false;
}

#endif
