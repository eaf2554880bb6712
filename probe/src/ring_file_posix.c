//go:build ignore

// ring_file_posix.c: ring_file.h for Linux.
#ifndef _WIN32
#include "ring_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "heapcam_abi.h"
#include "log.h"
#include "options.h"
#include "os.h"

// The kernel's own call: glibc has fstat as a symbol since 2.33 only.
static bool stat_of(int fd, struct stat *st) { return syscall(SYS_fstat, fd, st) == 0; }

// Only the header's first page is used: the rest is there so that the data can be mapped whatever the size of a page
// is.
static int allocate(int fd, size_t capacity) {
    const int err = os_write_zeros(fd, 0, HC_RING_HEADER_USED);
    return err ? err : os_write_zeros(fd, HC_RING_HEADER_SIZE, capacity);
}

static bool create_file(struct os_ring *r, const char *path, char *why) { // false: errno says why as well
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), err = errno;
    if (fd < 0) {
        snprintf(why, HC_MAX_REASON, "cannot create %s: %s", path, strerror(err));
        errno = err;
        return false;
    }
    err = allocate(fd, r->capacity); // a full tmpfs must fail here and not inside a pause
    if (!err) return r->fd = fd, true;
    snprintf(why, HC_MAX_REASON, "no room for a shared ring of %llu bytes at %s: %s", (unsigned long long)r->capacity,
             path, strerror(err));
    unlink(path);
    close(fd);
    errno = err; // not what stood there before: there may be room elsewhere
    return false;
}

