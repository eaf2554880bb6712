// ringstress.c: the probe's ring by itself, written as fast as an agent reads it. `ringstress DIR SECONDS`: one thread
// commits as the VM thread does in a pause, one as the control thread does, and the ring grows. Each block holds words
// that follow from its number. The state at the end has the number of the last block as its text.
#define os_start_ticks start_ticks
#include "ring.c"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "os.h"

struct options opt;
struct vm vm;
_Atomic bool gave_up;
const char *violated;
uint64_t violated_at;
const char fault_text[] = "fault";
bool guard_without_handler;

static _Atomic bool in_pause, stop;
static uint64_t number; // of the last block; below the writer's lock

void *memory(size_t n) { return calloc(1, n); }
void *memory_sparse(size_t n) { return calloc(1, n); }
void memory_give_back(void *p) { free(p); }
bool deflogs_init(void) { return true; }
void wait_for_pause(void) {
    while (atomic_load(&in_pause)) usleep(50);
}
_Noreturn void violation(const char *what, uint64_t where) {
    printf("violation: %s at %llx\n", what, (unsigned long long)where);
    exit(3);
}

// As os_start_ticks, from a file that qemu-user does not make up: its own time of start is later by a moment.
uint64_t start_ticks(void) {
    char b[1024] = "";
    FILE *f = fopen("/proc/thread-self/stat", "r");
    size_t n = f ? fread(b, 1, sizeof b - 1, f) : 0;
    if (f) fclose(f);
    char *p = n ? strrchr(b, ')') : NULL;
    for (int i = 2; p && i < 22; i++) p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

// A block with its own number; false: there is no room. Caller holds the lock.
static bool commit(bool pause) {
    struct enc e;
    ring_begin(&e, pause);
    uint64_t n = number + 1, words = n * 2654435761u % 3000;
    if (!room(&e, HC_BLOCK_HEADER_SIZE + 8 * words)) return false;
    uint64_t *p = (uint64_t *)e.p;
    p[0] = HC_KIND_META | HC_FORMAT_VERSION << 8 | (8 * words) << 32, p[1] = n;
    for (uint64_t i = 0; i < words; i++) p[2 + i] = n * 0x9e3779b97f4a7c15u + i;
    e.p += HC_BLOCK_HEADER_SIZE + 8 * words;
    if (!ring_commit(&e, pause)) return false;
    number = n;
    return true;
}

static void *vm_thread(void *arg) {
    for (unsigned i = 0; !atomic_load(&stop) && !atomic_load(&gave_up); i++) {
        bool ok = false;
        atomic_store(&in_pause, true);
        if (ring_try()) {
            ring_refresh_in_pause();
            atomic_fetch_add(ring64(HC_RING_OFF_EPOCHS), 1);
            ok = commit(true);
            ring_publish_in_pause();
            ring_unlock();
        }
        atomic_store(&in_pause, false);
        if (!ok) usleep(i % 3 * 100);
    }
    return arg;
}

int main(int argc, char **argv) {
    char why[HC_MAX_REASON];
    if (argc != 3 || !os_init()) return 2;
    snprintf(opt.dir, sizeof opt.dir, "%s", argv[1]);
    opt.depth = HC_DEPTH_SURVIVORS;
    if (!ring_create(1 << 20, NULL, why)) return printf("%s\n", why), 1;
    printf("%s %ld %s\n", files[0].path, sysconf(_SC_PAGESIZE), files[0].mirrored ? "mirrored" : "plain");
    fflush(stdout);
    ring_state(HC_STATE_RECORDING, NULL);
    ring_show();
    pthread_t t;
    if (pthread_create(&t, NULL, vm_thread, NULL)) return 1;
    uint64_t begun = now_ns(), end = begun + strtoull(argv[2], NULL, 10) * 1000000000u, grow = begun;
    while (now_ns() < end && !atomic_load(&gave_up)) {
        atomic_store(ring64(HC_RING_OFF_HEARTBEAT), now_ns());
        ring_exchange();
        lock_writer();
        bool ok = commit(false);
        ring_unlock();
        if (now_ns() > grow && now_ns() < end - 2000000000u) {
            grow = now_ns() + 1500000000u;
            refused_until = 0;
            ring_grow(now_ns(), true, true);
        }
        if (!ok) usleep(200);
    }
    atomic_store(&stop, true);
    pthread_join(t, NULL);
    char text[100];
    snprintf(text, sizeof text, "last %llu, capacity %llu", (unsigned long long)number, (unsigned long long)capacity);
    if (!atomic_load(&gave_up)) ring_state(HC_STATE_GOODBYE, text);
    ring_publish();
    puts(atomic_load(&gave_up) ? (char *)ring + HC_RING_OFF_REASON : text);
    fflush(stdout);
    char c;
    return read(0, &c, 1) < 0; // the ring's process is looked for until all was read
}
