/* Captured work: how many kernels, which copies and fills; launching it does them again. */
#include "softcards.h"

#include <stdlib.h>
#include <string.h>

typedef enum { NODE_KERNELS, NODE_COPY, NODE_FILL } NodeKind;

typedef struct Node {
    NodeKind kind;
    uint64_t count;
    void *to;
    const void *from;
    unsigned value;
    int width;
} Node;

int soft_capture_begin(Stream *stream) {
    static uint64_t last_id;
    if (stream->capture != NULL) {
        return SOFT_CAPTURE_UNSUPPORTED;
    }
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    stream->is_origin = true;
    return 0;
}

int soft_capture_end(Stream *stream, Graph **graph) {
    if (stream->capture == NULL || !stream->is_origin) {
        return SOFT_CAPTURE_UNSUPPORTED;
    }
    *graph = stream->capture;
    stream->capture = NULL;
    return 0;
}

static Node *add(Graph *graph) {
    if (graph->nodes == graph->room) {
        graph->room = graph->room > 0 ? 2 * graph->room : 16;
        graph->node = realloc(graph->node, (size_t)graph->room * sizeof *graph->node);
    }
    return &graph->node[graph->nodes++];
}

void soft_capture_kernel(Graph *graph, uint64_t kernels) {
    *add(graph) = (Node){.kind = NODE_KERNELS, .count = kernels};
}

void soft_capture_copy(Graph *graph, void *to, const void *from, uint64_t size) {
    *add(graph) = (Node){.kind = NODE_COPY, .count = size, .to = to, .from = from};
}

void soft_capture_fill(Graph *graph, void *to, unsigned value, int width, uint64_t count) {
    *add(graph) =
        (Node){.kind = NODE_FILL, .count = count, .to = to, .value = value, .width = width};
}

Graph *soft_graph_copy(const Graph *graph) {
    Graph *copy = calloc(1, sizeof *copy);
    *copy = *graph;
    copy->room = copy->nodes;
    copy->node = malloc((size_t)copy->nodes * sizeof *copy->node + 1);
    memcpy(copy->node, graph->node, (size_t)copy->nodes * sizeof *copy->node);
    return copy;
}

void soft_graph_free(Graph *graph) {
    free(graph->node);
    free(graph);
}

int soft_graph_launch(const Graph *graph, Stream *stream) {
    for (int i = 0; i < graph->nodes; i++) {
        const Node *node = &graph->node[i];
        int code = 0;
        for (uint64_t k = 0; node->kind == NODE_KERNELS && k < node->count && code == 0; k++) {
            code = soft_launch(stream, NULL, 1, 1);
        }
        if (node->kind == NODE_COPY) {
            code = soft_copy(node->to, node->from, node->count, stream, false);
        } else if (node->kind == NODE_FILL) {
            code = soft_set_memory(node->to, node->value, node->width, node->count, stream);
        }
        if (code != 0) {
            return code;
        }
    }
    return 0;
}
