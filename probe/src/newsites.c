//go:build ignore

// newsites.c: newsites.h.
//
// A round visits each class that pauses have found, and looks at its methods that may still say something new. When all
// of them were read, the round is written to the recording with the epoch that it began after: what was born up to that
// epoch was made at a place that is written before. A class that is unloaded before it was read to the end leaves a
// hole, which is written with the round.
#include "newsites.h"

#include <string.h>

#include "bytecode.h"
#include "classtable.h"
#include "deflog.h"
#include "encode.h"
#include "epoch.h"
#include "heapcam_abi.h"
#include "log.h"
#include "metadata.h"
#include "options.h"
#include "os.h"
#include "recording.h"
#include "sites.h"
#include "vmstructs.h"

enum {
    METHODS = 1 << 22,      // of all classes that ever were: a method's place is its number
    MOST = 4,               // sites of a class that are written one by one
    FOUND = 1024,           // in one part of a class
    SLICE = 200000,         // ns of CPU in one turn; what is begun then takes less than 500000
    READS = 8,              // copies between two looks at the clock, and parts of classes
    VISITS = 4,
    // ns of CPU: a thousandth of the time and CREDIT
    CREDIT = 30000000,
    SHARE = 1000,
    SWEEP = 512,     // classes at a time
    TEXT = 1 << 16,  // of the lines of a definition
    GAPS = 2048,     // places without a class between two looks at the clock
    DEFINED = 32768, // methods: the rest of the table is for stacks of samples
};
// A JVM that runs for a few seconds pays nothing, and later most of its methods have run.
static const uint64_t first_ns = 3000000000ull;
static const uint64_t round_ns = 2000000000ull; // a round begins so long after the one before at the earliest

static PER_RECORDING struct class {
    uint64_t word, methods; // word: 0: none; methods: the JVM's array, another one after a redefinition
    uint32_t type, first, count;
    bool visited, pending; // pending: something may still be new
} *classes; // by TSLOT, so in the order in which they were loaded
static PER_RECORDING uint32_t nclasses, places, nmethods; // places: of classes, that may be taken
static PER_RECORDING uint64_t *listed, *done, *makes; // bits by type; by number of a method
static PER_RECORDING uint32_t *ids;           // by number of a method; 0: it is not defined
// What was written of a type, by TSLOT.
static PER_RECORDING struct made {
    uint32_t id, n;
    uint32_t method[MOST];
    uint16_t bci[MOST];
} *made;

static PER_RECORDING bool on;
static PER_RECORDING enum { IDLE, WARMING, SWEEPING, VISITING } doing;
static PER_RECORDING uint64_t begun, spent, next_round, since, last_since, blind;
static PER_RECORDING uint32_t swept, visiting, method_at, ahead;
static PER_RECORDING bool anew;  // the class that is visited is read for the second time
static PER_RECORDING bool whole; // nothing of this round was left out
static PER_RECORDING uint64_t rounds, sites, odd, bodies, most_slice;

static bool bit(const uint64_t *b, uint32_t i) { return b[i / 64] >> i % 64 & 1; }
static void set_bit(uint64_t *b, uint32_t i) { b[i / 64] |= 1ull << i % 64; }

void newsites_init(void) {
    on = false;
    if (!opt.newsites) return;
    on = metadata_init();
    begun = now_ns();
}

static void stop(const char *why) {
    on = false;
    log_line("proven sites: no more are found: %s", why);
}

static bool append(const struct enc *e) {
    if (!e->over && deflog_append(&new_log, e->base, (size_t)(e->p - e->base))) return true;
    stop("the table is full");
    return false;
}

// ---- one part of a class -------------------------------------------------------------------------
struct found {
    uint32_t type, flags, i; // i: the method's place in the part
    uint16_t bci;
};
// Sites of the part, and what the methods that have one are made of.
static PER_RECORDING struct part {
    struct found found[FOUND];
    uint32_t nfound;
    bool skip[META_METHODS], finished[META_METHODS], makes[META_METHODS];
    bool pending, odd;
    uint8_t text[2 * TEXT], lines[TEXT]; // text: has room for all lines, and names of at most 4 * 2,048 bytes
} *part;

