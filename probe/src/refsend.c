//go:build ignore

// refsend.c: refsend.h.
#include "refsend.h"

#include <stdlib.h>
#include <string.h>

#include "deflog.h"
#include "heapcam_abi.h"
#include "meta.h"
#include "os.h"
#include "recording.h"
#include "refhead.h"
#include "refnames.h"
#include "ring.h"
#include "vmstructs.h"

enum { BLOCK = 320 << 10, PARTS_A_TURN = 32, RECORDS = 1024 };
#define GIVE_UP_NS 30000000000ull // nobody has made room for so long

static PER_RECORDING struct {
    struct refs *r;
    void *map;
    struct refhead head;
    uint64_t no, n; // of the listing; of the part that is sent next
    uint32_t piece, part, raw, plain; // plain: pieces before those of samples
    uint64_t slot; // of the part, if a block before has had slots of it; 0: none
    uint64_t progress;
    bool busy, sent, last;
} out;

// ---- events before the objects ------------------------------------------------------------------
static void put_about(struct refhead *h, const struct refs *r, const struct refsend_about *a) {
    struct enc e = refhead_begin(h, 4096);
    put8(&e, HC_EV_REFERENCES);
    uint64_t v[] = {a->ticket, a->epoch, a->begin - probe_epoch_ns, a->all,
                    a->walk,   r ? r->objects : 0, r ? r->slots - 2ull * r->raws : 0, r ? r->roots : 0};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) put_u(&e, v[i]);
    put_str(&e, a->missing, strlen(a->missing));
    put_str(&e, a->refused, strlen(a->refused));
    refhead_end(h, &e);
}

// Pieces of their own, since their blocks have another version.
static void put_samples(struct refhead *h, const struct refs *r) {
    for (uint32_t i = 0; i < r->samples;) {
        struct enc e = refhead_begin(h, RECORDS * 20 + 16);
        uint8_t *blob = blob_begin(&e, HC_EV_REFSAMPLES);
        int64_t id = 0, word = 0;
        for (uint32_t n = 0; n < RECORDS && i < r->samples; n++, i++) {
            put_s(&e, (int64_t)r->sample[i].id - id);
            put_s(&e, r->sample[i].word - word);
            id = (int64_t)r->sample[i].id, word = r->sample[i].word;
        }
        blob_end(&e, blob);
        refhead_end(h, &e);
    }
    refhead_close(h);
}

static void put_extra(struct refhead *h, const struct refs *r) {
    for (uint32_t i = 0; i < r->extras;) {
        struct enc e = refhead_begin(h, RECORDS * 20 + 16);
        uint8_t *blob = blob_begin(&e, HC_EV_REFEXTRA);
        int64_t from = 0, to = 0;
        for (uint32_t n = 0; n < RECORDS && i < r->extras; n++, i++) {
            put_s(&e, r->extra[i].from - from);
            put_s(&e, r->extra[i].to - to);
            put_u(&e, r->extra[i].kind);
            from = r->extra[i].from, to = r->extra[i].to;
        }
        blob_end(&e, blob);
        refhead_end(h, &e);
    }
}

// ---- objects ------------------------------------------------------------------------------------
static void put_tokens(struct enc *e) {
    const struct refs *r = out.r;
    const struct refpart *p = &r->part[out.part];
    const uint64_t end = out.part + 1 < r->parts ? p[1].token : r->tokens;
    uint8_t *blob = blob_begin(e, HC_EV_REFLIST);
    put_s(e, (int64_t)p->word);
    if (room(e, end - p->token)) {
        memcpy(e->p, r->token + p->token, end - p->token);
        e->p += end - p->token;
    }
    put_u(e, HC_LIST_END);
    blob_end(e, blob);
}

static void put_slots(struct enc *e, uint64_t from, uint64_t to) {
    const struct refs *r = out.r;
    uint8_t *blob = blob_begin(e, HC_EV_REFSLOTS);
    if (room(e, 4 * (to - from))) {
        for (uint64_t i = from; i < to; i++, e->p += 4) {
            while (out.raw < r->raws && i > r->raw[out.raw] + 1) out.raw++;
            const bool number = out.raw < r->raws && i >= r->raw[out.raw];
            const uint32_t v = vm.compressed_oops && !number ? refwalk_word(r->slot[i]) : r->slot[i];
            memcpy(e->p, &v, 4);
        }
    }
    blob_end(e, blob);
}

