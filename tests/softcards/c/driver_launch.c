/* The driver's modules and launches, which PyTorch uses for code that it compiles at run time. */
#include "driver.h"

/* Code loaded at run time is accepted unread: it runs on any card. */
CUresult cuModuleLoad(CUmodule *module, const char *path) {
    ENTER();
    *module = (CUmodule)path;
    return (CUresult)driver_context();
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    ENTER();
    *module = (CUmodule)image;
    return (CUresult)driver_context();
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values) {
    ENTER();
    *module = (CUmodule)image;
    return (CUresult)driver_context();
}

CUresult cuModuleUnload(CUmodule module) {
    ENTER();
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    ENTER();
    *function = (CUfunction)module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    ENTER();
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    ENTER();
    return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
    ENTER();
    return CUDA_SUCCESS;
}

static CUresult launch(CUstream handle, uint64_t blocks, uint64_t threads) {
    int code = driver_context();
    Stream *stream = soft_stream(handle);
    if (code == 0 && stream == NULL) {
        code = SOFT_INVALID_HANDLE;
    }
    return (CUresult)(code != 0 ? code : soft_launch(stream, NULL, blocks, threads));
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream,
                        void **arguments, void **extra) {
    ENTER();
    return launch(stream, (uint64_t)grid_x * grid_y * grid_z,
                  (uint64_t)block_x * block_y * block_z);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x,
                                   unsigned int block_y, unsigned int block_z, unsigned int shared,
                                   CUstream stream, void **arguments) {
    ENTER();
    return launch(stream, (uint64_t)grid_x * grid_y * grid_z,
                  (uint64_t)block_x * block_y * block_z);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared) {
    ENTER();
    int per_sm = 0;
    soft_attribute(soft_current_card(), CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                   &per_sm);
    *blocks = threads > 0 ? per_sm / threads : 0;
    return CUDA_SUCCESS;
}
