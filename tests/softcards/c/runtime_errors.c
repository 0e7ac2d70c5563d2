/* The runtime's entry rule, its last error, and the words for its codes. */
#include "runtime.h"

#include <string.h>

static __thread int last_error;

static const struct {
    int code;
    const char *name;
    const char *text;
} word[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {4, "cudaErrorCudartUnloading", "driver shutting down"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {35, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {46, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {201, "cudaErrorDeviceUninitialized", "invalid device context"},
    {209, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {214, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {217, "cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {702, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {716, "cudaErrorMisalignedAddress", "misaligned address"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {803, "cudaErrorSystemDriverMismatch",
     "system has unsupported display driver / cuda driver combination"},
    {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {999, "cudaErrorUnknown", "unknown error"},
};

cudaError_t runtime_noted(int code) {
    if (code != 0) {
        last_error = code;
    }
    return (cudaError_t)code;
}

int runtime_enter(const char *name, bool needs_context) {
    int code = soft_start(CUDART_VERSION);
    if (code == SOFT_INSUFFICIENT_DRIVER || code == SOFT_NOT_INITIALIZED) {
        return code;
    }
    int card = soft_current_card();
    int planted = soft_fault(name, card);
    if (planted != 0 || code != 0) {
        return planted != 0 ? planted : code;
    }
    if (needs_context) {
        code = soft_context(card);
        return code != 0 ? code : soft_sticky(card);
    }
    return 0;
}

cudaError_t cudaGetLastError(void) {
    int sticky = soft_sticky(soft_current_card());
    int code = sticky != 0 && soft_has_context(soft_current_card()) ? sticky : last_error;
    last_error = 0;
    return (cudaError_t)code;
}

cudaError_t cudaPeekAtLastError(void) {
    int sticky = soft_sticky(soft_current_card());
    return (cudaError_t)(sticky != 0 && soft_has_context(soft_current_card()) ? sticky
                                                                              : last_error);
}

const char *cudaGetErrorName(cudaError_t error) {
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        if (word[i].code == (int)error) {
            return word[i].name;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        if (word[i].code == (int)error) {
            return word[i].text;
        }
    }
    return "unrecognized error code";
}
