/* cuBLAS's names: every product is one launch on the handle's stream, and computes nothing.
 *
 * The library itself brings a runtime of its own and refuses without a real driver. These
 * definitions carry no version, so when preloaded they win over libcublas's. Argument lists are left
 * open: only the handle, always first, is looked at.
 */
#include "softcards.h"

#include <stdlib.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, EXECUTION_FAILED = 13, ARCH_MISMATCH = 8 };

typedef struct {
    const void *stream;
    int math_mode;
    int pointer_mode;
} Handle;

static int status(int code) {
    if (code == SOFT_OUT_OF_MEMORY) {
        return ALLOC_FAILED;
    }
    if (code == SOFT_NO_KERNEL_IMAGE) {
        return ARCH_MISMATCH;
    }
    return code != 0 ? EXECUTION_FAILED : SUCCESS;
}

static int launch_on(const void *handle) {
    int card = soft_current_card();
    Stream *stream = soft_stream(handle);
    int code = soft_context(card);
    code = code != 0 ? code : soft_sticky(card);
    code = code != 0 ? code : soft_library_status(card);
    code = code == 0 && stream == NULL ? SOFT_INVALID_HANDLE : code;
    return status(code != 0 ? code : soft_launch(stream, NULL, 1, 1));
}

int cublasCreate_v2(Handle **handle) {
    int code = soft_fault(__func__, soft_current_card());
    if (code == 0) {
        code = soft_context(soft_current_card());
    }
    if (code == 0) {
        code = soft_sticky(soft_current_card());
    }
    *handle = code == 0 ? calloc(1, sizeof **handle) : NULL;
    return code == 0 ? SUCCESS : code == SOFT_OUT_OF_MEMORY ? ALLOC_FAILED : NOT_INITIALIZED;
}

int cublasDestroy_v2(Handle *handle) {
    free(handle);
    return SUCCESS;
}

int cublasSetStream_v2(Handle *handle, const void *stream) {
    handle->stream = stream;
    return SUCCESS;
}

int cublasSetMathMode(Handle *handle, int mode) {
    handle->math_mode = mode;
    return SUCCESS;
}

int cublasGetMathMode(const Handle *handle, int *mode) {
    *mode = handle->math_mode;
    return SUCCESS;
}

int cublasSetPointerMode_v2(Handle *handle, int mode) {
    handle->pointer_mode = mode;
    return SUCCESS;
}

int cublasGetPointerMode_v2(const Handle *handle, int *mode) {
    *mode = handle->pointer_mode;
    return SUCCESS;
}

int cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t size) {
    return SUCCESS;
}

int cublasSetSmCountTarget(Handle *handle, int count) {
    return SUCCESS;
}

#define PRODUCT(function)                                                                          \
    int function(const Handle *handle) {                                                           \
        int code = soft_fault(__func__, soft_current_card());                                      \
        return code != 0 ? status(code) : launch_on(handle->stream);                               \
    }

/* The four precisions: single, double, complex, double complex. */
#define PRODUCTS(function)                                                                         \
    PRODUCT(cublasS##function)                                                                     \
    PRODUCT(cublasD##function)                                                                     \
    PRODUCT(cublasC##function)                                                                     \
    PRODUCT(cublasZ##function)

PRODUCTS(gemm_v2)
PRODUCTS(gemv_v2)
PRODUCTS(gemmBatched)
PRODUCTS(gemmStridedBatched)
PRODUCTS(trsm_v2)
PRODUCTS(trsmBatched)
PRODUCT(cublasSdot_v2)
PRODUCT(cublasDdot_v2)
PRODUCT(cublasCdotu_v2)
PRODUCT(cublasCdotc_v2)
PRODUCT(cublasZdotu_v2)
PRODUCT(cublasZdotc_v2)
PRODUCT(cublasDotEx)
PRODUCT(cublasSgemmEx)
PRODUCT(cublasGemmEx)
PRODUCT(cublasGemmStridedBatchedEx)
PRODUCT(cublasGemmBatchedEx)

/* cuBLASLt: descriptions are opaque blocks, and the heuristic knows one algorithm. */
typedef struct {
    uint64_t algorithm[8];
    size_t workspace_size;
    int state;
    float waves;
    int reserved[4];
} HeuristicResult;

int cublasLtCreate(void **handle) {
    *handle = calloc(1, 64);
    return SUCCESS;
}

size_t cublasLtGetVersion(void) {
    return 130000;
}

#define DESCRIPTION(name)                                                                          \
    int name##Create(void **description) {                                                         \
        *description = calloc(1, 64);                                                              \
        return SUCCESS;                                                                            \
    }                                                                                              \
    int name##Destroy(void *description) {                                                         \
        free(description);                                                                         \
        return SUCCESS;                                                                            \
    }                                                                                              \
    int name##SetAttribute(void *description, int attribute, const void *value, size_t size) {     \
        return SUCCESS;                                                                            \
    }

DESCRIPTION(cublasLtMatmulDesc)
DESCRIPTION(cublasLtMatmulPreference)
DESCRIPTION(cublasLtMatrixLayout)

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                   void *preference, int requested, HeuristicResult *results,
                                   int *count) {
    results[0] = (HeuristicResult){.waves = 1.0f};
    *count = requested > 0 ? 1 : 0;
    return SUCCESS;
}

int cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const void *algorithm, void *workspace,
                   size_t workspace_size, const void *stream) {
    int code = soft_fault(__func__, soft_current_card());
    return code != 0 ? status(code) : launch_on(stream);
}