static bool prepare(void) {
    if (part) return true;
    classes = memory_sparse(MAX_TYPES * sizeof *classes);
    listed = memory_sparse(MAX_TYPE_IDS / 8);
    done = memory_sparse(METHODS / 8);
    makes = memory_sparse(METHODS / 8);
    ids = memory_sparse(METHODS * sizeof *ids);
    made = memory_sparse(MAX_TYPES * sizeof *made);
    part = memory_sparse(sizeof *part);
    return classes && listed && done && makes && ids && made && part;
}

// Whether all that was read since gc was is of this class.
static bool still(const struct class *c, uint64_t gc) {
    atomic_thread_fence(memory_order_acquire);
    const struct centry *e = class_lookup(c->word);
    return atomic_load_explicit(&gc_counter, memory_order_relaxed) == gc && e && e->type == c->type;
}

// Of one `new`: whether all is known of it.
static bool look_at_new(const struct metaclass *m, uint32_t i, size_t bci, uint32_t index) {
    uint64_t klass;
    struct found *f = &part->found[part->nfound];
    if (!metadata_resolved(m, index, &klass)) return part->odd = true, false;
    if (!klass) return false; // it was never executed
    const struct centry *e = class_lookup(word_of((char *)(uintptr_t)klass));
    const uint32_t type = e ? e->type & TYPE_MASK : 0;
    // Loaded since the round began, so none is older than that, and copies may be older than the class.
    if (!e || e->lh <= 0 || !bit(listed, type)) return false;
    struct made *d = &made[TSLOT(type)];
    if (d->id == type && d->n > MOST) return true;
    if (part->nfound == FOUND) return part->odd = true, false;
    *f = (struct found){.type = type, .i = i, .bci = (uint16_t)bci};
    if (!metadata_flags(klass, &f->flags)) return part->odd = true, false;
    part->nfound++;
    return true;
}

// Most methods make nothing: later rounds look at the bodies of all, to come back to those alone that make something.
static enum meta_need need_of(uint32_t number) {
    if (bit(done, number)) return META_NOTHING;
    return rounds && !bit(makes, number) ? META_BODY : META_IF_EXECUTED;
}

static void look_at(const struct metaclass *m, uint32_t i, uint32_t number) {
    struct metabody b;
    const bool always = need_of(number) == META_BODY;
    if (!metadata_body(m, i, always, &b)) {
        part->odd = true;
        return;
    }
    if (!b.executed && !always) {
        part->pending = true;
        return;
    }
    bodies++;
    size_t bci = 0, at;
    uint32_t index;
    bool finished = true;
    int r;
    while ((r = bytecode_new(b.code, b.code_bytes, &bci, &at, &index)) > 0)
        finished = b.executed && look_at_new(m, i, at, index) && finished;
    if (r < 0) part->odd = true, finished = false;
    part->makes[i] = !finished;
    part->finished[i] = finished;
    part->pending |= !finished;
}

// As sites.c defines a method of a stack, so that both have one id. 0: there is no room for one more.
static uint32_t method_of(const struct metaclass *m, const struct metabody *b) {
    struct enc l = {.p = part->lines, .base = part->lines, .end = part->lines + TEXT},
               e = {.p = part->text, .base = part->text, .end = part->text + sizeof part->text};
    struct bytecode_lines row = metadata_lines(b);
    int64_t bci = 0, line = 0;
    while (bytecode_next_line(&row)) {
        if (row.bci < bci) continue; // the table may be out of order: what ascends is kept
        put_u(&l, (uint64_t)(row.bci - bci));
        put_s(&l, row.line - line);
        bci = row.bci, line = row.line;
    }
    uint8_t *const body = e.p = e.base + SITES_HEAD;
    metadata_put_signature(&e, m->name);
    metadata_put_entry(m, &e, b->name);
    metadata_put_entry(m, &e, b->sig);
    metadata_put_file(m, &e);
    put_u(&e, 0);
    put_str(&e, (char *)l.base, l.over ? 0 : (size_t)(l.p - l.base));
    return e.over ? 0 : sites_same_method(body, &e);
}

static bool is_written(const struct made *d, uint32_t type, uint32_t method, uint16_t bci) {
    for (uint32_t k = 0; d->id == type && k < d->n && k < MOST; k++)
        if (d->method[k] == method && d->bci[k] == bci) return true;
    return d->id == type && d->n > MOST;
}

