//go:build ignore

// otelmessage.c: otelmessage.h.
#include "otelmessage.h"

#include <stdbool.h>
#include <string.h>

const char *const otel_keys[OTEL_KEYS] = {
    "service.name", "service.namespace", "service.version", "service.instance.id", "deployment.environment.name",
    "deployment.environment", "host.name", "container.id", "k8s.pod.name", "k8s.pod.uid", "k8s.namespace.name",
    "k8s.container.name", "k8s.node.name", "k8s.deployment.name", "k8s.cluster.name", "process.pid", "process.owner",
    "process.runtime.version", "systemd.unit",
};

// A message of Protocol Buffers, or what is left of it.
struct part {
    const uint8_t *p, *end;
};

static bool varint(struct part *m, uint64_t *v) {
    *v = 0;
    for (unsigned shift = 0; shift < 64 && m->p < m->end; shift += 7) {
        const uint8_t b = *m->p++;
        *v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

// The next field of a message; `of` has its bytes if it is text or a message itself, else NULL. False: there is none.
static bool next(struct part *m, uint64_t *field, struct part *of) {
    enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };
    uint64_t tag, n;
    *of = (struct part){NULL, NULL};
    if (!varint(m, &tag)) return false;
    *field = tag >> 3;
    switch (tag & 7) {
    case VARINT: return varint(m, &n);
    case FIXED64: n = 8; break;
    case FIXED32: n = 4; break;
    case BYTES:
        if (varint(m, &n)) break;
        return false;
    default: return false;
    }
    if (n > (uint64_t)(m->end - m->p)) return false;
    if ((tag & 7) == BYTES) *of = (struct part){m->p, m->p + n};
    m->p += n;
    return true;
}

static int key_of(struct part name) {
    const size_t n = (size_t)(name.end - name.p);
    for (int i = 0; name.p && i < OTEL_KEYS; i++)
        if (strlen(otel_keys[i]) == n && !memcmp(otel_keys[i], name.p, n)) return i;
    return -1;
}

// KeyValue: key = 1, value = 2; AnyValue: string_value = 1. The first value of a key counts.
static void attribute(struct part m, struct otel_value out[OTEL_KEYS]) {
    struct part p, value = {NULL, NULL};
    uint64_t field;
    int key = -1;
    while (next(&m, &field, &p)) {
        if (field == 1) key = key_of(p);
        if (field == 2) value = p;
    }
    if (key < 0 || !value.p || out[key].at) return;
    while (next(&value, &field, &p)) {
        if (field != 1 || !p.p || p.p == p.end) continue;
        const size_t n = (size_t)(p.end - p.p);
        out[key] = (struct otel_value){p.p, n < OTEL_VALUE ? (uint32_t)n : OTEL_VALUE};
    }
}

// ProcessContext: resource = 1; Resource: attributes = 1. The first version of the OTEP has no ProcessContext: there
// the message is the Resource. The two cannot be confused: no message of attributes begins with the letter of a name.
void otel_find(const uint8_t *message, size_t n, struct otel_value out[OTEL_KEYS]) {
    struct part all = {message, message + n}, outer, inner;
    uint64_t field;
    memset(out, 0, OTEL_KEYS * sizeof *out);
    while (next(&all, &field, &outer)) {
        if (field != 1 || !outer.p) continue;
        attribute(outer, out);
        while (next(&outer, &field, &inner))
            if (field == 1 && inner.p) attribute(inner, out);
    }
}
