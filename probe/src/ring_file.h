// ring_file.h: the shared ring's file (docs/format/shared-ring.md): made, mapped, read and written by calls that fail
// where the file is not what it was. ring_file_posix.c, ring_file_windows.c.
#ifndef HEAPCAM_RING_FILE_H
#define HEAPCAM_RING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The file belongs to others as well, who may truncate it or punch holes into it: whoever touches map may fault. So the
// VM thread does it inside the guard, everybody else calls os_ring_read and os_ring_write, which fail instead, and
// application threads do neither.
enum { OS_RING_PATH = 400 };
struct os_ring {
    uint8_t *map; // the header; behind it, at OS_RING_DATA, the data; and if mirrored the data once more, right behind
                  // itself
    size_t capacity, mapped; // bytes of data; of map, all of it
    bool mirrored;
    uint32_t flags; // HC_RING_*
    int fd;
    uint64_t dev, ino; // of the file: the descriptor may have been closed, and its number taken, by the application
    char path[OS_RING_PATH]; // "": it has none that could be taken over
};
// Opens the first ring's file where an agent elsewhere looks for it (spool.h): size bytes, flags gets HC_RING_*; -1:
// why.
typedef int ring_opener(uint64_t size, uint64_t ticks, uint32_t *flags, char *why);
// Makes the file by open, or without one in dir ("": where the system keeps such), all of it allocated and mapped.
// after: the ring that it is to take over from, in whose folder it gets the name of that one and ".next"; NULL: it is
// the first. false: why says why.
bool os_ring_make(struct os_ring *r, const struct os_ring *after, ring_opener *open, const char *dir, uint64_t ticks,
                  size_t capacity, char *why);
// These two, false: the file is not what it was. Reading is an acquire (what is read is older than all that this thread
// reads and writes afterwards), writing a release.
bool os_ring_read(const struct os_ring *r, size_t off, void *to, size_t n);
bool os_ring_write(const struct os_ring *r, size_t off, const void *from,
                   size_t n);                // it never makes the file longer
bool os_ring_waits(const struct os_ring *r); // the one before this has not been taken over yet
void os_ring_close(struct os_ring *r);       // unmaps it; the file stays
void os_ring_drop(struct os_ring *r,
                  const struct os_ring *after); // the same, and the file of one that was never finished goes

#ifdef _WIN32
enum { OS_RING_GROWS = 0 }; // a file that is mapped cannot be replaced
#else
enum { OS_RING_GROWS = 1 };
#endif

#endif
