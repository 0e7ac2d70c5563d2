/* CUDA's view of the cards: their order, which of them are visible, and the contexts made.
 *
 * As with a real driver the environment is read once, at the first call. Default order is fastest
 * first; CUDA_VISIBLE_DEVICES is read after that order, by number or by the beginning of a UUID, and
 * the first entry that names no card ends the list.
 */
#include "softcards.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int visible[SOFT_CARDS];
static int visible_count;
static bool has_context[SOFT_CARDS];
static bool is_forked;
static __thread int current;

void soft_lock(void) {
    pthread_mutex_lock(&state);
}

void soft_unlock(void) {
    pthread_mutex_unlock(&state);
}

static int order[SOFT_CARDS];

static void sort_cards(const Config *config) {
    const char *wanted = getenv("CUDA_DEVICE_ORDER");
    bool by_bus = wanted != NULL && strcmp(wanted, "PCI_BUS_ID") == 0;
    for (int i = 0; i < config->cards; i++) {
        int place = i;
        uint64_t speed = soft_number(&config->card[i], "speed", 0);
        while (!by_bus && place > 0 &&
               soft_number(&config->card[order[place - 1]], "speed", 0) < speed) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = i;
    }
}

/* The card that one entry of CUDA_VISIBLE_DEVICES names, -1 for none. */
static int named_card(const Config *config, const char *entry, size_t length) {
    if (length > 4 && strncmp(entry, "GPU-", 4) == 0) {
        int found = -1;
        for (int i = 0; i < config->cards; i++) {
            if (strncmp(soft_text(&config->card[i], "uuid", ""), entry, length) == 0) {
                if (found >= 0) {
                    return -1;
                }
                found = i;
            }
        }
        return found;
    }
    char *end;
    long number = strtol(entry, &end, 10);
    return end != entry && number >= 0 && number < config->cards ? order[number] : -1;
}

static void choose_visible(void) {
    const Config *config = soft_config();
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    sort_cards(config);
    if (list == NULL) {
        memcpy(visible, order, sizeof order);
        visible_count = config->cards;
        return;
    }
    while (*list != '\0' && visible_count < SOFT_CARDS) {
        list += strspn(list, " ");
        size_t length = strcspn(list, ", ");
        int card = named_card(config, list, length);
        if (card < 0) {
            break;
        }
        for (int i = 0; i < visible_count; i++) {
            if (visible[i] == card) {
                visible_count = 0;
                return;
            }
        }
        visible[visible_count++] = card;
        list += length + strspn(list + length, " ");
        list += *list == ',' ? 1 : 0;
    }
}

static void forked(void) {
    pthread_mutex_init(&state, NULL);
    is_forked = true;
}

static void start_once(void) {
    choose_visible();
    pthread_atfork(NULL, NULL, forked);
}

int soft_start(int runtime_version) {
    const Config *config = soft_config();
    if (config->cuda_driver / 1000 < runtime_version / 1000) {
        return SOFT_INSUFFICIENT_DRIVER;
    }
    pthread_once(&once, start_once);
    if (is_forked) {
        return SOFT_NOT_INITIALIZED;
    }
    return visible_count > 0 ? 0 : SOFT_NO_DEVICE;
}

int soft_device_count(void) {
    return visible_count;
}

int soft_card_of(int device) {
    return device >= 0 && device < visible_count ? visible[device] : -1;
}

int soft_device_of(int card) {
    for (int i = 0; i < visible_count; i++) {
        if (visible[i] == card) {
            return i;
        }
    }
    return -1;
}

int soft_current_device(void) {
    return current;
}

int soft_current_card(void) {
    return soft_card_of(current);
}

int soft_set_device(int device) {
    if (soft_card_of(device) < 0) {
        return SOFT_INVALID_DEVICE;
    }
    current = device;
    return 0;
}

bool soft_has_context(int card) {
    return card >= 0 && has_context[card];
}

int soft_context(int card) {
    if (card < 0) {
        return SOFT_INVALID_DEVICE;
    }
    soft_lock();
    int code = 0;
    if (!has_context[card]) {
        const Card *wanted = &soft_config()->card[card];
        code = wanted->is_lost
                   ? SOFT_DEVICES_UNAVAILABLE
                   : soft_take(card, soft_number(wanted, "context_bytes", 0));
        has_context[card] = code == 0;
        soft_share(card)->has_context = code == 0;
    }
    soft_unlock();
    return code;
}

void soft_pci(const Card *card, unsigned *domain, unsigned *bus, unsigned *device) {
    *domain = *bus = *device = 0;
    sscanf(soft_text(card, "pci_bus_id", ""), "%x:%x:%x", domain, bus, device);
}

void soft_uuid_bytes(const Card *card, unsigned char bytes[16]) {
    const char *text = soft_text(card, "uuid", "GPU-") + 4;
    memset(bytes, 0, 16);
    for (int i = 0; i < 16 && *text != '\0'; i++) {
        text += *text == '-' ? 1 : 0;
        unsigned byte = 0;
        sscanf(text, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
        text += 2;
    }
}

/* Attributes that differ between cards come from the configuration, under these keys. */
static const struct {
    int attribute;
    const char *key;
} by_card[] = {
    {cudaDevAttrMultiProcessorCount, "sms"},
    {cudaDevAttrClockRate, "clock_khz"},
    {cudaDevAttrMemoryClockRate, "memory_clock_khz"},
    {cudaDevAttrGlobalMemoryBusWidth, "bus_width_bits"},
    {cudaDevAttrL2CacheSize, "l2_bytes"},
    {cudaDevAttrMaxThreadsPerMultiProcessor, "threads_per_sm"},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, "shared_per_sm_bytes"},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, "shared_optin_bytes"},
    {cudaDevAttrKernelExecTimeout, "kernel_timeout"},
    {cudaDevAttrEccEnabled, "ecc"},
};

/* Attributes that are alike on every card since Maxwell. */
static const struct {
    int attribute;
    int value;
} always[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 16},
    {cudaDevAttrAsyncEngineCount, 2},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrHostRegisterSupported, 1},
    {102 /* virtual memory management, a number of the driver alone */, 1},
};

int soft_attribute(int card, int attribute, int *value) {
    const Card *wanted = &soft_config()->card[card];
    unsigned domain, bus, device;
    soft_pci(wanted, &domain, &bus, &device);
    int capability = wanted->capability;
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = capability / 10; return 0;
    case cudaDevAttrComputeCapabilityMinor: *value = capability % 10; return 0;
    case cudaDevAttrPciDomainId: *value = (int)domain; return 0;
    case cudaDevAttrPciBusId: *value = (int)bus; return 0;
    case cudaDevAttrPciDeviceId: *value = (int)device; return 0;
    case cudaDevAttrCooperativeLaunch: *value = capability >= 60; return 0;
    default: break;
    }
    for (size_t i = 0; i < sizeof by_card / sizeof *by_card; i++) {
        if (by_card[i].attribute == attribute) {
            *value = (int)soft_number(wanted, by_card[i].key, 0);
            return 0;
        }
    }
    *value = 0;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        if (always[i].attribute == attribute) {
            *value = always[i].value;
        }
    }
    return 0;
}
