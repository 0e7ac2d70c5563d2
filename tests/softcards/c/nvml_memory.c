/* NVML's memory of a card and the processes on it, from the table that CUDA processes keep. */
#include "nvml.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} Memory;

typedef struct {
    unsigned version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} Memory2;

/* Total and free of the whole card. What the driver keeps is the part that CUDA does not see. */
static void sizes(Device device, const Card *card, uint64_t *total, uint64_t *reserved,
                  uint64_t *free) {
    uint64_t cuda_total = soft_number(card, "total_bytes", 0);
    *total = soft_number(card, "nvml_total_bytes", cuda_total);
    *reserved = *total > cuda_total ? *total - cuda_total : 0;
    *free = soft_free_bytes(nvml_card_index(device));
}

int nvmlDeviceGetMemoryInfo(Device device, Memory *memory) {
    ENTER_CARD(device);
    uint64_t total, reserved, free;
    sizes(device, card, &total, &reserved, &free);
    *memory = (Memory){total, free, soft_number(card, "used_bytes", total - free)};
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(Device device, Memory2 *memory) {
    ENTER_CARD(device);
    uint64_t total, reserved, free;
    sizes(device, card, &total, &reserved, &free);
    memory->total = total;
    memory->reserved = reserved;
    memory->free = free;
    memory->used = soft_number(card, "used_bytes", total - reserved - free);
    return NVML_SUCCESS;
}

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} Bar1;

int nvmlDeviceGetBAR1MemoryInfo(Device device, Bar1 *memory) {
    ENTER_CARD(device);
    memory->total = soft_number(card, "bar1_bytes", 256 * MIB);
    memory->used = 2 * MIB;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

typedef struct {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
} ProcessInfo;

typedef struct {
    unsigned pid;
    unsigned long long bytes;
} ProcessInfo1;

enum { LIST = SOFT_PROCESSES + 16 };

static unsigned list(int index, const Card *card, bool graphics, ProcessInfo found[LIST]) {
    unsigned count = 0;
    const Usage *usage = soft_usage();
    const unsigned no_instance = 0xffffffffu;
    for (int i = 0; !graphics && usage != NULL && i < SOFT_PROCESSES; i++) {
        const Process *process = &usage->process[i];
        if (process->pid != 0 && process->card[index].has_context && soft_alive(process)) {
            /* Some platforms cannot tell a process's memory, and answer with this. */
            uint64_t bytes = soft_has(card, "process_bytes")
                                 ? soft_number(card, "process_bytes", 0)
                                 : process->card[index].bytes;
            found[count++] =
                (ProcessInfo){(unsigned)process->pid, bytes, no_instance, no_instance};
        }
    }
    for (int i = 0; i < card->others; i++) {
        if (card->other[i].graphics == graphics) {
            found[count++] = (ProcessInfo){card->other[i].pid, card->other[i].bytes, no_instance,
                                           no_instance};
        }
    }
    return count;
}

static int answer(Device device, const Card *card, bool graphics, unsigned *count,
                  ProcessInfo *infos) {
    ProcessInfo found[LIST];
    unsigned room = *count;
    *count = list(nvml_card_index(device), card, graphics, found);
    if (*count > room) {
        return NVML_INSUFFICIENT_SIZE;
    }
    if (*count > 0) {
        memcpy(infos, found, *count * sizeof *infos);
    }
    return NVML_SUCCESS;
}

#define PROCESSES(function, graphics)                                                              \
    int function(Device device, unsigned *count, ProcessInfo *infos) {                             \
        ENTER_CARD(device);                                                                        \
        return answer(device, card, graphics, count, infos);                                       \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, false)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, false)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, true)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, true)

/* The first version has no instances; PyTorch's out-of-memory text is made from it. */
int nvmlDeviceGetComputeRunningProcesses(Device device, unsigned *count, ProcessInfo1 *infos) {
    ENTER_CARD(device);
    ProcessInfo found[LIST];
    unsigned room = *count;
    *count = list(nvml_card_index(device), card, false, found);
    if (*count > room) {
        return NVML_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < *count; i++) {
        infos[i] = (ProcessInfo1){found[i].pid, found[i].bytes};
    }
    return NVML_SUCCESS;
}

typedef struct {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm;
    unsigned memory;
    unsigned encoder;
    unsigned decoder;
} ProcessSample;

int nvmlDeviceGetProcessUtilization(Device device, ProcessSample *samples, unsigned *count,
                                    unsigned long long since_us) {
    ENTER_CARD(device);
    ProcessInfo found[LIST];
    unsigned room = samples != NULL ? *count : 0;
    int index = nvml_card_index(device);
    *count = list(index, card, false, found);
    if (*count == 0) {
        return NVML_NOT_FOUND;
    }
    if (*count > room) {
        return NVML_INSUFFICIENT_SIZE;
    }
    unsigned percent = soft_is_busy(index) ? 100 : 0;
    for (unsigned i = 0; i < *count; i++) {
        samples[i] = (ProcessSample){found[i].pid, soft_now() / 1000, percent, 0, 0, 0};
    }
    return NVML_SUCCESS;
}

/* Soft cards have no NVLink and no fabric; PyTorch insists on being told so. */
int nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned link, int *type) {
    ENTER_CARD(device);
    return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, void *info) {
    ENTER_CARD(device);
    return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *active) {
    ENTER_CARD(device);
    return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetGpuFabricInfoV(Device device, void *info) {
    ENTER_CARD(device);
    /* version and cluster id, then status and state: 0, not supported. */
    memset((char *)info + 4, 0, 16 + 4 + 4 + 1);
    return NVML_SUCCESS;
}
