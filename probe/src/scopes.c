//go:build ignore

// scopes.c: scopes.h.
//
// The compiler writes a sorted array of PcDesc, one for each address at which the JVM may look at a frame. It leads to
// the innermost scope, and each scope to the one that it is inlined into. A scope begins with three numbers: where the
// outer scope is (0: there is none), the place of its method in the array of metadata, and its bytecode position.
#include "scopes.h"

#include <string.h>

#include "guard.h"
#include "vmrows.h"
#include "vmstructs.h"

enum { MOST_BYTES = 1 << 26, MOST_BCI = 0xffff, PAGE = 4096 };

// Constant while something is recorded.
static int64_t method_body, body_code, nmethod_method, pc_offset, pc_scope;
static uint64_t body_bytes, pc_bytes;
static uint32_t excluded; // since JDK 20 no byte of a number is 0

static int64_t of(enum vm_slot s) { return vm_offset(s); }

bool scopes_init(void) {
    method_body = of(SLOT_METHOD_BODY), body_code = of(SLOT_BODY_CODE), nmethod_method = of(SLOT_NMETHOD_METHOD);
    pc_offset = of(SLOT_PC_OFFSET), pc_scope = of(SLOT_PC_SCOPE);
    body_bytes = vm_size_of("ConstMethod"), pc_bytes = vm_size_of("PcDesc");
    excluded = vm.major >= 20;
    const bool old = of(SLOT_CODE_BEGIN) >= 0 && of(SLOT_SCOPES_BEGIN) >= 0 && of(SLOT_SCOPES_PCS_END) >= 0 &&
                     of(SLOT_METADATA_OFFSET) >= 0;
    const bool young = of(SLOT_CODE_OFFSET) >= 0 && of(SLOT_SCOPES_DATA) >= 0 && of(SLOT_IMMUTABLE) >= 0 &&
                       of(SLOT_IMMUTABLE_BYTES) >= 0 && of(SLOT_MUTABLE) >= 0 && of(SLOT_MUTABLE_BYTES) >= 0 &&
                       of(SLOT_MUTABLE_RELOCATIONS) >= 0;
    return old != young && method_body >= 0 && body_code >= 0 && nmethod_method >= 0 && pc_offset >= 0 &&
           pc_scope >= 0 && of(SLOT_SCOPES_PCS) >= 0 && pc_bytes >= 8 && pc_bytes <= 64 && body_bytes >= 32 &&
           body_bytes <= 256;
}

// What one nmethod has.
struct parts {
    uint64_t code, pcs, pcs_end, scopes, scopes_end, metadata, metadata_end;
};

static uint64_t at64(uint64_t addr) { return rd64((const void *)(uintptr_t)addr); }
static uint32_t at32(uint64_t addr) { return rd32((const void *)(uintptr_t)addr); }
static uint64_t field64(uint64_t blob, enum vm_slot s) { return at64(blob + (uint64_t)of(s)); }
static uint64_t field32(uint64_t blob, enum vm_slot s) { return at32(blob + (uint64_t)of(s)); }

// Up to 21 all of it lies in the blob; later what never changes lies elsewhere, and the metadata in a third place.
static void find_parts(uint64_t blob, struct parts *p) {
    if (of(SLOT_CODE_BEGIN) >= 0) {
        p->code = field64(blob, SLOT_CODE_BEGIN);
        p->pcs = blob + field32(blob, SLOT_SCOPES_PCS), p->pcs_end = blob + field32(blob, SLOT_SCOPES_PCS_END);
        p->scopes = field64(blob, SLOT_SCOPES_BEGIN), p->scopes_end = p->pcs;
        p->metadata = blob + field32(blob, SLOT_METADATA_OFFSET), p->metadata_end = p->scopes;
        return;
    }
    const uint64_t still = field64(blob, SLOT_IMMUTABLE), mutable = field64(blob, SLOT_MUTABLE);
    p->code = blob + field32(blob, SLOT_CODE_OFFSET);
    p->pcs = still + field32(blob, SLOT_SCOPES_PCS);
    p->scopes = p->pcs_end = still + field32(blob, SLOT_SCOPES_DATA);
    p->scopes_end = still + field32(blob, SLOT_IMMUTABLE_BYTES);
    p->metadata = mutable + field32(blob, SLOT_MUTABLE_RELOCATIONS);
    p->metadata_end = mutable + field32(blob, SLOT_MUTABLE_BYTES);
}

