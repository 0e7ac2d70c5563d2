/* What the files of the CUDA runtime stand-in share: how an entry point begins and ends.
 *
 * An entry asks first for planted faults, then (CONTEXT) makes the context of the current card and
 * refuses once that is broken. Every code but success is kept for cudaGetLastError.
 */
#pragma once
#include "softcards.h"

#include <cuda_runtime_api.h>

cudaError_t runtime_noted(int code);
int runtime_enter(const char *name, bool needs_context);

#define ENTER(needs_context)                                                                       \
    do {                                                                                           \
        int entered = runtime_enter(__func__, needs_context);                                      \
        if (entered != 0) {                                                                        \
            return runtime_noted(entered);                                                         \
        }                                                                                          \
    } while (0)
#define DRIVER_ONLY false
#define CONTEXT true

/* For an argument that is a stream: 0, 1 and 2 are the default stream. */
#define STREAM(name, handle)                                                                       \
    Stream *name = soft_stream(handle);                                                            \
    if (name == NULL) {                                                                            \
        return runtime_noted(SOFT_INVALID_HANDLE);                                                 \
    }

#define REFUSED(function, parameters)                                                              \
    cudaError_t function parameters {                                                              \
        ENTER(DRIVER_ONLY);                                                                        \
        return runtime_noted(SOFT_NOT_SUPPORTED);                                                  \
    }
