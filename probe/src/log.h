// log.h: what the probe prints for people: single lines on stderr, and reasons of refusals.
#ifndef HEAPCAM_LOG_H
#define HEAPCAM_LOG_H

enum { HC_MAX_REASON = 512 }; // bytes of a text that says why, its NUL included

// One line on stderr, never more: it is the application's stderr. Any thread but the VM thread in a pause.
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
