/* The runtime's memory: device, pinned, pooled; copies and fills. */
#include "runtime.h"

#include <string.h>

cudaError_t cudaMalloc(void **pointer, size_t size) {
    ENTER(CONTEXT);
    return runtime_noted(soft_malloc(soft_current_card(), pointer, size));
}

cudaError_t cudaFree(void *pointer) {
    ENTER(CONTEXT);
    return runtime_noted(soft_free(pointer));
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    ENTER(CONTEXT);
    int card = soft_current_card();
    *free = soft_free_bytes(card);
    *total = soft_number(&soft_config()->card[card], "total_bytes", 0);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags) {
    ENTER(CONTEXT);
    return runtime_noted(soft_pinned_alloc(pointer, size));
}

cudaError_t cudaFreeHost(void *pointer) {
    ENTER(CONTEXT);
    return runtime_noted(soft_pinned_free(pointer));
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int flags) {
    ENTER(CONTEXT);
    return runtime_noted(soft_register(pointer, size));
}

cudaError_t cudaHostUnregister(void *pointer) {
    ENTER(CONTEXT);
    return runtime_noted(soft_unregister(pointer));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags) {
    ENTER(CONTEXT);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *pointer) {
    ENTER(DRIVER_ONLY);
    Range range;
    memset(attributes, 0, sizeof *attributes);
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -2;
    if (!soft_find(pointer, &range)) {
        attributes->hostPointer = (void *)pointer;
        return cudaSuccess;
    }
    attributes->device = soft_device_of(range.card);
    attributes->devicePointer = (void *)pointer;
    if (range.kind == RANGE_PINNED || range.kind == RANGE_REGISTERED) {
        attributes->type = cudaMemoryTypeHost;
        attributes->hostPointer = (void *)pointer;
    } else {
        attributes->type = cudaMemoryTypeDevice;
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_copy(to, from, size, stream, false));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    ENTER(CONTEXT);
    return runtime_noted(soft_copy(to, from, size, soft_stream(NULL), true));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t size, cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_copy(to, from, size, stream, false));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    int code = 0;
    for (size_t row = 0; row < height && code == 0; row++) {
        code = soft_copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width,
                         stream, false);
    }
    return runtime_noted(code);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
                               enum cudaMemcpyKind kind) {
    ENTER(CONTEXT);
    return cudaSuccess; /* only kernels read symbols, and they do nothing */
}

cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    ENTER(CONTEXT);
    *pointer = (void *)symbol;
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t size) {
    ENTER(CONTEXT);
    return runtime_noted(soft_set_memory(to, (unsigned char)value, 1, size, soft_stream(NULL)));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_set_memory(to, (unsigned char)value, 1, size, stream));
}

/* One pool a card, that gives everything back at once. */
cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_malloc(stream->card, pointer, size));
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_free(pointer));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    ENTER(DRIVER_ONLY);
    if (soft_card_of(device) < 0) {
        return runtime_noted(SOFT_INVALID_DEVICE);
    }
    *pool = (cudaMemPool_t)(uintptr_t)(soft_card_of(device) + 1);
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    ENTER(DRIVER_ONLY);
    int card = (int)(uintptr_t)pool - 1;
    uint64_t context =
        soft_has_context(card) ? soft_number(&soft_config()->card[card], "context_bytes", 0) : 0;
    uint64_t held = soft_share(card)->bytes - context;
    switch (attribute) {
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh: *(uint64_t *)value = held; break;
    case cudaMemPoolAttrReleaseThreshold: *(uint64_t *)value = 0; break;
    default: *(int *)value = 1; break;
    }
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    ENTER(DRIVER_ONLY);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access,
                                 size_t count) {
    ENTER(DRIVER_ONLY);
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
    ENTER(DRIVER_ONLY);
    return cudaSuccess;
}

/* Memory and events are not shared between processes. */
REFUSED(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer))
REFUSED(cudaIpcOpenMemHandle, (void **pointer, cudaIpcMemHandle_t handle, unsigned int flags))
REFUSED(cudaIpcCloseMemHandle, (void *pointer))
REFUSED(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event))
REFUSED(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle))
