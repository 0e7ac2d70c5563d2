/* NVAPI's thermal channels (libnvidia-api.so.1), which the driver hands out by number.
 *
 * It lists the cards from the last bus to the first, so that nobody can match them to NVML's by their
 * order. A card's keys: hotspot_c and memory_temperature_c are its channels; hotspot_c = auto is
 * a little above temperature_c. nvapi_info = 0 is a card without ThermChannelGetInfo, nvapi_stuck = 1
 * one whose channels never change, nvapi = 0 one that NVAPI does not list. From Blackwell on, channel
 * 1 is the core. Faults have the names below; code 11 ends the process.
 */
#include "softcards.h"

#include <stdlib.h>
#include <string.h>

enum {
    NVAPI_OK = 0,
    NVAPI_ERROR = -1,
    NVAPI_INVALID_HANDLE = -8,
    NVAPI_INCOMPATIBLE_STRUCT = -9,
    NVAPI_NOT_SUPPORTED = -104,
    CRASH = 11,
    CHANNELS = 32,
    NO_CHANNEL = 255,
    BLACKWELL = 100,
    PER_DEGREE = 256,
    USUAL_GAP_C = 11,
};

typedef struct {
    uint32_t kind, type, location, target;
    int32_t scaling, software_offset, lowest, highest;
    uint8_t has_simulation, flags;
    int32_t hardware_offset;
    uint8_t reserved[28], data[16];
} Channel;

typedef struct {
    uint32_t version, mask;
    uint8_t reserved[32];
    Channel channel[CHANNELS];
    uint8_t primary[5];
} Info;

typedef struct {
    uint32_t version, mask;
    uint8_t reserved[32];
    int32_t channel[CHANNELS];
} Status;

#define VERSION(type) ((uint32_t)(sizeof(type) | 2u << 16))
_Static_assert(sizeof(Info) == 2736 && sizeof(Status) == 168, "the driver's sizes");

static int faulty(const char *name, int card) {
    int code = soft_fault(name, card);
    if (code == CRASH) {
        abort();
    }
    return code;
}

static int initialize(void) {
    return faulty("NvAPI_Initialize", -1);
}

static int unload(void) {
    return faulty("NvAPI_Unload", -1);
}

/* A handle is its card's index plus one. */
static int list_cards(void *handles[64], uint32_t *count) {
    const Config *config = soft_config();
    *count = 0;
    for (int i = config->cards - 1; i >= 0; i--) {
        if (soft_number(&config->card[i], "nvapi", 1)) {
            handles[(*count)++] = (void *)(uintptr_t)(i + 1);
        }
    }
    return faulty("NvAPI_EnumPhysicalGPUs", -1);
}

static int enter(const char *name, void *handle, const Card **card) {
    const Config *config = soft_config();
    int index = (int)(uintptr_t)handle - 1;
    if (index < 0 || index >= config->cards) {
        return NVAPI_INVALID_HANDLE;
    }
    *card = &config->card[index];
    return (*card)->is_lost ? NVAPI_ERROR : faulty(name, index);
}

static int bus_id(void *handle, uint32_t *bus) {
    const Card *card = NULL;
    int code = enter("NvAPI_GPU_GetBusId", handle, &card);
    if (code == NVAPI_OK) {
        unsigned domain, device;
        soft_pci(card, &domain, bus, &device);
    }
    return code;
}

static int memory_channel(const Card *card) {
    return card->capability >= BLACKWELL ? 2 : 7;
}

static uint32_t mask_of(const Card *card) {
    bool has_hot_spot = soft_has(card, "hotspot_c") || card->capability >= BLACKWELL;
    bool has_memory = soft_has(card, "memory_temperature_c");
    return 1u | (has_hot_spot ? 2u : 0) | (has_memory ? 1u << memory_channel(card) : 0);
}

static int info_of(void *handle, Info *info) {
    const Card *card = NULL;
    int code = enter("NvAPI_GPU_ThermChannelGetInfo", handle, &card);
    if (code != NVAPI_OK) {
        return code;
    }
    if (!soft_number(card, "nvapi_info", 1)) {
        return NVAPI_NOT_SUPPORTED;
    }
    if (info->version != VERSION(Info)) {
        return NVAPI_INCOMPATIBLE_STRUCT;
    }
    info->mask = mask_of(card);
    memset(info->primary, NO_CHANNEL, sizeof info->primary);
    info->primary[0] = 0;
    if (info->mask & 2u) {
        info->primary[1] = 1;
    }
    if (soft_has(card, "memory_temperature_c")) {
        info->primary[3] = (uint8_t)memory_channel(card);
    }
    return NVAPI_OK;
}

static int32_t value_of(const Card *card, const char *key) {
    static uint32_t calls;
    uint64_t core_c = soft_number(card, "temperature_c", 0);
    uint64_t degrees = soft_is_auto(card, key) ? core_c + USUAL_GAP_C : soft_number(card, key, core_c);
    bool is_stuck = soft_number(card, "nvapi_stuck", 0) != 0;
    uint32_t noise = is_stuck ? 0 : __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 32 * 8;
    return (int32_t)(degrees * PER_DEGREE + noise);
}

static int status_of(void *handle, Status *status) {
    const Card *card = NULL;
    int code = enter("NvAPI_GPU_ThermChannelGetStatus", handle, &card);
    if (code != NVAPI_OK) {
        return code;
    }
    if (status->version != VERSION(Status) || status->mask != mask_of(card)) {
        return NVAPI_INCOMPATIBLE_STRUCT;
    }
    bool is_core = card->capability >= BLACKWELL;
    status->channel[0] = value_of(card, "temperature_c");
    if (status->mask & 2u) {
        status->channel[1] = value_of(card, is_core ? "temperature_c" : "hotspot_c");
    }
    if (soft_has(card, "memory_temperature_c")) {
        status->channel[memory_channel(card)] = value_of(card, "memory_temperature_c");
    }
    return NVAPI_OK;
}

void *nvapi_QueryInterface(uint32_t number) {
    switch (number) {
    case 0x0150E828:
        return initialize;
    case 0xD22BDD7E:
        return unload;
    case 0xE5AC921F:
        return list_cards;
    case 0x1BE0B8E5:
        return bus_id;
    case 0x0BC8163D:
        return info_of;
    case 0x65FE3AAD:
        return status_of;
    default:
        return NULL;
    }
}
