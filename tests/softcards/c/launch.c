/* Kernels: which compute capabilities their code is for, and the time a launch takes.
 *
 * Libraries register "fat binaries", containers of machine code and PTX by architecture, and the
 * host functions that stand for their kernels. A launch computes nothing; it checks that the card
 * could run the code, and keeps the stream busy for the card's kernel time.
 */
#include "softcards.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The layout of registered code, as the CUDA compiler emits it. */
typedef struct {
    uint32_t magic;
    uint32_t version;
    const uint8_t *container;
    const void *unused;
} Wrapper;

typedef struct {
    uint32_t magic;
    uint16_t version;
    uint16_t header_size;
    uint64_t size;
} ContainerHeader;

typedef struct {
    uint16_t kind; /* 1 PTX, 2 machine code */
    uint16_t version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size;
    uint32_t unused;
    uint16_t minor;
    uint16_t major;
    uint32_t arch; /* 75 for compute capability 7.5 */
} EntryHeader;

enum { WRAPPER_MAGIC = 0x466243b1, KIND_PTX = 1, KIND_MACHINE = 2, ARCHS = 32 };
static const uint32_t container_magic = 0xba55ed50;

struct Code {
    uint16_t machine[ARCHS];
    uint16_t ptx[ARCHS];
    int machines;
    int ptxs;
};

typedef struct {
    const void *host_function;
    Code *code;
} Kernel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Kernel *kernel; /* open addressing; room is a power of two */
static size_t kernels;
static size_t room;
static Code every; /* all architectures that any registered code is for */

static void note(uint16_t *list, int *count, uint16_t arch) {
    for (int i = 0; i < *count; i++) {
        if (list[i] == arch) {
            return;
        }
    }
    if (*count < ARCHS) {
        list[(*count)++] = arch;
    }
}

static void read_entries(Code *code, const uint8_t *container) {
    const ContainerHeader *header = (const ContainerHeader *)container;
    if (header->magic != container_magic) {
        return;
    }
    const uint8_t *at = container + header->header_size;
    const uint8_t *end = at + header->size;
    while (at + sizeof(EntryHeader) <= end) {
        const EntryHeader *entry = (const EntryHeader *)at;
        if (entry->kind == KIND_MACHINE) {
            note(code->machine, &code->machines, (uint16_t)entry->arch);
            note(every.machine, &every.machines, (uint16_t)entry->arch);
        } else if (entry->kind == KIND_PTX) {
            note(code->ptx, &code->ptxs, (uint16_t)entry->arch);
            note(every.ptx, &every.ptxs, (uint16_t)entry->arch);
        }
        at += entry->header_size + entry->size;
    }
}

Code *soft_register_code(const void *fat_binary) {
    Code *code = calloc(1, sizeof *code);
    const Wrapper *wrapper = fat_binary;
    if (wrapper != NULL && wrapper->magic == WRAPPER_MAGIC && wrapper->container != NULL) {
        read_entries(code, wrapper->container);
    }
    return code;
}

static size_t slot_of(const void *host_function) {
    size_t slot = ((uintptr_t)host_function * 0x9e3779b97f4a7c15ull) >> 20 & (room - 1);
    while (kernel[slot].host_function != NULL && kernel[slot].host_function != host_function) {
        slot = (slot + 1) & (room - 1);
    }
    return slot;
}

static void grow(void) {
    Kernel *old = kernel;
    size_t old_room = room;
    room = room > 0 ? 2 * room : 65536;
    kernel = calloc(room, sizeof *kernel);
    for (size_t i = 0; i < old_room; i++) {
        if (old[i].host_function != NULL) {
            kernel[slot_of(old[i].host_function)] = old[i];
        }
    }
    free(old);
}

void soft_register_kernel(Code *code, const void *host_function, const char *name) {
    pthread_mutex_lock(&lock);
    if (2 * (kernels + 1) > room) {
        grow();
    }
    size_t slot = slot_of(host_function);
    kernels += kernel[slot].host_function == NULL;
    kernel[slot] = (Kernel){host_function, code};
    pthread_mutex_unlock(&lock);
}

const void *soft_kernel(const void *host_function) {
    pthread_mutex_lock(&lock);
    const void *found = room > 0 ? kernel[slot_of(host_function)].host_function : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

static bool runs_on(const Code *code, int capability) {
    for (int i = 0; i < code->machines; i++) {
        /* Machine code runs on its own major version, from its minor version on. */
        if (code->machine[i] / 10 == capability / 10 && code->machine[i] <= capability) {
            return true;
        }
    }
    for (int i = 0; i < code->ptxs; i++) {
        if (code->ptx[i] <= capability) {
            return true;
        }
    }
    return code->machines + code->ptxs == 0;
}

int soft_kernel_status(int card, const void *host_function) {
    if (host_function == NULL) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    Code *code = room > 0 ? kernel[slot_of(host_function)].code : NULL;
    pthread_mutex_unlock(&lock);
    bool runs = code == NULL || runs_on(code, soft_config()->card[card].capability);
    return runs ? 0 : SOFT_NO_KERNEL_IMAGE;
}

int soft_library_status(int card) {
    return runs_on(&every, soft_config()->card[card].capability) ? 0 : SOFT_NO_KERNEL_IMAGE;
}

/* CUDA_LAUNCH_BLOCKING=1, which the driver reads once. */
static bool launches_block(void) {
    static int blocks = -1;
    if (blocks < 0) {
        const char *wanted = getenv("CUDA_LAUNCH_BLOCKING");
        blocks = wanted != NULL && strcmp(wanted, "1") == 0;
    }
    return blocks != 0;
}

int soft_launch(Stream *stream, const void *host_function, uint64_t blocks, uint64_t threads) {
    if (blocks == 0 || threads == 0 || threads > 1024) {
        return SOFT_INVALID_CONFIGURATION;
    }
    int code = soft_kernel_status(stream->card, host_function);
    if (code != 0) {
        return code;
    }
    if (stream->capture != NULL) {
        soft_capture_kernel(stream->capture, 1);
        return 0;
    }
    uint64_t duration_ns = soft_config()->card[stream->card].kernel_ns;
    uint64_t late_code = 0;
    code = soft_launch_fault(stream->card, &duration_ns, &late_code);
    if (code != 0) {
        return code;
    }
    uint64_t end = soft_push(stream, duration_ns);
    if (late_code != 0) {
        soft_break(stream->card, (int)(uint32_t)late_code, end, (late_code >> 32) != 0);
    }
    __atomic_fetch_add(&soft_share(stream->card)->launches, 1, __ATOMIC_RELAXED);
    if (launches_block()) {
        soft_wait_until(end);
        return soft_sticky(stream->card);
    }
    return 0;
}
