/* The driver's names (libcuda.so.1): what PyTorch's NVRTC stub links and what expandable segments
 * ask for by name. Contexts, streams and memory are those of the runtime stand-in. */
#include "driver.h"

#include <stdio.h>

int driver_enter(const char *name) {
    int code = soft_start(0);
    int planted = code == SOFT_NOT_INITIALIZED ? 0 : soft_fault(name, soft_current_card());
    return planted != 0 ? planted : code;
}

int driver_context(void) {
    int code = soft_context(soft_current_card());
    return code != 0 ? code : soft_sticky(soft_current_card());
}

CUresult cuInit(unsigned int flags) {
    ENTER();
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    *version = soft_config()->cuda_driver;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    static __thread char words[64];
    snprintf(words, sizeof words, error == 2 ? "out of memory" : "driver error %d", (int)error);
    *text = words;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
    return cuGetErrorString(error, text);
}

CUresult cuDeviceGetCount(int *count) {
    *count = 0;
    ENTER();
    *count = soft_device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER();
    *device = ordinal;
    return soft_card_of(ordinal) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    ENTER();
    int card = soft_card_of(device);
    return card < 0 ? CUDA_ERROR_INVALID_DEVICE
                    : (CUresult)soft_attribute(card, (int)attribute, value);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    ENTER();
    int card = soft_card_of(device);
    if (card < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    snprintf(name, (size_t)length, "%s", soft_text(&soft_config()->card[card], "name", ""));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    ENTER();
    int card = soft_card_of(device);
    if (card < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    soft_uuid_bytes(&soft_config()->card[card], (unsigned char *)uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    ENTER();
    int card = soft_card_of(device);
    *bytes = card < 0 ? 0 : soft_number(&soft_config()->card[card], "total_bytes", 0);
    return card < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* A context's handle is its card's index plus one. */
CUresult cuCtxGetCurrent(CUcontext *context) {
    ENTER();
    int card = soft_current_card();
    *context = soft_has_context(card) ? (CUcontext)(uintptr_t)(card + 1) : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    ENTER();
    int card = (int)(uintptr_t)context - 1;
    return context == NULL ? CUDA_SUCCESS : (CUresult)soft_set_device(soft_device_of(card));
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    ENTER();
    int card = soft_card_of(device);
    *flags = 0;
    *active = card >= 0 && soft_has_context(card);
    return card < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ENTER();
    int card = soft_card_of(device);
    *context = (CUcontext)(uintptr_t)(card + 1);
    return (CUresult)soft_context(card);
}
