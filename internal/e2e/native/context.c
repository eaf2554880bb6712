// context.c: preloaded into a JVM: publishes a process context of OpenTelemetry (OTEP 4719), or what looks like one.
//   CONTEXT=memfd     as the reference implementation does: the header in a memory file, the message in malloc's memory
//   CONTEXT=behind    the message behind the header, as the first version of the OTEP had it
//   CONTEXT=anon      in a named mapping without a file
//   CONTEXT=late      as memfd, after two seconds
//   CONTEXT=update    as memfd, and after five seconds with another version
//   CONTEXT=signature, version, empty, huge, changing, long, file, garbage, none: a lie each
//   CONTEXT=racing    the header changes all the time
//   CONTEXT=unmapped  the message is mapped and unmapped all the time
//   CONTEXT=many      5,000 mappings with the name
//   CONTEXT=fault     the message is in memory whose faults nobody serves (userfaultfd)
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct header {
    char signature[8];
    uint32_t version, size;
    _Atomic uint64_t published_at;
    void *message;
};
enum { PAGE = 4096 };
static const char *mode;
static struct header *header;
static uint8_t message[PAGE];

static uint8_t *put(uint8_t *p, int field, const void *b, size_t n) {
    *p++ = (uint8_t)(field << 3 | 2);
    if (n >= 128) *p++ = (uint8_t)(n | 0x80), *p++ = (uint8_t)(n >> 7);
    else *p++ = (uint8_t)n;
    memcpy(p, b, n);
    return p + n;
}

static uint8_t *attribute(uint8_t *p, const char *key, const char *value) {
    uint8_t any[200], both[400], *a = put(any, 1, value, strlen(value)), *k = put(both, 1, key, strlen(key));
    k = put(k, 2, any, (size_t)(a - any));
    return put(p, 1, both, (size_t)(k - both));
}

static uint32_t fill(const char *version, int whole) {
    uint8_t b[PAGE], *p = b;
    p = attribute(p, "telemetry.sdk.name", "s3cret");
    p = attribute(p, "service.name", "from-context");
    p = attribute(p, "service.version", version);
    p = attribute(p, "deployment.environment", "prod\x1b[2J");
    p = attribute(p, "password", "s3cret");
    if (!whole) return memcpy(message, b, (size_t)(p - b)), (uint32_t)(p - b);
    return (uint32_t)(put(message, 1, b, (size_t)(p - b)) - message);
}

static void *named(size_t n, int prot) {
    int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)n)) return NULL;
    void *p = mmap(NULL, n, prot, MAP_PRIVATE, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

static void *anonymous(size_t n) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void publish(void *at, uint32_t size) {
    memcpy(header->signature, strcmp(mode, "signature") ? "OTEL_CTX" : "OTEL_XTX", 8);
    header->version = strcmp(mode, "version") ? 2 : 3;
    header->size = !strcmp(mode, "empty") ? 0 : !strcmp(mode, "huge") ? 1u << 31 : size;
    header->message = at;
    header->published_at = strcmp(mode, "changing") ? 1 : 0;
}

static void *racing(void *arg) {
    for (;;) header->published_at++;
    return arg;
}

// Without munmap: the system would give the hole to somebody else, and the next mmap would take it from them.
static void *mapping(void *at) {
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    for (;;) {
        if (mmap(at, PAGE, PROT_READ | PROT_WRITE, how, -1, 0) == MAP_FAILED) abort();
        memcpy(at, message, header->size);
        if (mmap(at, PAGE, PROT_NONE, how, -1, 0) == MAP_FAILED) abort();
    }
    return NULL;
}

static void *later(void *arg) {
    (void)arg;
    if (!strcmp(mode, "late")) {
        sleep(2);
        publish(message, fill("1", 1));
        return NULL;
    }
    sleep(5);
    header->published_at = 0;
    static uint8_t other[PAGE];
    uint32_t n = fill("2", 1);
    memcpy(other, message, n);
    header->size = n, header->message = other;
    header->published_at = 2;
    return NULL;
}

static int unserved(void *at) { // faults of the page wait for good
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register r = {.range = {(uintptr_t)at, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &r);
}

static void start(void *(*f)(void *), void *arg) {
    pthread_t t;
    if (pthread_create(&t, NULL, f, arg)) abort();
}

__attribute__((constructor)) static void begin(void) {
    mode = getenv("CONTEXT");
    char exe[200] = "";
    if (!mode || readlink("/proc/self/exe", exe, sizeof exe - 1) < 5 || !strstr(exe, "/java")) return;
    if (!strcmp(mode, "many"))
        for (int i = 0; i < 5000; i++) named(PAGE, i % 2 ? PROT_READ : PROT_NONE);
    header = strcmp(mode, "anon") ? named(PAGE, PROT_READ | PROT_WRITE) : anonymous(PAGE);
    if (!header) abort();
    uint32_t n = fill("1", strcmp(mode, "behind"));
    uint8_t *at = malloc(PAGE);
    memcpy(at, message, n);
    if (!strcmp(mode, "late") || !strcmp(mode, "update")) start(later, NULL);
    if (!strcmp(mode, "late")) return;
    if (!strcmp(mode, "behind")) memcpy(header + 1, message, n), at = (uint8_t *)(header + 1);
    if (!strcmp(mode, "anon")) prctl(0x53564d41, 0, header, PAGE, "OTEL_CTX");
    if (!strcmp(mode, "long")) {
        at = anonymous(2 * PAGE);
        munmap(at + PAGE, PAGE);
        memcpy(at, message, n), n = 2 * PAGE;
    }
    if (!strcmp(mode, "file")) {
        int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, PAGE)) abort();
        at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        memcpy(at, message, n);
    }
    if (!strcmp(mode, "garbage"))
        for (uint32_t i = 0; i < n; i++) at[i] = (uint8_t)(i * 37 + 11);
    if (!strcmp(mode, "unmapped")) at = anonymous(PAGE);
    if (!strcmp(mode, "fault")) {
        at = anonymous(PAGE);
        if (unserved(at)) fprintf(stderr, "no userfaultfd\n"), _exit(77);
    }
    publish(at, n);
    if (!strcmp(mode, "racing")) start(racing, NULL);
    if (!strcmp(mode, "unmapped")) start(mapping, at);
    if (!strcmp(mode, "none")) mprotect(header, PAGE, PROT_NONE);
}