// Whether a part is plausible and, if careful, there.
static bool part(uint64_t begin, uint64_t end, bool careful) {
    uint8_t b;
    if (begin > end || end - begin > MOST_BYTES || begin < PAGE) return false;
    for (uint64_t a = begin; careful && a < end; a = (a / PAGE + 1) * PAGE)
        if (!safe_read(&b, a, 1)) return false;
    return true;
}

// A number of the compressed streams (UNSIGNED5): 1 to 5 bytes, of which the last, or the fifth, ends it.
static bool number(uint64_t *at, uint64_t end, uint32_t *n) {
    uint32_t sum = 0;
    for (int i = 0; i < 5 && *at < end; i++) {
        const uint32_t b = *(const uint8_t *)(uintptr_t)(*at)++;
        if (b < excluded) return false;
        sum += (b - excluded) << 6 * i;
        if (b < 192 || i == 4) {
            *n = sum;
            return true;
        }
    }
    return false;
}

// Where the innermost scope at pc is; 0: not there.
static uint32_t scope_at(const struct parts *p, uint64_t pc) {
    const int64_t wanted = (int64_t)(pc - p->code);
    uint64_t low = 0, high = (p->pcs_end - p->pcs) / pc_bytes;
    while (low < high) {
        const uint64_t middle = (low + high) / 2, at = p->pcs + middle * pc_bytes;
        const int32_t offset = (int32_t)at32(at + (uint64_t)pc_offset);
        if (offset == wanted) return at32(at + (uint64_t)pc_scope);
        if (offset < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

int scopes_at(uint64_t blob, uint64_t pc, bool careful, struct scope *to, int most) {
    struct parts p;
    find_parts(blob, &p);
    if (p.pcs == p.pcs_end) { // code that calls a native method
        if (most < 1) return 0;
        *to = (struct scope){at64(blob + (uint64_t)nmethod_method), -1};
        return 1;
    }
    if (!part(p.pcs, p.pcs_end, careful) || !part(p.scopes, p.scopes_end, careful) ||
        !part(p.metadata, p.metadata_end, careful) || p.metadata % 8 || p.pcs % 4)
        return 0;
    int n = 0;
    for (uint32_t scope = scope_at(&p, pc), outer; scope; scope = outer) {
        uint32_t method, bci; // 0 is a position before the first bytecode, for which JVMTI says 0
        uint64_t at = p.scopes + scope;
        if (n == most || !number(&at, p.scopes_end, &outer) || !number(&at, p.scopes_end, &method) ||
            !number(&at, p.scopes_end, &bci) || bci > MOST_BCI || !method ||
            method > (p.metadata_end - p.metadata) / 8)
            return 0;
        to[n++] = (struct scope){at64(p.metadata + (method - 1ull) * 8), bci ? (int32_t)bci - 1 : 0};
    }
    return n;
}

struct bytecodes scopes_bytecodes(uint64_t method, bool careful) {
    const struct bytecodes none = {0, 0, 0, 0, 0};
    uint64_t body = 0;
    uint16_t u[4]; // the four lie behind each other: bytes, name, signature, number
    if (method < PAGE || method % 8) return none;
    if (careful)
        safe_read(&body, method + (uint64_t)method_body, sizeof body);
    else
        body = at64(method + (uint64_t)method_body);
    if (body < PAGE || body % 8) return none;
    if (careful && !safe_read(u, body + (uint64_t)body_code, sizeof u)) return none;
    if (!careful) memcpy(u, (const void *)(uintptr_t)(body + (uint64_t)body_code), sizeof u);
    return (struct bytecodes){body + body_bytes, u[0], u[1], u[2], u[3]};
}
