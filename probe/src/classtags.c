//go:build ignore

// classtags.c: classtags.h. An environment of JVMTI of its own has the tags, so that they end with it.
#include "classtags.h"

#include <stdatomic.h>
#include <string.h>

#include "deflog.h"
#include "encode.h"
#include "heapcam_abi.h"
#include "os.h"
#include "sites.h"
#include "vmstructs.h"

enum { MOST_TYPES = 1 << 16, NAME_BYTES = 4096, ARRAY_HEADER = 16 };
static PER_RECORDING jvmtiEnv *tags;
static PER_RECORDING os_mutex define_lock = OS_MUTEX_INITIALIZER;
static PER_RECORDING uint32_t ntypes, nloaders; // under define_lock

bool classtags_begin(JavaVM *v) {
    jvmtiCapabilities c;
    memset(&c, 0, sizeof c);
    c.can_tag_objects = 1;
    if ((*v)->GetEnv(v, (void **)&tags, JVMTI_VERSION_11) != JNI_OK) return tags = NULL, false;
    if ((*tags)->AddCapabilities(tags, &c) == JVMTI_ERROR_NONE) return true;
    classtags_end();
    return false;
}

void classtags_end(void) {
    if (tags) (*tags)->DisposeEnvironment(tags);
    tags = NULL;
}

// The name of a class as the VM has it: java/lang/String, [I. A hidden class has a point in its signature.
static size_t internal_name(char *sig, const char **name) {
    size_t n = strlen(sig);
    *name = sig;
    if (*sig == 'L' && n > 2) ++*name, n -= 2;
    for (size_t i = 0; i < n; i++)
        if ((*name)[i] == '.') sig[*name - sig + (ptrdiff_t)i] = '+';
    return n < NAME_BYTES ? n : NAME_BYTES;
}

static void define(int tag, const uint64_t *v, int n, const char *name, size_t len) {
    uint8_t buf[NAME_BYTES + 128];
    struct enc e = {.p = buf, .base = buf, .end = buf + sizeof buf};
    put8(&e, (uint8_t)tag);
    for (int i = 0; i < n; i++) put_u(&e, v[i]);
    put_str(&e, name, len);
    os_lock(&site_lock);
    site_define(buf, &e);
    os_unlock(&site_lock);
}

// The caller holds define_lock.
static uint32_t loader_of(JNIEnv *jni, jclass k) {
    jobject l = NULL;
    jlong id = 0;
    (void)(*tags)->GetClassLoader(tags, k, &l);
    if (l && (*tags)->GetTag(tags, l, &id) == JVMTI_ERROR_NONE && !id && nloaders < MOST_TYPES) {
        jclass c = (*jni)->GetObjectClass(jni, l);
        char *sig = NULL;
        const char *name = "(loader)";
        size_t n = 8;
        if (c && (*tags)->GetClassSignature(tags, c, &sig, NULL) == JVMTI_ERROR_NONE) n = internal_name(sig, &name);
        uint64_t v[] = {(uint64_t)nloaders + 2}; // 1 is the JVM's own
        if ((*tags)->SetTag(tags, l, (jlong)v[0]) == JVMTI_ERROR_NONE) {
            nloaders++, id = (jlong)v[0];
            define(HC_EV_LOADER, v, 1, name, n);
        }
        if (sig) (*tags)->Deallocate(tags, (unsigned char *)sig);
        (*jni)->DeleteLocalRef(jni, c);
    }
    (*jni)->DeleteLocalRef(jni, l);
    if (l) return (uint32_t)id;
    static const uint64_t boot[] = {1};
    if (!ntypes) define(HC_EV_LOADER, boot, 1, "(boot)", 6);
    return 1;
}

static uint64_t log2_of(char element) {
    switch (element) {
    case 'Z':
    case 'B': return 0;
    case 'C':
    case 'S': return 1;
    case 'I':
    case 'F': return 2;
    case 'J':
    case 'D': return 3;
    }
    return vm.compressed_oops ? 2 : 3;
}

static uint32_t define_type(JNIEnv *jni, jclass k, jlong size) {
    char *sig = NULL;
    if ((*tags)->GetClassSignature(tags, k, &sig, NULL) != JVMTI_ERROR_NONE || !sig) return 0;
    const bool array = *sig == '[', objects = array && (sig[1] == 'L' || sig[1] == '[');
    const uint64_t log2 = array ? log2_of(sig[1]) : 0;
    const uint64_t loader = loader_of(jni, k);
    const char *name;
    size_t n = internal_name(sig, &name);
    uint64_t flags = (array ? HC_TF_ARRAY : 0) | (objects ? HC_TF_OBJARRAY : 0) |
                     (memchr(name, '+', n) ? HC_TF_HIDDEN : 0);
    if (!strcmp(sig, "Ljava/lang/Class;")) flags |= HC_TF_VARIABLE;
    uint64_t bytes = array ? ARRAY_HEADER : size < 8 ? 8 : (uint64_t)size;
    if (bytes > HC_MAX_INSTANCE) bytes = HC_MAX_INSTANCE;
    uint64_t v[] = {(uint64_t)ntypes + 1, flags, bytes, log2, loader, 0};
    uint32_t id = 0;
    if ((*tags)->SetTag(tags, k, (jlong)v[0]) == JVMTI_ERROR_NONE) {
        id = ++ntypes;
        define(HC_EV_TYPE, v, 6, name, n);
    }
    (*tags)->Deallocate(tags, (unsigned char *)sig);
    return id;
}

uint32_t classtags_type(JNIEnv *jni, jclass k, jlong size) {
    jlong id = 0;
    if (!k || (*tags)->GetTag(tags, k, &id) != JVMTI_ERROR_NONE) return 0;
    if (id) return (uint32_t)id;
    os_lock(&define_lock);
    if ((*tags)->GetTag(tags, k, &id) == JVMTI_ERROR_NONE && !id && ntypes < MOST_TYPES)
        id = define_type(jni, k, size);
    os_unlock(&define_lock);
    return (uint32_t)id;
}
