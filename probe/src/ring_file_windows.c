//go:build ignore

// ring_file_windows.c: ring_file.h for Windows. Nothing here is newer than Windows 7.
#ifdef _WIN32
#include "ring_file.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "heapcam_abi.h"
#include "log.h"

// Windows shortens no file that is mapped, and punches no holes into one that is not sparse: reading and writing are
// done in the mapping.
static bool failed(char *why, const char *what, const char *path) {
    snprintf(why, HC_MAX_REASON, "cannot %s %s: error %lu", what, path, GetLastError());
    return false;
}

static bool map_ring(struct os_ring *r, HANDLE f, char *why) {
    r->mapped = HC_RING_HEADER_SIZE + r->capacity;
    LARGE_INTEGER end = {.QuadPart = (LONGLONG)r->mapped};
    // A full disk must fail here and not inside a pause.
    if (!SetFilePointerEx(f, end, NULL, FILE_BEGIN) || !SetEndOfFile(f)) return failed(why, "allocate", r->path);
    HANDLE h = CreateFileMappingA(f, NULL, PAGE_READWRITE, (DWORD)((uint64_t)r->mapped >> 32), (DWORD)r->mapped, NULL);
    if (h) r->map = MapViewOfFile(h, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, r->mapped);
    bool ok = r->map || failed(why, "map", r->path);
    if (h) CloseHandle(h); // the view keeps it
    return ok;
}

// Others may read, write and delete the file: the agent. A file and no named memory, since what a killed JVM left must
// outlive it.
bool os_ring_make(struct os_ring *r, const struct os_ring *after, ring_opener *open_file, const char *dir,
                  uint64_t ticks, size_t capacity, char *why) {
    *r = (struct os_ring){.capacity = capacity, .flags = HC_RING_DISK, .fd = -1};
    if (open_file || after) {
        snprintf(why, HC_MAX_REASON, "a spool folder is for Linux: leave the option spool out");
        return false;
    }
    char temp[MAX_PATH + 1] = "";
    if (!dir[0]) { // where an agent of the same user looks
        DWORD n = GetTempPathA(sizeof temp, temp);
        if (!n || n > MAX_PATH) return failed(why, "find", "the folder for temporary files");
        snprintf(r->path, sizeof r->path, "%sheapcam-rings", temp);
        CreateDirectoryA(r->path, NULL);
        snprintf(r->path, sizeof r->path, "%sheapcam-rings\\heapcam-%lu-%llu.ring", temp, GetCurrentProcessId(),
                 (unsigned long long)ticks);
    } else {
        snprintf(r->path, sizeof r->path, "%s\\heapcam-%lu-%llu.ring", dir, GetCurrentProcessId(),
                 (unsigned long long)ticks);
    }
    HANDLE f = CreateFileA(r->path, GENERIC_READ | GENERIC_WRITE | DELETE,
                           FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, CREATE_NEW,
                           FILE_ATTRIBUTE_TEMPORARY, NULL);
    if (f == INVALID_HANDLE_VALUE) return failed(why, "create", r->path);
    bool ok = map_ring(r, f, why);
    if (!ok) {
        FILE_DISPOSITION_INFO gone = {TRUE};
        SetFileInformationByHandle(f, FileDispositionInfo, &gone, sizeof gone);
    }
    CloseHandle(f);
    for (size_t i = 0; ok && i < r->mapped; i += 4096) ((volatile uint8_t *)r->map)[i] = 0;
    return ok;
}

bool os_ring_read(const struct os_ring *r, size_t off, void *to, size_t n) {
    memcpy(to, r->map + off, n);
    return true;
}

bool os_ring_write(const struct os_ring *r, size_t off, const void *from, size_t n) {
    if (n == 8 && off % 8 == 0)
        atomic_store((_Atomic uint64_t *)(r->map + off), *(const uint64_t *)from);
    else
        memcpy(r->map + off, from, n);
    return true;
}

bool os_ring_waits(const struct os_ring *r) { return (void)r, true; }

void os_ring_close(struct os_ring *r) {
    if (r->map) UnmapViewOfFile(r->map);
    r->map = NULL;
}

void os_ring_drop(struct os_ring *r, const struct os_ring *after) {
    (void)after;
    os_ring_close(r);
    DeleteFileA(r->path);
}

#endif