static void put_objects(struct enc *e) {
    const struct refs *r = out.r;
    const struct refpart *p = &r->part[out.part];
    const uint64_t end = out.part + 1 < r->parts ? p[1].slot : r->slots, from = out.slot ? out.slot : p->slot;
    if (!out.slot) put_tokens(e);
    const uint64_t to = end - from > REF_PART_SLOTS ? from + REF_PART_SLOTS : end;
    if (to > from) put_slots(e, from, to);
    out.slot = to;
    if (to < end) return;
    out.part++, out.slot = 0;
}

// Whether nothing is left behind the block in hand.
static bool all_sent(void) { return out.piece == out.head.pieces && (!out.r || out.part == out.r->parts); }

static void fill(struct enc *e) {
    const uint64_t size = *(uint64_t *)(ring + HC_RING_OFF_CAPACITY), left = (uint64_t)(e->end - e->p);
    out.sent = false;
    if (left < BLOCK + size / 4) return; // the rest of the ring is for collections
    put_defs(e, true);
    uint8_t *block = block_begin(e, HC_KIND_REFS);
    const bool samples = out.r && out.piece >= out.plain && out.piece < out.head.pieces;
    if (!e->over) block[HC_BLOCK_OFF_VERSION] = samples ? HC_FORMAT_REFSAMPLES : HC_FORMAT_REFS;
    put8(e, HC_EV_REFPART);
    put_u(e, out.no);
    put_u(e, out.n + 1);
    uint8_t *flags = e->p;
    put_u(e, out.n ? 0 : HC_RP_FIRST);
    if (out.piece < out.head.pieces) {
        const size_t from = out.piece ? out.head.end[out.piece - 1] : 0, n = out.head.end[out.piece] - from;
        if (room(e, n)) {
            memcpy(e->p, out.head.b + from, n);
            e->p += n;
        }
        out.piece++;
    } else {
        put_objects(e);
    }
    out.last = all_sent();
    if (!e->over && out.last) *flags |= HC_RP_LAST;
    block_end(e, block);
    out.sent = !e->over;
}

// ---- the whole ----------------------------------------------------------------------------------
bool refsend_busy(void) { return out.busy; }

void refsend_end(void) {
    if (!out.busy) return;
    memory_give_back(out.map);
    free(out.r);
    refhead_free(&out.head);
    out.r = NULL, out.map = NULL;
    out.busy = false;
}

void refsend_begin(JNIEnv *jni, struct refs *r, void *map, const struct refsend_about *about) {
    const uint64_t no = out.no + 1;
    memset(&out, 0, sizeof out);
    out.r = r, out.map = map, out.no = no, out.busy = true;
    out.progress = now_ns();
    if (r) refwalk_know_words();
    put_about(&out.head, r, about);
    if (r) {
        refnames_put(jni, r, &out.head);
        put_extra(&out.head, r);
        refhead_close(&out.head);
        out.plain = out.head.pieces;
        put_samples(&out.head, r);
    }
    refhead_close(&out.head);
    if (out.head.failed) { // without names there is no listing; the request is answered all the same
        atomic_fetch_add(ring64(HC_RING_OFF_REFERENCES_TORN), 1);
        refsend_end();
    }
}

void refsend_turn(uint64_t now) {
    for (int i = 0; i < PARTS_A_TURN; i++) {
        const uint32_t piece = out.piece, part = out.part, raw = out.raw;
        const uint64_t slot = out.slot;
        if (!meta_commit(fill) || !out.sent) {
            out.piece = piece, out.part = part, out.slot = slot, out.raw = raw;
            break;
        }
        out.n++;
        out.progress = now;
        if (out.last) {
            refsend_end();
            return;
        }
    }
    if (now < out.progress + GIVE_UP_NS) return;
    atomic_fetch_add(ring64(HC_RING_OFF_REFERENCES_TORN), 1);
    refsend_end();
}
