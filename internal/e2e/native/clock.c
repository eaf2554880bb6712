// Preloaded: a wall clock that jumps an hour forward or back at every 97th look at it.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned looks;

int clock_gettime(clockid_t id, struct timespec *ts) {
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    if (rc || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return rc;
    ts->tv_sec += (atomic_fetch_add(&looks, 1) / 97 % 3 - 1) * 3600L;
    return 0;
}

int gettimeofday(struct timeval *tv, void *zone) {
    (void)zone;
    struct timespec ts;
    if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
    tv->tv_sec = ts.tv_sec, tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (t) *t = ts.tv_sec;
    return ts.tv_sec;
}
