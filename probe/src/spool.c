//go:build ignore

// spool.c: a ring in a folder that an agent reads which cannot reach this process, or reads later (option spool:DIR;
// docs/format/shared-ring.md). The ring is a file of a disk, most likely. While no agent reads it the oldest part is
// given up for the newest, as whole segments: each begins with META and all definitions, and a listing follows.
#include "spool.h"

#ifndef _WIN32

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "heapcam_abi.h"
#include "log.h"
#include "options.h"
#include "os.h"
#include "ring.h"

enum { MOST_RINGS = 64 }; // in one folder: JVMs that die and come again must not fill a disk that nobody empties
#define TURN_NS                                                                                                        \
    1000000000ull // a segment costs a listing: no more often than this, and at most a hundredth of the time for it
static PER_RECORDING int ring_fd = -1;         // holds the lock by which an agent knows that this process lives
static PER_RECORDING uint64_t dropped, turned; // spool_turn: epochs lost so far, when the last segment began
static PER_RECORDING uint64_t mark;            // where the newest segment begins
PER_RECORDING _Atomic bool spool_waits;        // it is too early for a new segment

// Where mapped memory neither waits for another host nor faults for want of room that was allocated.
static bool local_disk(int dir, uint32_t *flags) {
    struct statfs s;
    if (fstatfs(dir, &s)) return false;
    if ((uint32_t)s.f_type == 0x01021994) return true; // tmpfs
    *flags |= HC_RING_DISK;
    uint32_t known[] = {0xEF53 /* ext2 to 4 */, 0x58465342 /* xfs */, 0x794c7630 /* overlay */, 0xF2F52010 /* f2fs */};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((uint32_t)s.f_type == known[i]) return true;
    return false;
}

static int rings_in(int dir) {
    int n = 0, copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d) {
        if (copy >= 0) close(copy);
        return 0;
    }
    for (struct dirent *e; (e = readdir(d));) {
        size_t l = strlen(e->d_name);
        n += l > 5 && !strcmp(e->d_name + l - 5, ".ring");
    }
    closedir(d);
    return n;
}

int spool_open(uint64_t size, uint64_t ticks, uint32_t *flags, char *why) {
    char name[80];
    int fd = -1, dir = open(opt.spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        snprintf(why, HC_MAX_REASON, "cannot use the spool folder %s: %s", opt.spool, strerror(errno));
        return -1;
    }
    if (!local_disk(dir, flags)) {
        snprintf(why, HC_MAX_REASON,
                 "the spool folder %s is not on tmpfs, ext4, xfs, f2fs or overlay: a GC pause might wait for it",
                 opt.spool);
        goto out;
    }
    if (rings_in(dir) >= MOST_RINGS) {
        snprintf(why, HC_MAX_REASON,
                 "the spool folder %s holds %d rings that no agent has taken; start an agent with --spool", opt.spool,
                 MOST_RINGS);
        goto out;
    }
    for (int i = 0; i < 16; i++) { // two containers may share pid and start time; the header says whose the ring is
        snprintf(name, sizeof name, "heapcam-%d-%llu.ring", (int)getpid(), (unsigned long long)ticks + (unsigned)i);
        fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST) break;
    }
    if (fd < 0) {
        snprintf(why, HC_MAX_REASON, "cannot create a ring in the spool folder %s: %s", opt.spool, strerror(errno));
        goto out;
    }
    struct flock whole = {.l_type = F_WRLCK,
                          .l_whence = SEEK_SET}; // of the open file: it goes with the last descriptor and mapping
    int err = fcntl(fd, F_OFD_SETLK, &whole) ? errno : os_write_zeros(fd, 0, size);
    if (err) {
        snprintf(why, HC_MAX_REASON, "no room for a ring of %llu bytes in the spool folder %s: %s",
                 (unsigned long long)size, opt.spool, strerror(err));
        unlinkat(dir, name, 0);
        close(fd);
        fd = -1;
    }
out:
    close(dir);
    return ring_fd = fd;
}

// PROGRAM@HOST: an agent elsewhere has no process to ask.
void spool_name(const char *command) {
    char host[65] = "", program[128] = "jvm";
    const char *end = command + strcspn(command, " ");
    if (end > command) {
        const char *from = command;
        bool jar = end - command > 4 && !strncmp(end - 4, ".jar", 4);
        for (const char *p = command; p < end; p++)
            if (*p == '/' || (*p == '.' && !jar)) from = p + 1;
        snprintf(program, sizeof program, "%.*s", (int)(end - from - (jar ? 4 : 0)), from);
    }
    gethostname(host, sizeof host - 1);
    snprintf((char *)ring + HC_RING_OFF_NAME, HC_RING_LEN_NAME, "%.60s@%.60s", program, host);
}

void spool_mark(uint64_t at) { mark = at; }

bool spool_turn(uint64_t now) {
    if (ring_fd < 0) return false;
    uint64_t beat = *ring64(HC_RING_OFF_AGENT_HEARTBEAT), lost = *ring64(HC_RING_OFF_EPOCHS_DROPPED),
             size = *(uint64_t *)(ring + HC_RING_OFF_CAPACITY);
    uint64_t head = *ring64(HC_RING_OFF_HEAD), tail = *ring64(HC_RING_OFF_TAIL),
             from = mark > tail && mark <= head ? mark : tail;
    bool full = lost != dropped || head - tail > size / 8 * 7, half = head - from >= size / 2, begin = false;
    dropped = lost;
    uint64_t seldom = 100 * *ring64(HC_RING_OFF_SYNC_PREDICTED);
    if (seldom < TURN_NS) seldom = TURN_NS;
    // The tail is the agent's. Who has its lock is the agent; an agent that restarts gets some seconds for it.
    if ((beat && now < beat + HC_RING_AGENT_STALE_NS && beat < now + HC_RING_AGENT_STALE_NS) || tail > head ||
        head - tail > size) {
        atomic_store(&spool_waits, false);
        return false;
    }
    if (!full && !half && !atomic_load(&spool_waits)) return false;
    if (flock(ring_fd, LOCK_EX | LOCK_NB)) return false;
    if (ring_tail() == tail) {
        if (full && from > tail && !half) { // the segment before is dropped, this one continues
            (void)ring_set_tail(from);
        } else if (turned && now - turned < seldom) {
            atomic_store(&spool_waits, true);
        } else {
            begin = true;
            turned = now;
            (void)ring_set_tail(
                from == tail && !half ? head : from); // less than half, and the next listing does not fit beside it
            atomic_store(&spool_waits, false);
        }
    }
    flock(ring_fd, LOCK_UN);
    return begin;
}

#else // ring_file_windows.c refuses the option: there is never anything to do
#include "os.h"

PER_RECORDING _Atomic bool spool_waits;
int spool_open(uint64_t size, uint64_t ticks, uint32_t *flags, char *why) {
    return (void)size, (void)ticks, (void)flags, (void)why, -1;
}
void spool_name(const char *command) { (void)command; }
bool spool_turn(uint64_t now) { return (void)now, false; }
void spool_mark(uint64_t at) { (void)at; }

#endif
