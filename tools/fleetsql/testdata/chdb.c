/* Runs SQL in libchdb, ClickHouse's engine as a library: chdb LIBRARY FOLDER. Standard input has queries, each ended by
 * a NUL. Each answer is a line "ok BYTES" or "error BYTES" and that many bytes; answers have ClickHouse's format TSV
 * unless the query names another one. Process of its own, since the library brings its own allocator. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *(*query_fn)(void *connection, const char *query, const char *format);
typedef void **(*connect_fn)(int argc, char **argv);
typedef const char *(*text_fn)(void *result);
typedef size_t (*size_fn)(void *result);
typedef void (*void_fn)(void *result);

static void *library;

static void *named(const char *name)
{
    void *f = dlsym(library, name);
    if (!f) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return f;
}

int main(int argc, char **argv)
{
    if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW))) {
        fprintf(stderr, "chdb LIBRARY FOLDER: %s\n", argc == 3 ? dlerror() : "two arguments");
        return 1;
    }
    query_fn query = (query_fn)named("chdb_query");
    connect_fn connect = (connect_fn)named("chdb_connect");
    text_fn error = (text_fn)named("chdb_result_error"), buffer = (text_fn)named("chdb_result_buffer");
    size_fn length = (size_fn)named("chdb_result_length");
    void_fn destroy = (void_fn)named("chdb_destroy_query_result");
    char *args[] = {"clickhouse", "--path", argv[2]};
    void **connection = connect(3, args);
    if (!connection) {
        fprintf(stderr, "chdb_connect failed\n");
        return 1;
    }
    char *line = NULL;
    size_t room = 0;
    while (getdelim(&line, &room, 0, stdin) > 0) {
        void *r = query(*connection, line, "TSV");
        const char *bad = error(r);
        const char *text = bad ? bad : buffer(r);
        size_t n = bad ? strlen(bad) : text ? length(r) : 0;
        printf("%s %zu\n", bad ? "error" : "ok", n);
        if (n)
            fwrite(text, 1, n, stdout);
        fflush(stdout);
        destroy(r);
    }
    return 0;
}
