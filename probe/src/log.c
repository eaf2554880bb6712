//go:build ignore

// log.c: log.h.
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

#include "os.h"

void log_line(const char *fmt, ...) {
    char b[900];
    int n = snprintf(b, sizeof b, "heapcam: ");
    va_list ap;
    va_start(ap, fmt);
    n += vsnprintf(b + n, sizeof b - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof b - 2) n = (int)sizeof b - 2;
    b[n++] = '\n';
    os_stderr(b, (size_t)n);
}
