/* The driver's memory: what a pointer is, and the mapping of memory that expandable segments use. */
#include "driver.h"

#include <sys/mman.h>

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    ENTER();
    Range range;
    if (!soft_find((const void *)pointer, &range)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = (CUcontext)(uintptr_t)(range.card + 1);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = pointer; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(void **)value = (void *)pointer; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = soft_device_of(range.card); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = range.kind == RANGE_PINNED || range.kind == RANGE_REGISTERED
                                 ? CU_MEMORYTYPE_HOST
                                 : CU_MEMORYTYPE_DEVICE;
        break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free, size_t *total) {
    ENTER();
    int code = driver_context();
    *free = soft_free_bytes(soft_current_card());
    *total = soft_number(&soft_config()->card[soft_current_card()], "total_bytes", 0);
    return (CUresult)code;
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
    ENTER();
    Range range;
    if (!soft_find((const void *)pointer, &range)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != NULL) {
        *base = (CUdeviceptr)range.base;
    }
    if (size != NULL) {
        *size = range.size;
    }
    return CUDA_SUCCESS;
}

/* Expandable segments: reserved addresses, physical memory, and mappings between them. */
CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option) {
    ENTER();
    *granularity = 2 * MIB;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment, CUdeviceptr fixed,
                             unsigned long long flags) {
    ENTER();
    void *address = soft_window(SOFT_CARDS, size);
    void *memory = MAP_FAILED;
    if (address != NULL) {
        memory = mmap(address, size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    }
    *pointer = memory != MAP_FAILED ? (CUdeviceptr)memory : 0;
    return memory != MAP_FAILED ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
    ENTER();
    return munmap((void *)pointer, size) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags) {
    ENTER();
    int card = soft_card_of(prop->location.id);
    if (card < 0) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    uint64_t created = 0;
    int code = soft_context(card);
    code = code != 0 ? code : soft_sticky(card);
    code = code != 0 ? code : soft_physical_create(&created, card, size);
    *handle = created;
    return (CUresult)code;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    ENTER();
    return (CUresult)soft_physical_release(handle);
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    ENTER();
    return offset != 0 ? CUDA_ERROR_NOT_SUPPORTED
                       : (CUresult)soft_map((void *)pointer, size, handle);
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
    ENTER();
    return (CUresult)soft_unmap((void *)pointer, size);
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *access,
                        size_t count) {
    ENTER();
    return CUDA_SUCCESS;
}