// Rings of JVMs that have ended, and that no agent has taken yet: they are memory, which must not fill up if the agent
// has gone and JVMs come and go.
enum { MOST_ENDED = 16 };
static int ended_in(const char *dir) {
    const int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = at < 0 ? NULL : fdopendir(at);
    const uint64_t mine = os_pid_namespace();
    int n = 0;
    for (struct dirent *e; d && n < MOST_ENDED && (e = readdir(d));) {
        int pid, end = 0, fd = -1;
        unsigned long long ticks;
        uint64_t namespace = 0; // a pid means nothing elsewhere
        if (sscanf(e->d_name, "heapcam-%d-%llu.ring%n", &pid, &ticks, &end) != 2 || !end || e->d_name[end]) continue;
        if (pid <= 0 || !kill(pid, 0) || errno != ESRCH) continue;
        if ((fd = openat(at, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0) continue;
        n += pread(fd, &namespace, sizeof namespace, HC_RING_OFF_PIDNS) == sizeof namespace && namespace == mine;
        close(fd);
    }
    if (d)
        closedir(d);
    else if (at >= 0)
        close(at);
    return n;
}

static bool create_first(struct os_ring *r, ring_opener *open_file, const char *dir, uint64_t ticks, char *why) {
    if (open_file) return (r->fd = open_file(HC_RING_HEADER_SIZE + r->capacity, ticks, &r->flags, why)) >= 0;
    const char *dirs[] = {dir[0] ? dir : "/dev/shm", "/dev/shm", NULL};
    for (int i = 0; dirs[i]; i++) {
        if (ended_in(dirs[i]) >= MOST_ENDED) {
            snprintf(why, HC_MAX_REASON,
                     "%s holds %d shared rings of JVMs that have ended, which no agent has taken: start one, or remove "
                     "them",
                     dirs[i], MOST_ENDED);
            return false;
        }
        snprintf(r->path, sizeof r->path, "%s/heapcam-%d-%llu.ring", dirs[i], (int)getpid(), (unsigned long long)ticks);
        if (create_file(r, r->path, why)) return true;
        // The folder of one recording has gone, as its recorder has, which the JVM was too slow for.
        const bool one = strstr(dirs[i], "/heapcam-run-") || strstr(dirs[i], "/heapcam-record-");
        if (errno == EEXIST || (errno == ENOENT && one)) return false;
    }
    r->path[0] = 0;
    // It is lost when the JVM and the agent have both gone. Sealed: nobody can truncate it; holes can still be punched.
    enum { CLOEXEC = 1, ALLOW_SEALING = 2, ADD_SEALS = 1033, SEAL_SHRINK_GROW_SEAL = 7 };
    int fd = (int)syscall(SYS_memfd_create, "heapcam.ring", CLOEXEC | ALLOW_SEALING);
    if (fd < 0) return false;
    if (allocate(fd, r->capacity)) {
        close(fd);
        return false;
    }
    fcntl(fd, ADD_SEALS, SEAL_SHRINK_GROW_SEAL);
    r->flags |= HC_RING_MEMFD;
    r->fd = fd; // the agent finds it through /proc/PID/fd
    return true;
}

static bool map_at(uint8_t *at, size_t n, int fd, size_t off) {
    return mmap(at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)off) != MAP_FAILED;
}

static bool map_ring(struct os_ring *r) {
    size_t once = HC_RING_HEADER_SIZE + r->capacity, page = (size_t)sysconf(_SC_PAGESIZE);
    r->mapped = once + r->capacity;
    r->map = mmap(NULL, r->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->map == MAP_FAILED) return false;
    // The data a second time right behind itself: one contiguous view of a ring that wraps.
    size_t head = HC_RING_HEADER_USED < page ? page : HC_RING_HEADER_USED;
    r->mirrored = !opt.unmirrored && map_at(r->map, head, r->fd, 0) &&
                  map_at(r->map + HC_RING_HEADER_SIZE, r->capacity, r->fd, HC_RING_HEADER_SIZE) &&
                  map_at(r->map + once, r->capacity, r->fd, HC_RING_HEADER_SIZE);
    if (!r->mirrored && !map_at(r->map, once, r->fd, 0)) {
        munmap(r->map, r->mapped);
        return false;
    }
    madvise(r->map, r->mapped, MADV_DONTFORK);
    return true;
}

bool os_ring_make(struct os_ring *r, const struct os_ring *after, ring_opener *open_file, const char *dir,
                  uint64_t ticks, size_t capacity, char *why) {
    *r = (struct os_ring){.capacity = capacity, .fd = -1};
    struct stat st;
    if (after) {
        char next[OS_RING_PATH + 8];
        snprintf(next, sizeof next, "%s.next", after->path);
        if (!create_file(r, next, why)) return false;
        memcpy(r->path, after->path, sizeof r->path); // where it will be
    } else if (!create_first(r, open_file, dir, ticks, why)) {
        return false;
    }
    if (stat_of(r->fd, &st) && map_ring(r)) {
        r->dev = st.st_dev, r->ino = st.st_ino;
        return true;
    }
    snprintf(why, HC_MAX_REASON, "cannot map the shared ring: %s", strerror(errno));
    r->map = NULL;
    os_ring_drop(r, after);
    return false;
}

static bool same_file(const struct os_ring *r, uint64_t least) {
    struct stat st;
    return stat_of(r->fd, &st) && (uint64_t)st.st_dev == r->dev && (uint64_t)st.st_ino == r->ino &&
           (uint64_t)st.st_size >= least;
}

static bool whole(const struct os_ring *r) { return same_file(r, HC_RING_HEADER_SIZE + r->capacity); }

// Between a look at the descriptor and a write to it the application may close it and open a file of its own, which
// gets the number. So the bytes go through the mapping, which is ours, by a call that fails where a page is missing.
// The descriptor is for processes that are refused this call.
// EMFILE, ENFILE: a file was to copy in its place, and there is no descriptor left.
static bool refused(void) {
    return errno == EPERM || errno == ENOSYS || errno == EACCES || errno == EMFILE || errno == ENFILE;
}

static bool copy_in(const struct os_ring *r, size_t off, void *to, size_t n) {
    if (!whole(r)) return false;
    if (safe_read(to, (uint64_t)(r->map + off), n)) return true;
    if (!refused()) return false;
    ssize_t k;
    while ((k = pread(r->fd, to, n, (off_t)off)) < 0 && errno == EINTR) {
    }
    return k == (ssize_t)n;
}

// The two fences make the copies an acquire and a release (heapcam_abi.h, "memory order"): entering the kernel is none.
bool os_ring_read(const struct os_ring *r, size_t off, void *to, size_t n) {
    bool ok = copy_in(r, off, to, n);
    atomic_thread_fence(memory_order_acquire);
    return ok;
}

bool os_ring_write(const struct os_ring *r, size_t off, const void *from, size_t n) {
    if (!n) return true;
    if (!whole(r)) return false;
    atomic_thread_fence(memory_order_release);
    // pages that were punched out are allocated anew, or there is no room for them
    if (safe_write((uint64_t)(r->map + off), from, n)) return true;
    if (!refused()) return false;
    for (size_t done = 0; done < n;) {
        ssize_t k = whole(r) ? pwrite(r->fd, (const uint8_t *)from + done, n - done, (off_t)(off + done)) : -1;
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        done += (size_t)k;
    }
    return true;
}

bool os_ring_waits(const struct os_ring *r) {
    char next[OS_RING_PATH + 8];
    snprintf(next, sizeof next, "%s.next", r->path);
    return os_exists(next);
}

void os_ring_close(struct os_ring *r) {
    if (r->map) munmap(r->map, r->mapped);
    if (r->fd >= 0 && (!r->ino || same_file(r, 0))) close(r->fd);
    r->map = NULL;
    r->fd = -1;
}

void os_ring_drop(struct os_ring *r, const struct os_ring *after) {
    char path[OS_RING_PATH + 8];
    snprintf(path, sizeof path, "%s%s", r->path, after ? ".next" : "");
    if (r->path[0]) unlink(path);
    os_ring_close(r);
}

#endif
