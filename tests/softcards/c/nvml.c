/* NVML's beginning and end, the system, the handles, and what a card is (libnvidia-ml.so.1).
 *
 * Cards stand in PCI bus order and CUDA_VISIBLE_DEVICES hides none of them, as with the real library.
 */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int initialized;

static int start(const char *function) {
    int code = soft_fault(function, -1);
    if (code == NVML_SUCCESS) {
        __atomic_fetch_add(&initialized, 1, __ATOMIC_RELAXED);
    }
    return code;
}

int nvmlInit_v2(void) {
    return start(__func__);
}

int nvmlInit(void) {
    return start("nvmlInit_v2");
}

int nvmlInitWithFlags(unsigned flags) {
    return start("nvmlInit_v2");
}

int nvmlShutdown(void) {
    if (initialized == 0) {
        return NVML_UNINITIALIZED;
    }
    __atomic_fetch_sub(&initialized, 1, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

const char *nvmlErrorString(int code) {
    static const char *const text[] = {
        [0] = "Success",          [1] = "Uninitialized",           [2] = "Invalid Argument",
        [3] = "Not Supported",    [4] = "Insufficient Permissions", [6] = "Not Found",
        [7] = "Insufficient Size", [9] = "Driver Not Loaded",       [10] = "Timeout",
        [12] = "NVML Shared Library Not Found", [13] = "Function Not Found",
        [15] = "GPU is lost",     [18] = "Driver/library version mismatch",
        [20] = "Insufficient Memory",
    };
    bool is_known = code >= 0 && code < (int)(sizeof text / sizeof *text) && text[code] != NULL;
    return is_known ? text[code] : "Unknown Error";
}

int nvml_enter(const char *function) {
    if (initialized == 0) {
        return NVML_UNINITIALIZED;
    }
    return soft_fault(function, -1);
}

int nvml_card_index(Device device) {
    return (int)(uintptr_t)device - 1;
}

int nvml_enter_card(const char *function, Device device, const Card **card) {
    const Config *config = soft_config();
    int index = nvml_card_index(device);
    if (initialized == 0) {
        return NVML_UNINITIALIZED;
    }
    if (index < 0 || index >= config->cards) {
        return NVML_INVALID_ARGUMENT;
    }
    *card = &config->card[index];
    int code = soft_fault(function, index);
    if (code == NVML_SUCCESS && (*card)->is_lost) {
        code = NVML_GPU_IS_LOST;
    }
    return code;
}

int nvml_copy_text(char *to, unsigned length, const char *text) {
    if (strlen(text) + 1 > length) {
        return NVML_INSUFFICIENT_SIZE;
    }
    memcpy(to, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    ENTER();
    return nvml_copy_text(version, length, soft_config()->driver_version);
}

int nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    char text[64];
    ENTER();
    snprintf(text, sizeof text, "%d.%s", soft_config()->cuda_driver / 1000,
             soft_config()->driver_version);
    return nvml_copy_text(version, length, text);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER();
    *version = soft_config()->cuda_driver;
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *version) {
    ENTER();
    *version = soft_config()->cuda_driver;
    return NVML_SUCCESS;
}

int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    char path[64];
    ENTER();
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t size = readlink(path, name, length - 1);
    if (size < 0) {
        return NVML_NOT_FOUND;
    }
    name[size] = '\0';
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER();
    *count = (unsigned)soft_config()->cards;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount(unsigned *count) {
    return nvmlDeviceGetCount_v2(count);
}

static Device handle_of(int index) {
    return (Device)(uintptr_t)(index + 1);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    ENTER();
    if (index >= (unsigned)soft_config()->cards) {
        return NVML_INVALID_ARGUMENT;
    }
    *device = handle_of((int)index);
    return soft_fault(__func__, (int)index);
}

int nvmlDeviceGetHandleByIndex(unsigned index, Device *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    ENTER();
    const Config *config = soft_config();
    for (int i = 0; i < config->cards; i++) {
        if (strcmp(soft_text(&config->card[i], "uuid", ""), uuid) == 0) {
            *device = handle_of(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, Device *device) {
    ENTER();
    const Config *config = soft_config();
    unsigned wanted[3] = {0, 0, 0};
    sscanf(bus_id, "%x:%x:%x", &wanted[0], &wanted[1], &wanted[2]);
    for (int i = 0; i < config->cards; i++) {
        unsigned domain, bus, number;
        soft_pci(&config->card[i], &domain, &bus, &number);
        if (domain == wanted[0] && bus == wanted[1] && number == wanted[2]) {
            *device = handle_of(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, Device *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

int nvmlDeviceGetIndex(Device device, unsigned *index) {
    ENTER_CARD(device);
    *index = (unsigned)nvml_card_index(device);
    return NVML_SUCCESS;
}

/* A text of the configuration; a card without it does not support the query. */
#define TEXT(function, key)                                                                        \
    int function(Device device, char *text, unsigned length) {                                     \
        ENTER_CARD(device);                                                                        \
        const char *value = soft_text(card, key, NULL);                                            \
        return value == NULL ? NVML_NOT_SUPPORTED : nvml_copy_text(text, length, value);           \
    }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetBoardPartNumber, "board_part_number")

typedef struct {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char bus_id[32];
} PciInfo;

typedef struct {
    char bus_id[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    unsigned reserved[4];
} PciInfo2;

int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
    ENTER_CARD(device);
    memset(info, 0, sizeof *info);
    soft_pci(card, &info->domain, &info->bus, &info->device);
    info->device_id = (unsigned)soft_number(card, "pci_device_id", 0);
    info->subsystem_id = (unsigned)soft_number(card, "pci_subsystem_id", 0);
    snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus,
             info->device);
    snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "%04X:%02X:%02X.0",
             info->domain & 0xffff, info->bus & 0xff, info->device & 0xff);
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v2(Device device, PciInfo2 *info) {
    PciInfo full;
    int code = nvmlDeviceGetPciInfo_v3(device, &full);
    if (code == NVML_SUCCESS) {
        *info = (PciInfo2){.domain = full.domain,
                           .bus = full.bus,
                           .device = full.device,
                           .device_id = full.device_id,
                           .subsystem_id = full.subsystem_id};
        memcpy(info->bus_id, full.bus_id_legacy, sizeof info->bus_id);
    }
    return code;
}

int nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    ENTER_CARD(device);
    *major = card->capability / 10;
    *minor = card->capability % 10;
    return NVML_SUCCESS;
}