// Writes a site that is new. false: the class may be another one by now, or there is no room.
static bool put_site(const struct class *c, const struct metaclass *m, const struct found *f, uint64_t gc) {
    uint8_t buf[64];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    uint32_t *const id = &ids[c->first + method_at + f->i];
    struct made *d = &made[TSLOT(f->type)];
    if (*id && is_written(d, f->type, *id, f->bci)) return true;
    const bool many = d->id == f->type && d->n == MOST;
    if (!many && !*id) {
        struct metabody b;
        if (!metadata_body(m, f->i, false, &b) || !b.executed) return false;
        const uint32_t new = sites_methods() < DEFINED ? method_of(m, &b) : 0;
        if (!still(c, gc)) return false; // it may be another's
        if (!new) return stop("too many methods are defined"), false;
        *id = new;
        if (is_written(d, f->type, new, f->bci)) return true; // by a class that says the same
    }
    put8(&e, HC_EV_CANDIDATE);
    put_u(&e, f->type);
    put_u(&e, many ? 0 : *id);
    put_u(&e, many ? 0 : f->bci);
    put_u(&e, f->flags);
    if (!still(c, gc) || !append(&e)) return false;
    if (d->id != f->type) *d = (struct made){.id = f->type};
    if (!many) d->method[d->n] = *id, d->bci[d->n] = f->bci;
    d->n++;
    sites++;
    return true;
}

// What was not understood may have come from copies that are older than what is in their place now: once more.
static bool from_older(uint64_t gc) {
    if (anew) return false;
    metadata_begin(gc);
    return anew = true;
}

// One part of a class, from method_at on. false: to be tried again.
static bool visit_part(struct class *c, const struct metaclass *m, uint32_t n, uint64_t gc) {
    part->nfound = 0, part->pending = part->odd = false;
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        part->skip[i] = bit(done, c->first + method_at + i), part->finished[i] = part->makes[i] = false;
        any |= !part->skip[i];
    }
    if (any && !metadata_methods(m, method_at, n)) part->odd = part->pending = true, any = false;
    for (uint32_t i = 0; any && i < n; i++)
        if (!part->skip[i]) look_at(m, i, c->first + method_at + i);
    if (part->odd && from_older(gc)) return false;
    for (uint32_t i = 0; i < part->nfound; i++)
        if (!put_site(c, m, &part->found[i], gc)) return false;
    if (!still(c, gc)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (part->finished[i])
            set_bit(done, c->first + method_at + i);
        else if (part->makes[i])
            set_bit(makes, c->first + method_at + i);
    if (part->odd) odd++, whole = false;
    anew = false;
    c->pending |= part->pending || part->odd;
    return true;
}

// ---- rounds --------------------------------------------------------------------------------------
// It died. What it has made since it was read last is not known.
static void leave_class(struct class *c) {
    if (!c->visited || c->pending) blind = epoch_number();
    c->word = 0;
    nclasses--;
}

static PER_RECORDING uint32_t next[META_AHEAD]; // classes that are read ahead

static enum meta_need is_needed(uint32_t class, uint32_t method) {
    const struct class *c = &classes[next[class]];
    return method < c->count ? need_of(c->first + method) : META_IF_EXECUTED;
}

// One step. Whether the class that is visited next has been read.
static bool read_ahead(void) {
    uint64_t klass[META_AHEAD];
    uint32_t n = 0, end = visiting;
    for (; n < META_AHEAD && end < places && end - visiting < GAPS; end++) {
        const struct class *c = &classes[end];
        if (c->word && (!c->visited || c->pending)) next[n] = end, klass[n++] = (uint64_t)(uintptr_t)klass_of(c->word);
    }
    const uint32_t seen = n ? metadata_ahead(klass, n, is_needed) : 0;
    if (n && !seen) return false;
    ahead = seen < n ? next[seen] : end;
    return true;
}

