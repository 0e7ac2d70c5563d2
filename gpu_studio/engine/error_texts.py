"""What the errors of CUDA, ROCm and XPU mean, by their texts: PyTorch has no classes for them."""

from __future__ import annotations

# ROCm has the second (hipErrorInvalidDeviceFunction) and, while it loads code, the third; SYCL has
# the last two.
_NO_CODE = (
    "no kernel image is available",
    "invalid device function",
    "Unable to find code object for all current devices",
    "No kernel named",
    "PI_ERROR_INVALID_KERNEL_NAME",
)
_NO_CARD = (
    "not compiled with CUDA",
    "not compiled with XPU",
    "Found no NVIDIA driver",
    "NVIDIA driver on your system is too old",
    "No CUDA GPUs are available",
    "No HIP GPUs are available",
    "No XPU devices are available",
    "driver combination",
    "forward compatibility was attempted",
    "requires CUDA support",
)
_DTYPE = (
    "not implemented for",
    "CUBLAS_STATUS_ARCH_MISMATCH",
    "CUBLAS_STATUS_NOT_SUPPORTED",
    "HIPBLAS_STATUS_NOT_SUPPORTED",
    "HIPBLAS_STATUS_ARCH_MISMATCH",
    "Required aspect fp64 is not supported",
    "Required aspect fp16 is not supported",
)
# A status of a library that has no code for a card, or does not start with this driver: an old card
# with a new library. The card's context still works.
_LIBRARIES = {
    "cuDNN": (
        "CUDNN_STATUS_NOT_INITIALIZED",
        "CUDNN_STATUS_NOT_SUPPORTED",
        "CUDNN_STATUS_ARCH_MISMATCH",
        "CUDNN_STATUS_VERSION_MISMATCH",
        "CUDNN_STATUS_SUBLIBRARY",
        "CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING",
        "unable to find an engine to execute this computation",
        "Unable to find a valid cuDNN algorithm",
        "cuDNN version incompatibility",
    ),
    "MIOpen": ("miopenStatus", "MIOpen Error"),
    "rocBLAS": ("rocBLAS error", "HIPBLAS_STATUS_NOT_INITIALIZED", "TensileLibrary"),
}
_BROKEN = (
    "CUDA error",
    "CUDA driver error",
    "CUBLAS_STATUS_",
    "CUDNN_STATUS_",
    "cuDNN error",
    "HIP error",
    "HIPBLAS_STATUS_",
    "level_zero backend failed",
    "Native API failed",
    "UR_RESULT_ERROR_",
    "PI_ERROR_",
)
_BEGINNINGS = ("CUDA error: ", "HIP error: ")


def is_no_code(text: str) -> bool:
    """Return whether PyTorch has no code for a card."""
    return _has(text, _NO_CODE)


def is_no_card(text: str) -> bool:
    """Return whether PyTorch cannot use any card."""
    return _has(text, _NO_CARD)


def is_unsupported_dtype(text: str) -> bool:
    """Return whether a device does not support an operation in a dtype."""
    return _has(text, _DTYPE)


def refusing_library(text: str) -> str:
    """Return the library that does not work with a card or its driver; empty for other errors."""
    return next((name for name, signs in _LIBRARIES.items() if _has(text, signs)), "")


def is_broken(text: str) -> bool:
    """Return whether a card stopped with an error, after which its context refuses every call."""
    return _has(text, _BROKEN)


def without_beginning(line: str) -> str:
    """Return the first line of an error without the platform's name."""
    for beginning in _BEGINNINGS:
        line = line.removeprefix(beginning)
    return line.rstrip(".")


def _has(text: str, signs: tuple[str, ...]) -> bool:
    return any(sign in text for sign in signs)
