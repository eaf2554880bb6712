// tlabs.c: a walk of an eden in which three threads allocate: one has filled its buffer to the end, one has not, and
// one has none.
//
//   tlabs RESERVE    bytes behind the end of each buffer. Prints what is wrong; 1: something is.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "census.h"
#include "classes.h"
#include "heapwalk.h"
#include "marks.h"
#include "object.h"
#include "tally.h"
#include "tlabs.h"

PER_RECORDING int none_here; // the section must not be empty
enum { BUFFER = 320, OBJECT = 16 };
static uint64_t eden[2 * BUFFER / 8];
static struct thread {
    uint64_t top, end;
} threads[3];
static struct {
    uint32_t length;
    struct thread **threads;
} list;

// ---- the rest of the probe, as far as a walk asks it
struct vm vm;
struct crow rows[64 * BUCKETS], *crows = rows;
uint32_t cstamp = 1, touched[64], *ctouched = touched, nctouched, mark_shift;
void census_reset(void) { cstamp++, nctouched = 0; }
void classes_scan_new(void) {}
bool marks_there(void) { return false; }
const uint64_t *marks_of(uint64_t bottom, uint64_t top, uint64_t *seen) {
    return (void)bottom, (void)top, *seen = 0, NULL;
}
uint64_t humongous_end(uint64_t bottom) { return bottom; }
void log_line(const char *format, ...) { printf("%s\n", format); }
void *memory(size_t n) { return calloc(1, n); }
bool guarded(void (*f)(void *), void *arg) { return f(arg), true; }
void violation(const char *what, uint64_t where) { printf("%s at %#lx\n", what, (long)where), exit(1); }
bool obj_at(uint64_t a, uint64_t mark, struct obj *o) {
    (void)a;
    *o = (struct obj){.type = 1, .bytes = OBJECT};
    return mark == 1; // what no thread has written yet is none
}
static void read_map(struct heapmap *m) {
    m->n = 1;
    m->area[EDEN] = (struct area){(uint64_t)eden, (uint64_t)(eden + 2 * BUFFER / 8), 0, HC_SPACE_EDEN};
}
const struct heapmap_reader heapmap_linear = {.read = read_map}, heapmap_g1;

static void fill(uint64_t from, uint64_t to) {
    for (uint64_t a = from; a < to; a += OBJECT) *(uint64_t *)a = 1;
}

int main(int argc, char **argv) {
    static struct thread *all[] = {&threads[0], &threads[1], &threads[2]};
    static char *head = (char *)&list;
    uint64_t half = (uint64_t)eden + BUFFER;
    if (argc != 2) return 2;
    vm.tlab_reserve = (uint64_t)atoi(argv[1]);
    vm.thread_list = &head, list.length = 3, list.threads = all;
    vm.tl_length = 0, vm.tl_threads = (int64_t)((char *)&list.threads - (char *)&list);
    vm.tlab_top = 0, vm.tlab_end = 8;
    threads[0].top = threads[0].end = half - vm.tlab_reserve;
    threads[1].top = half + 5 * OBJECT, threads[1].end = half + BUFFER - vm.tlab_reserve;
    fill((uint64_t)eden, threads[0].top), fill(half, threads[1].top);
    alarm(10); // a walk that does not end
    struct heapmaps maps = {.finish = {.area = calloc(SPACES, sizeof(struct area))}};
    struct tally t = {.maps = &maps};
    if (!tlabs_init()) return 2;
    heap_tally(&t);
    uint64_t want = (threads[0].top - (uint64_t)eden) / OBJECT + 5, gaps = 1 + (vm.tlab_reserve > 0);
    if (t.objects == want && t.bytes == want * OBJECT && !t.unknown && nholes == gaps) return 0;
    printf("%lu objects, %lu bytes, %lu unknown, %u holes; want %lu objects and %lu holes\n", t.objects, t.bytes,
           t.unknown, nholes, want, gaps);
    return 1;
}
