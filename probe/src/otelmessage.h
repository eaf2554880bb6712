// otelmessage.h: finds the named attributes in a message of OpenTelemetry's process context (OTEP 4719). It was written
// by whoever: nothing is read beyond its end, and the work is at most a few times its length. Any thread
#ifndef HEAPCAM_OTELMESSAGE_H
#define HEAPCAM_OTELMESSAGE_H

#include <stddef.h>
#include <stdint.h>

// The attributes that leave the process, as trace.ResourceKeys and the older name of one of them: a test compares.
// The order is by worth.
enum { OTEL_KEYS = 19, OTEL_VALUE = 512 };
extern const char *const otel_keys[OTEL_KEYS];

struct otel_value {
    const uint8_t *at; // in the message; NULL: it has none
    uint32_t n;        // bytes, at most OTEL_VALUE: a longer one is cut
};
void otel_find(const uint8_t *message, size_t n, struct otel_value out[OTEL_KEYS]);

#endif
