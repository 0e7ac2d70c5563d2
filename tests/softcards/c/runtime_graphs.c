/* The runtime's graphs: capture and launch. Graphs built node by node are refused. */
#include "runtime.h"

#include <stdio.h>

static enum cudaStreamCaptureStatus status_of(const Stream *stream) {
    return stream->capture != NULL ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    /* The legacy default stream cannot be captured. */
    return runtime_noted((uintptr_t)handle <= 1 ? SOFT_CAPTURE_UNSUPPORTED
                                                : soft_capture_begin(stream));
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_capture_end(stream, (Graph **)graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    *status = status_of(stream);
    return cudaSuccess;
}

static void capture_status(const Stream *stream, enum cudaStreamCaptureStatus *status,
                           unsigned long long *id, cudaGraph_t *graph,
                           const cudaGraphNode_t **dependencies, size_t *count) {
    *status = status_of(stream);
    if (stream->capture == NULL) {
        return;
    }
    if (id != NULL) {
        *id = stream->capture->id;
    }
    if (graph != NULL) {
        *graph = (cudaGraph_t)stream->capture;
    }
    if (dependencies != NULL) {
        *dependencies = NULL;
    }
    if (count != NULL) {
        *count = 0;
    }
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    if (edges != NULL) {
        *edges = NULL;
    }
    capture_status(stream, status, id, graph, dependencies, count);
    return cudaSuccess;
}

REFUSED(cudaStreamBeginCaptureToGraph,
        (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
         const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode))
REFUSED(cudaStreamUpdateCaptureDependencies,
        (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
         size_t count, unsigned int flags))
REFUSED(cudaGraphAddNode, (cudaGraphNode_t * node, cudaGraph_t graph,
                           const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                           size_t count, struct cudaGraphNodeParams *parameters))
REFUSED(cudaGraphConditionalHandleCreate, (cudaGraphConditionalHandle * handle, cudaGraph_t graph,
                                           unsigned int value, unsigned int flags))
REFUSED(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                       cudaGraphEdgeData *edges, size_t *count))
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies, size_t *count) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    capture_status(stream, status, id, graph, dependencies, count);
    return cudaSuccess;
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    static __thread enum cudaStreamCaptureMode current;
    enum cudaStreamCaptureMode previous = current;
    ENTER(DRIVER_ONLY);
    current = *mode;
    *mode = previous;
    return cudaSuccess;
}

static cudaError_t instantiate(cudaGraphExec_t *executable, cudaGraph_t graph) {
    *executable = (cudaGraphExec_t)soft_graph_copy((const Graph *)graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags) {
    ENTER(CONTEXT);
    return instantiate(executable, graph);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags) {
    ENTER(CONTEXT);
    return instantiate(executable, graph);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
    ENTER(CONTEXT);
    STREAM(stream, handle);
    return runtime_noted(soft_graph_launch((const Graph *)executable, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    ENTER(DRIVER_ONLY);
    soft_graph_free((Graph *)executable);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    ENTER(DRIVER_ONLY);
    soft_graph_free((Graph *)graph);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    ENTER(DRIVER_ONLY);
    const Graph *captured = (const Graph *)graph;
    if (nodes == NULL) {
        *count = (size_t)captured->nodes;
    }
    for (size_t i = 0; nodes != NULL && i < *count; i++) {
        nodes[i] = NULL;
    }
    return cudaSuccess;
}

REFUSED(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned int flags))
