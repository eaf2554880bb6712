//go:build ignore

// reforacle.c: reforacle.h.
#include "reforacle.h"

#include <stdlib.h>
#include <string.h>

#include "classtable.h"
#include "deflog.h"
#include "heapcam_abi.h"
#include "log.h"
#include "marks.h"
#include "object.h"
#include "recording.h"
#include "tokens.h"
#include "vmstructs.h"

// References of the objects of a type: how many, and a sum over both addresses of each.
struct edges {
    uint64_t n, sum;
};
static PER_RECORDING struct edges *by_jvmti, *by_walk;
static PER_RECORDING uint64_t *reached; // one bit a word: JVMTI has come to it
static PER_RECORDING uint64_t odd, all_jvmti, all_walk, differ, unlisted, lost;

bool reforacle_begin(void) {
    if (!by_jvmti) by_jvmti = memory_sparse(MAX_TYPES * sizeof *by_jvmti);
    if (!by_walk) by_walk = memory_sparse(MAX_TYPES * sizeof *by_walk);
    memory_give_back(reached);
    reached = memory_sparse(vm.heap_bytes / 64 + 64);
    if (!by_jvmti || !by_walk || !reached) return false;
    memset(by_jvmti, 0, MAX_TYPES * sizeof *by_jvmti);
    memset(by_walk, 0, MAX_TYPES * sizeof *by_walk);
    odd = all_jvmti = all_walk = differ = unlisted = lost = 0;
    return true;
}

static bool in_heap(uint64_t a) { return a - (uint64_t)vm.heap_base < vm.heap_bytes && !(a & (vm.align - 1)); }
static bool was_reached(uint64_t w) { return reached[w >> 6] >> (w & 63) & 1; }
static void count(struct edges *e, uint64_t from, uint64_t to) {
    e->n++;
    e->sum += (from * 0x9e3779b97f4a7c15ull ^ to) * 0xbf58476d1ce4e5b9ull;
}

void reforacle_edge(jvmtiHeapReferenceKind k, const jlong *tag, const jlong *referrer_tag) {
    const uint64_t to = ((const uint64_t *)tag)[-2];
    if (!in_heap(to)) {
        odd++;
        return;
    }
    reached[WORD(to) >> 6] |= 1ull << (WORD(to) & 63);
    if (k != JVMTI_HEAP_REFERENCE_FIELD && k != JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT &&
        k != JVMTI_HEAP_REFERENCE_STATIC_FIELD)
        return;
    const uint64_t from = referrer_tag == tag ? to : ((const uint64_t *)referrer_tag)[-1];
    struct obj o;
    if (!in_heap(from) || !obj_at(from, rd64((void *)from), &o)) {
        odd++;
        return;
    }
    count(&by_jvmti[TSLOT(o.type)], WORD(from), WORD(to));
    all_jvmti++;
}

static uint64_t leb(const uint8_t **p) {
    uint64_t v = 0;
    for (int s = 0;; s += 7) {
        v |= (uint64_t)(**p & 127) << s;
        if (*(*p)++ < 128) return v;
    }
}

static uint32_t slots_of(const struct refs *r, uint32_t type, uint64_t len, const uint32_t *s, uint32_t *skip) {
    const struct refmap *m = &r->map[TSLOT(type)];
    const struct tinfo *ti = &tinfo[TSLOT(type)];
    *skip = 0;
    if (ti->lh < 0) return (uint32_t)ti->lh >> 30 == 2 && !(ti->flags & HC_TF_FILLER) ? (uint32_t)len : 0;
    for (uint32_t i = 0; i < r->types; i++) // few types are mirrors or chunks, and the test is small
        if (r->type[i].type == type && (r->type[i].kind == HC_RC_MIRROR || r->type[i].kind == HC_RC_CHUNK)) {
            *skip = 2 + m->slots; // JVMTI does not name the fields of mirrors
            return 2 + m->slots + s[1];
        }
    return m->slots;
}

static uint64_t words_of(uint32_t type, uint64_t len) {
    const struct tinfo *ti = &tinfo[TSLOT(type)];
    if (ti->lh < 0)
        return align_up(((uint32_t)ti->lh >> 16 & 0xff) + (len << ((uint32_t)ti->lh & 63))) / 8;
    return ti->flags & (HC_TF_VARIABLE | TI_CHUNK) ? len : align_up((uint32_t)ti->lh & ~1u) / 8;
}

static void walk_part(const struct refs *r, uint32_t part) {
    const struct refpart *x = &r->part[part];
    const uint8_t *p = r->token + x->token,
                  *end = r->token + (part + 1 < r->parts ? x[1].token : r->tokens);
    const uint32_t *s = r->slot + x->slot;
    uint64_t word = x->word;
    while (p < end) {
        const uint64_t tok = leb(&p);
        if (tok == HC_LIST_SKIP) {
            word += leb(&p);
            continue;
        }
        const uint32_t type = (uint32_t)(tok - HC_LIST_TYPE + 1);
        const struct tinfo *ti = &tinfo[TSLOT(type)];
        const uint64_t len = ti->lh < 0 || ti->flags & (HC_TF_VARIABLE | TI_CHUNK) ? leb(&p) : 0;
        uint32_t skip;
        const uint32_t n = slots_of(r, type, len, s, &skip);
        for (uint32_t i = skip; i < n && was_reached(word); i++) {
            const uint32_t to = vm.compressed_oops ? refwalk_word(s[i]) : s[i];
            if (!to) continue;
            if (!was_reached(to - 1)) unlisted++;
            count(&by_walk[TSLOT(type)], word, to - 1);
            all_walk++;
        }
        s += n;
        word += words_of(type, len);
    }
    if (s != r->slot + (part + 1 < r->parts ? x[1].slot : r->slots)) lost++;
}

void reforacle_compare(const struct refs *r) {
    refwalk_know_words();
    for (uint32_t i = 0; i < r->parts; i++) walk_part(r, i);
    const uint8_t *p = type_log.mem, *end = p + type_log.len;
    uint64_t f[6], len;
    const char *name;
    while (p < end && next_def(&p, f, &name, &len)) {
        if (f[0] != HC_EV_TYPE) continue;
        const struct edges *a = &by_jvmti[TSLOT(f[1])], *b = &by_walk[TSLOT(f[1])];
        if (tinfo[TSLOT(f[1])].id != f[1] || (a->n == b->n && a->sum == b->sum)) continue;
        differ++;
        log_line("references oracle: differs %.*s jvmti=%llu walk=%llu", (int)(len > 200 ? 200 : len), name,
                 (unsigned long long)a->n, (unsigned long long)b->n);
    }
    log_line("references oracle: jvmti=%llu walk=%llu differ=%llu odd=%llu unreached=%llu torn=%llu objects=%llu",
             (unsigned long long)all_jvmti, (unsigned long long)all_walk, (unsigned long long)differ,
             (unsigned long long)odd, (unsigned long long)unlisted, (unsigned long long)lost,
             (unsigned long long)r->objects);
}
