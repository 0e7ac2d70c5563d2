/* The runtime's streams and events. */
#include "runtime.h"

#include <stdlib.h>

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned int flags, int priority) {
    ENTER(CONTEXT);
    *handle = (cudaStream_t)soft_stream_create(soft_current_card(), flags, priority);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned int flags) {
    ENTER(CONTEXT);
    *handle = (cudaStream_t)soft_stream_create(soft_current_card(), flags, 0);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *handle) {
    ENTER(CONTEXT);
    *handle = (cudaStream_t)soft_stream_create(soft_current_card(), 0, 0);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_stream_destroy(stream));
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    *priority = stream->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(stream->capture != NULL ? SOFT_CAPTURE_UNSUPPORTED
                                                 : soft_wait_stream(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_now() < stream->until_ns ? SOFT_NOT_READY : 0);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_stream_wait_event(stream, (const Event *)event));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *argument) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_host_function(stream, function, argument));
}

typedef struct {
    cudaStream_t stream;
    cudaStreamCallback_t callback;
    void *argument;
} Callback;

static void run_callback(void *argument) {
    Callback callback = *(Callback *)argument;
    free(argument);
    callback.callback(callback.stream, cudaSuccess, callback.argument);
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback,
                                  void *argument, unsigned int flags) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    Callback *kept = malloc(sizeof *kept);
    *kept = (Callback){handle, callback, argument};
    return runtime_noted(soft_host_function(stream, run_callback, kept));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    ENTER(CONTEXT);
    *event = (cudaEvent_t)soft_event_create(soft_current_card(), flags);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    ENTER(CONTEXT);
    *event = (cudaEvent_t)soft_event_create(soft_current_card(), 0);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    ENTER(CONTEXT);
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned int flags) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_event_record((Event *)event, stream));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_event_record((Event *)event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    ENTER(CONTEXT);
    return runtime_noted(soft_event_query((const Event *)event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    ENTER(CONTEXT);
    return runtime_noted(soft_event_wait((const Event *)event));
}

cudaError_t cudaEventElapsedTime(float *elapsed_ms, cudaEvent_t start, cudaEvent_t end) {
    ENTER(CONTEXT);
    return runtime_noted(
        soft_event_elapsed(elapsed_ms, (const Event *)start, (const Event *)end));
}
