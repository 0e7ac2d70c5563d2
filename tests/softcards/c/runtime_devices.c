/* The runtime's devices: numbers, properties, the current one. None of it makes a context but
 * cudaSetDevice, which does since CUDA 12. */
#define _GNU_SOURCE
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int card_of(int device) {
    return soft_card_of(device);
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 0;
    ENTER(DRIVER_ONLY);
    *count = soft_device_count();
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    ENTER(DRIVER_ONLY);
    *device = soft_current_device();
    int card = soft_current_card();
    return runtime_noted(soft_sticky_reaches_set_device(card) ? soft_sticky(card) : 0);
}

cudaError_t cudaSetDevice(int device) {
    ENTER(DRIVER_ONLY);
    int code = soft_set_device(device);
    if (code == 0) {
        code = soft_context(card_of(device));
    }
    if (code == 0 && soft_sticky_reaches_set_device(card_of(device))) {
        code = soft_sticky(card_of(device));
    }
    return runtime_noted(code);
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = soft_config()->cuda_driver;
    return runtime_noted(soft_fault(__func__, -1));
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    ENTER(DRIVER_ONLY);
    if (card_of(device) < 0) {
        return runtime_noted(SOFT_INVALID_DEVICE);
    }
    return runtime_noted(soft_attribute(card_of(device), (int)attribute, value));
}

static int attribute(int card, int wanted) {
    int value = 0;
    soft_attribute(card, wanted, &value);
    return value;
}

static void fill_limits(struct cudaDeviceProp *prop, int card) {
    prop->sharedMemPerBlock = (size_t)attribute(card, cudaDevAttrMaxSharedMemoryPerBlock);
    prop->regsPerBlock = attribute(card, cudaDevAttrMaxRegistersPerBlock);
    prop->warpSize = attribute(card, cudaDevAttrWarpSize);
    prop->maxThreadsPerBlock = attribute(card, cudaDevAttrMaxThreadsPerBlock);
    prop->maxThreadsDim[0] = attribute(card, cudaDevAttrMaxBlockDimX);
    prop->maxThreadsDim[1] = attribute(card, cudaDevAttrMaxBlockDimY);
    prop->maxThreadsDim[2] = attribute(card, cudaDevAttrMaxBlockDimZ);
    prop->maxGridSize[0] = attribute(card, cudaDevAttrMaxGridDimX);
    prop->maxGridSize[1] = attribute(card, cudaDevAttrMaxGridDimY);
    prop->maxGridSize[2] = attribute(card, cudaDevAttrMaxGridDimZ);
    prop->memPitch = 2147483647;
    prop->textureAlignment = 512;
    prop->texturePitchAlignment = 32;
    prop->totalConstMem = (size_t)attribute(card, cudaDevAttrTotalConstantMemory);
    prop->maxThreadsPerMultiProcessor = attribute(card, cudaDevAttrMaxThreadsPerMultiProcessor);
    prop->sharedMemPerMultiprocessor =
        (size_t)attribute(card, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    prop->sharedMemPerBlockOptin =
        (size_t)attribute(card, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    prop->regsPerMultiprocessor = attribute(card, cudaDevAttrMaxRegistersPerMultiprocessor);
    prop->maxBlocksPerMultiProcessor = attribute(card, cudaDevAttrMaxBlocksPerMultiprocessor);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
    ENTER(DRIVER_ONLY);
    int index = card_of(device);
    if (index < 0) {
        return runtime_noted(SOFT_INVALID_DEVICE);
    }
    const Card *card = &soft_config()->card[index];
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "%s", soft_text(card, "name", ""));
    soft_uuid_bytes(card, (unsigned char *)prop->uuid.bytes);
    prop->totalGlobalMem = soft_number(card, "total_bytes", 0);
    prop->major = attribute(index, cudaDevAttrComputeCapabilityMajor);
    prop->minor = attribute(index, cudaDevAttrComputeCapabilityMinor);
    prop->multiProcessorCount = attribute(index, cudaDevAttrMultiProcessorCount);
    prop->pciDomainID = attribute(index, cudaDevAttrPciDomainId);
    prop->pciBusID = attribute(index, cudaDevAttrPciBusId);
    prop->pciDeviceID = attribute(index, cudaDevAttrPciDeviceId);
    prop->l2CacheSize = attribute(index, cudaDevAttrL2CacheSize);
    prop->memoryBusWidth = attribute(index, cudaDevAttrGlobalMemoryBusWidth);
    prop->ECCEnabled = attribute(index, cudaDevAttrEccEnabled);
    prop->cooperativeLaunch = attribute(index, cudaDevAttrCooperativeLaunch);
    prop->concurrentKernels = prop->unifiedAddressing = prop->canMapHostMemory = 1;
    prop->streamPrioritiesSupported = prop->managedMemory = prop->memoryPoolsSupported = 1;
    prop->asyncEngineCount = attribute(index, cudaDevAttrAsyncEngineCount);
#if CUDART_VERSION < 13000
    prop->clockRate = attribute(index, cudaDevAttrClockRate);
    prop->memoryClockRate = attribute(index, cudaDevAttrMemoryClockRate);
    prop->kernelExecTimeoutEnabled = attribute(index, cudaDevAttrKernelExecTimeout);
#endif
    fill_limits(prop, index);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
    ENTER(DRIVER_ONLY);
    if (card_of(device) < 0) {
        return runtime_noted(SOFT_INVALID_DEVICE);
    }
    unsigned domain, bus, number;
    soft_pci(&soft_config()->card[card_of(device)], &domain, &bus, &number);
    snprintf(text, (size_t)length, "%04x:%02x:%02x.0", domain, bus, number);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    ENTER(DRIVER_ONLY);
    if (card_of(device) < 0 || card_of(peer) < 0) {
        return runtime_noted(SOFT_INVALID_DEVICE);
    }
    const Card *card = &soft_config()->card[card_of(device)];
    *can = device != peer && soft_number(card, "peer_access", 0) != 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    ENTER(CONTEXT);
    int can = 0;
    cudaDeviceCanAccessPeer(&can, soft_current_device(), peer);
    return runtime_noted(can ? 0 : cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    ENTER(CONTEXT);
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    ENTER(CONTEXT);
    return runtime_noted(soft_wait_card(soft_current_card()));
}

cudaError_t cudaProfilerStart(void) {
    ENTER(DRIVER_ONLY);
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void) {
    ENTER(DRIVER_ONLY);
    return cudaSuccess;
}

/* A function of the driver stand-in, under its plain name or the newest it is exported by. */
static cudaError_t entry_point(const char *symbol, void **function,
                               enum cudaDriverEntryPointQueryResult *status) {
    static void *driver;
    char versioned[128];
    if (driver == NULL) {
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    }
    snprintf(versioned, sizeof versioned, "%s_v2", symbol);
    *function = NULL;
    if (driver != NULL) {
        *function = dlsym(driver, versioned);
        *function = *function != NULL ? *function : dlsym(driver, symbol);
        *function = *function != NULL ? *function : dlsym(driver, "soft_unsupported");
    }
    if (status != NULL) {
        *status = *function != NULL ? cudaDriverEntryPointSuccess
                                    : cudaDriverEntryPointSymbolNotFound;
    }
    return runtime_noted(*function != NULL ? 0 : SOFT_NOT_FOUND);
}

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status) {
    ENTER(DRIVER_ONLY);
    return entry_point(symbol, function, status);
}
#endif

#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
    ENTER(DRIVER_ONLY);
    return entry_point(symbol, function, status);
}
#endif