// A part of the class that is visited. false: nothing more can be read in this turn.
static bool visit(void) {
    struct class *c = &classes[visiting];
    const uint64_t gc = atomic_load_explicit(&gc_counter, memory_order_acquire);
    if (gc & 1) return false; // classes may be unloaded just now
    if (!metadata_keep(gc)) ahead = 0;
    if (visiting >= ahead && !read_ahead()) return true;
    const struct centry *e = class_lookup(c->word);
    if (!e || e->type != c->type) {
        leave_class(c);
        return visiting++, method_at = 0, anew = false, true;
    }
    struct metaclass m;
    if (c->visited && !c->pending) return visiting++, method_at = 0, true;
    if (!metadata_class(&m, (uint64_t)(uintptr_t)klass_of(c->word))) {
        if (!still(c, gc) || from_older(gc)) return true; // again
        odd++, whole = false;
        return visiting++, method_at = 0, anew = false, true;
    }
    if (c->methods != m.methods || c->count != m.count) { // the first time, or it was redefined
        if (m.count > METHODS - nmethods) return stop("too many methods"), false;
        c->first = nmethods, c->count = m.count, c->methods = m.methods, method_at = 0;
        nmethods += m.count;
    }
    if (!method_at) c->pending = false;
    const uint32_t left = m.count - method_at, n = left < META_METHODS ? left : META_METHODS;
    if (!visit_part(c, &m, n, gc)) return on && still(c, gc); // a pause has begun: from here on again
    method_at += n;
    if (method_at >= m.count) c->visited = true, visiting++, method_at = 0;
    return true;
}

// Reading the clock costs as much as reading a class.
static bool visit_some(void) {
    const uint64_t reads = metadata_reads();
    for (int i = 0; i < VISITS && metadata_reads() - reads < READS; i++) {
        for (int k = 0; visiting < places && !classes[visiting].word; visiting++)
            if (++k == GAPS) return true;
        if (visiting >= places) return true;
        if (!visit()) return false;
    }
    return true;
}

// Classes that pauses have found since the last round. One that a pause adds meanwhile may be missed: it is newer.
static void sweep(void) {
    const uint64_t gc = atomic_load_explicit(&gc_counter, memory_order_acquire); // what a pause wrote is there
    const uint32_t end = swept + SWEEP;
    for (; swept < end && swept < nwords; swept++) {
        const struct centry *e = &ctab[word_places[swept]];
        const uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)&e->word, memory_order_acquire);
        const uint32_t type = e->type;
        if (!word || type & (uint32_t)TF_DEAD || e->lh <= 0 || bit(listed, type & TYPE_MASK)) continue;
        struct class *c = &classes[TSLOT(type)];
        if (c->word) continue; // of one that has gone, which is not noticed yet
        set_bit(listed, type & TYPE_MASK);
        *c = (struct class){.word = word, .type = type};
        if (TSLOT(type) >= places) places = TSLOT(type) + 1;
        nclasses++;
    }
    if (swept < nwords) return;
    doing = VISITING, visiting = method_at = ahead = 0;
    metadata_begin(gc);
}

static void end_round(uint64_t now) {
    doing = IDLE;
    next_round = now + round_ns;
    if (!whole) return;
    uint8_t buf[32];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    put8(&e, HC_EV_SCANNED);
    put_u(&e, since);
    put_u(&e, blind);
    (void)append(&e);
    last_since = since;
    rounds++;
}

static void begin_round(uint64_t now) {
    const uint64_t epoch = epoch_number();
    if (now < begun + first_ns || now < next_round || !epoch || epoch == last_since) return;
    doing = WARMING, swept = 0, since = epoch, whole = true;
}

static bool may_spend(uint64_t now) { return on && (opt.newsites > 1 || spent <= CREDIT + (now - begun) / SHARE); }

bool newsites_busy(void) { return doing != IDLE && may_spend(now_ns()); }

void newsites_turn(uint64_t now) {
    if (!may_spend(now)) return;
    if (doing == IDLE) begin_round(now);
    if (doing != IDLE && !prepare()) return stop("no memory");
    if (doing == IDLE) return;
    const uint64_t from = cpu_ns();
    uint64_t took = 0;
    bool more = true;
    while (on && more && took < SLICE && doing != IDLE) {
        if (doing == WARMING)
            doing = metadata_warm() ? SWEEPING : WARMING;
        else if (doing == SWEEPING)
            sweep();
        else if (visiting < places)
            more = visit_some();
        else
            end_round(now);
        took = cpu_ns() - from;
    }
    spent += took;
    if (took > most_slice) most_slice = took;
}

void newsites_report_end(void) {
    if (opt.newsites && opt.oracle)
        log_line("proven sites: %llu rounds, %u classes, %llu bodies, %llu sites, %llu not understood; CPU %llu us, "
                 "longest slice %llu us",
                 (unsigned long long)rounds, (unsigned)nclasses, (unsigned long long)bodies, (unsigned long long)sites,
                 (unsigned long long)odd, (unsigned long long)spent / 1000, (unsigned long long)most_slice / 1000);
}
