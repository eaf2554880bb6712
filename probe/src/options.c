//go:build ignore

// options.c: options.h.
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heapcam_abi.h"
#include "log.h"
#include "os.h"

struct options opt;

//@@ ------------------------------------------------------------------------------------
// A test's options. Returns whether name is one.
static bool set_for_test(const char *name, unsigned long long n) {
    if (!strcmp(name, "untested"))
        opt.untested = (int)(n & 7);
    else if (!strcmp(name, "oracle"))
        opt.oracle = n;
    else if (!strcmp(name, "unmirrored"))
        opt.unmirrored = n;
    else if (!strcmp(name, "fault_at"))
        opt.fault_at = n;
    else if (!strcmp(name, "fault_until"))
        opt.fault_until = n;
    else if (!strcmp(name, "lose"))
        opt.lose = (uint32_t)(n & 0xffff);
    else if (!strcmp(name, "slice"))
        opt.slice = n < 1000000 ? n * 1000 : 0;
    else if (!strcmp(name, "late"))
        opt.late = n < 60000 ? (uint32_t)n : 0;
    else if (!strcmp(name, "crew"))
        opt.crew = (uint32_t)(n & 15);
    else if (!strcmp(name, "ask"))
        opt.ask = (uint32_t)(n & 3);
    else if (!strcmp(name, "first_type"))
        opt.first_type = n < UINT32_MAX ? (uint32_t)n : 0;
    else
        return false;
    return true;
}

// Sets one option. Says what is wrong and returns false if it cannot.
static bool set(const char *name, const char *v) {
    unsigned long long n = strtoull(v, NULL, 10);
    if (!strcmp(name, "dir"))
        snprintf(opt.dir, sizeof opt.dir, "%s", v);
    else if (!strcmp(name, "spool")) {
        if (v[0] != '/' || strlen(v) >= sizeof opt.spool) {
            log_line("not recording this JVM: option spool:%s must be an absolute path of less than %d bytes", v,
                     (int)sizeof opt.spool);
            return false;
        }
        snprintf(opt.spool, sizeof opt.spool, "%s", v);
    } else if (!strcmp(name, "depth"))
        opt.depth = !strcmp(v, "full")      ? HC_DEPTH_FULL
                    : !strcmp(v, "samples") ? HC_DEPTH_SAMPLES
                                            : HC_DEPTH_SURVIVORS;
    else if (!strcmp(name, "interval"))
        opt.interval = n > 1u << 30 ? 1u << 30 : n;
    else if (!strcmp(name, "ring"))
        opt.ring = n;
    else if (!strcmp(name, "frames"))
        opt.frames = n < 1 ? 1 : n > HC_MAX_FRAMES ? HC_MAX_FRAMES : (uint32_t)n;
    else if (!strcmp(name, "stack"))
        opt.stack = n < 1 ? 1 : n > 512 ? 512 : (int)n;
    else if (!strcmp(name, "slots"))
        opt.slots = n > 1u << 22 ? 1u << 22 : (uint32_t)n;
    else if (!strcmp(name, "allow_untested"))
        opt.allow_untested = n;
    else if (!strcmp(name, "max_sync"))
        opt.max_sync = n > 1u << 20 ? 0 : n * 1000000;
    else if (!strcmp(name, "storm"))
        opt.storm = n < 1000 ? (uint32_t)n : 0;
    else if (!strcmp(name, "names"))
        opt.names = !strcmp(v, "full") ? NAMES_FULL : !strcmp(v, "off") ? NAMES_OFF : NAMES_FOLDED;
    else if (!strcmp(name, "exact"))
        opt.exact = n, opt.hash = n > 1;
    else if (!strcmp(name, "drag"))
        snprintf(opt.drag, sizeof opt.drag, "%s", v);
    else if (!strcmp(name, "newsites"))
        opt.newsites = n < 3 ? (uint8_t)n : 1;
    else if (!strcmp(name, "disabled"))
        snprintf(opt.disabled, sizeof opt.disabled, "%s", v);
    else if (!set_for_test(name, n)) {
        log_line("not recording this JVM: option \"%s\" is unknown", name);
        return false;
    }
    return true;
}

bool options_parse(const char *s) {
    opt = (struct options){.depth = HC_DEPTH_SURVIVORS,
                           .stack = 64,
                           .frames = HC_MAX_FRAMES,
                           .interval = 512 << 10,
                           .storm = 50,
                           .crew = 1,
                           .max_sync = 10000000};
    os_host_switch(opt.disabled, sizeof opt.disabled);
    char *copy = strdup(s ? s : ""), *save = NULL;
    if (!copy) {
        log_line("not recording this JVM: not enough memory for the probe's options");
        return false;
    }
    bool ok = true;
    for (char *t = strtok_r(copy, OPTION_SEPARATORS, &save); t; t = strtok_r(NULL, OPTION_SEPARATORS, &save)) {
        char *v = strchr(t, '=');
        if (!v && !strcmp(t, "spool"))
            v = strtok_r(NULL, OPTION_SEPARATORS, &save); // spool:DIR
        else if (v)
            *v++ = 0;
        if (!v) {
            log_line("not recording this JVM: option \"%s\" has no value; write %s=VALUE", t, t);
            ok = false;
            break;
        }
        if (!set(t, v)) {
            ok = false;
            break;
        }
    }
    free(copy);
    if (!opt.slots) opt.slots = opt.interval < 65536 ? 1 << 20 : 1 << 16;
    return ok;
}
