/* The runtime's kernels: registration by the libraries' start-up code, attributes, launches. */
#include "runtime.h"

#include <string.h>

/* The compiler's own entry points, which no public header declares for C. */
typedef const void *RegisteredKernel;

void **__cudaRegisterFatBinary(void *fat_binary) {
    return (void **)soft_register_code(fat_binary);
}

void __cudaRegisterFatBinaryEnd(void **code) {
}

void __cudaUnregisterFatBinary(void **code) {
}

char __cudaInitModule(void **code) {
    return 1;
}

void __cudaRegisterFunction(void **code, const char *host_function, char *device_function,
                            const char *name, int thread_limit, void *thread_id, void *block_id,
                            void *block_dim, void *grid_dim, int *warp_size) {
    soft_register_kernel((Code *)code, host_function, name);
}

void __cudaRegisterVar(void **code, char *host_variable, char *device_address, const char *name,
                       int ext, size_t size, int constant, int global) {
}

static __thread struct {
    dim3 grid;
    dim3 block;
    size_t shared;
    cudaStream_t stream;
} configuration[8];
static __thread int configurations;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
    if (configurations == (int)(sizeof configuration / sizeof *configuration)) {
        return SOFT_INVALID_CONFIGURATION;
    }
    configuration[configurations].grid = grid;
    configuration[configurations].block = block;
    configuration[configurations].shared = shared;
    configuration[configurations++].stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (configurations == 0) {
        return runtime_noted(SOFT_INVALID_CONFIGURATION);
    }
    configurations--;
    *grid = configuration[configurations].grid;
    *block = configuration[configurations].block;
    *shared = configuration[configurations].shared;
    *(cudaStream_t *)stream = configuration[configurations].stream;
    return cudaSuccess;
}

static uint64_t volume(dim3 size) {
    return (uint64_t)size.x * size.y * size.z;
}

static cudaError_t launch(const void *function, dim3 grid, dim3 block, cudaStream_t handle) {
    STREAM(stream, handle);
    return runtime_noted(soft_launch(stream, function, volume(grid), volume(block)));
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream) {
    ENTER(CONTEXT);
    return launch(function, grid, block, stream);
}

cudaError_t __cudaGetKernel(RegisteredKernel *kernel, const void *function) {
    *kernel = soft_kernel(function);
    return runtime_noted(*kernel != NULL ? 0 : cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaLaunchKernel(RegisteredKernel kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
    ENTER(CONTEXT);
    return launch(kernel, grid, block, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
    ENTER(CONTEXT);
    return launch(function, config->gridDim, config->blockDim, config->stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared, cudaStream_t stream) {
    ENTER(CONTEXT);
    return launch(function, grid, block, stream);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    ENTER(CONTEXT);
    int card = soft_current_card();
    int code = soft_kernel_status(card, function);
    if (code != 0) {
        return runtime_noted(code);
    }
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->binaryVersion = attributes->ptxVersion = soft_config()->card[card].capability;
    attributes->maxDynamicSharedSizeBytes = 49152;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
    ENTER(CONTEXT);
    return runtime_noted(soft_kernel_status(soft_current_card(), function));
}

static int blocks_per_sm(int threads) {
    int per_sm = 0;
    soft_attribute(soft_current_card(), cudaDevAttrMaxThreadsPerMultiProcessor, &per_sm);
    return threads > 0 ? per_sm / threads : 0;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *function,
                                                                   int threads, size_t shared,
                                                                   unsigned int flags) {
    ENTER(CONTEXT);
    *blocks = blocks_per_sm(threads);
    return runtime_noted(soft_kernel_status(soft_current_card(), function));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t shared) {
    ENTER(CONTEXT);
    *blocks = blocks_per_sm(threads);
    return runtime_noted(soft_kernel_status(soft_current_card(), function));
}

#if CUDART_VERSION >= 13000
/* Code loaded at run time is accepted unread: it runs on any card. */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jit_options, void **jit_values,
                                unsigned int jit_count, enum cudaLibraryOption *options,
                                void **values, unsigned int count) {
    ENTER(DRIVER_ONLY);
    *library = (cudaLibrary_t)code;
    return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    ENTER(DRIVER_ONLY);
    return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    ENTER(DRIVER_ONLY);
    *kernel = (cudaKernel_t)name;
    return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                            int value, int device) {
    ENTER(DRIVER_ONLY);
    return cudaSuccess;
}
#endif
