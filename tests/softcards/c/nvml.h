/* What the files of the NVML stand-in share. NVML's types are declared here, as far as they are
 * used, since no package of the environments brings its header. */
#pragma once
#include "softcards.h"

enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_GPU_IS_LOST = 15,
};

/* A handle is its card's index plus one. */
typedef const void *Device;

int nvml_enter(const char *function);
int nvml_enter_card(const char *function, Device device, const Card **card);
int nvml_card_index(Device device);
int nvml_copy_text(char *to, unsigned length, const char *text);

/* In an entry point about the system, and in one about a card (which it then calls `card`). */
#define ENTER()                                                                                    \
    do {                                                                                           \
        int entered = nvml_enter(__func__);                                                        \
        if (entered != NVML_SUCCESS) {                                                             \
            return entered;                                                                        \
        }                                                                                          \
    } while (0)
#define ENTER_CARD(device)                                                                         \
    const Card *card = NULL;                                                                       \
    do {                                                                                           \
        int entered = nvml_enter_card(__func__, device, &card);                                    \
        if (entered != NVML_SUCCESS) {                                                             \
            return entered;                                                                        \
        }                                                                                          \
    } while (0)
