"""The forms in which people paste out-of-memory errors, and what is said about each.

The sentences around the numbers are the programs' own; the numbers are invented.
"""

from __future__ import annotations

import re

import pytest

from gpu_studio.core.memory.oom_reader import KINDS, explain_oom_text
from gpu_studio.core.memory.oom_text import OomNumbers

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

HINT = (
    " If reserved but unallocated memory is large try setting {conf}=expandable_segments:True to "
    "avoid fragmentation.  See documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
OLD_HINT = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
    "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
IN_WINDOWS = (
    'Traceback (most recent call last):\n  File "C:\\Users\\me\\train.py", line 7, in <module>\n'
)
ON_LINUX = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 7, in <module>\n'
WATERMARK = (
    " Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may "
    "cause system failure)."
)


def old(tried: str, total: str, allocated: str, free: str, reserved: str, gpu: int = 0) -> str:
    """Return a text of 1.4 to 2.0."""
    return (
        f"CUDA out of memory. Tried to allocate {tried} (GPU {gpu}; {total} total capacity; "
        f"{allocated} already allocated; {free} free; {reserved} reserved in total by PyTorch)"
    )


def new(
    tried: str, total: str, free: str, allocated: str, unallocated: str, *, maker: str = "CUDA",
    between: str = "",
) -> str:  # fmt: skip
    """Return a text of 2.1 and later."""
    return (
        f"{maker} out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of {total} "
        f"of which {free} is free. {between}Of the allocated memory {allocated} is allocated by "
        f"PyTorch, and {unallocated} is reserved by PyTorch but unallocated."
    )


def asynchronous(allocated: str, tried: str, limit: str, free: str) -> str:
    """Return a text of cudaMallocAsync."""
    return (
        "Allocation on device 0 would exceed allowed memory. (out of memory)\n"
        f"Currently allocated     : {allocated}\nRequested               : {tried}\n"
        f"Device limit            : {limit}\nFree (according to CUDA): {free}\n"
        "PyTorch limit (set by user-supplied memory fraction)\n"
        "                        : 17179869184.00 GiB"
    )


def apple(held: str, tried: str, pool: str = "private") -> str:
    return f"MPS backend out of memory ({held}). Tried to allocate {tried} on {pool} pool."


def llama(size: str, device: int = 0, label: str = "ggml_backend_cuda_buffer_type_alloc_buffer"):
    return f"{label}: allocating {size} MiB on device {device}: cudaMalloc failed: out of memory"


# A name: the text, its kind, and the sizes in its explanation.
FORMS: dict[str, tuple[str, str, str]] = {
    # The card is full.
    "old, full": (
        f"RuntimeError: {old('24.00 MiB', '5.79 GiB', '4.41 GiB', '7.12 MiB', '4.42 GiB')}",
        "card_full", "24 MiB 7.12 MiB 5.79 GiB 4.42 GiB",
    ),
    "old, full, with its hint": (
        old("18.00 MiB", "6.00 GiB", "5.21 GiB", "0 bytes", "5.22 GiB") + OLD_HINT,
        "card_full", "18 MiB 0 bytes 6 GiB 5.22 GiB",
    ),
    "new, full, with this process": (
        "torch.OutOfMemoryError: " + new(
            "530.00 MiB", "15.70 GiB", "198.25 MiB", "14.92 GiB", "130.50 MiB",
            between="Including non-PyTorch memory, this process has 15.48 GiB memory in use. ",
        ) + HINT.format(conf="PYTORCH_CUDA_ALLOC_CONF"),
        "card_full", "530 MiB 198 MiB 15.7 GiB 15.5 GiB",
    ),
    "cudaMallocAsync, full": (
        asynchronous("13.65 GiB", "700.00 MiB", "14.75 GiB", "31.06 MiB"),
        "card_full", "700 MiB 31.1 MiB 14.8 GiB 13.7 GiB",
    ),
    # The driver keeps the rest.
    "6 MiB are the driver's": (
        old("2.00 MiB", "7.93 GiB", "7.40 GiB", "6.00 MiB", "7.42 GiB"),
        "card_full", "2 MiB 6 MiB 7.93 GiB 7.42 GiB",
    ),
    "so are 42 MiB": (
        new(
            "34.00 MiB", "4.00 GiB", "42.10 MiB", "2.61 GiB", "2.10 MiB",
            between="Including non-PyTorch memory, this process has 3.44 GiB memory in use. ",
        ),
        "card_full", "34 MiB 42.1 MiB 4 GiB 3.44 GiB",
    ),
    # Fragmented.
    "fragmented": (
        old("600.00 MiB", "12.00 GiB", "8.10 GiB", "310.00 MiB", "10.90 GiB"),
        "fragmented", "600 MiB 310 MiB 12 GiB 10.9 GiB 2.80 GiB",
    ),
    "fragmented, on AMD": (
        new("1.90 GiB", "23.98 GiB", "1.70 GiB", "17.60 GiB", "4.20 GiB", maker="HIP")
        + HINT.format(conf="PYTORCH_HIP_ALLOC_CONF"),
        "fragmented", "1.90 GiB 1.70 GiB 24.0 GiB 21.8 GiB 4.20 GiB",
    ),
    "fragmented, with the newest variable": (
        new("1.90 GiB", "23.98 GiB", "1.70 GiB", "17.60 GiB", "4.20 GiB")
        + HINT.format(conf="PYTORCH_ALLOC_CONF"),
        "fragmented", "1.90 GiB 1.70 GiB 24.0 GiB 21.8 GiB 4.20 GiB",
    ),
    # The commit limit.
    "9.85 GiB free on Windows": (
        IN_WINDOWS + old("34.00 MiB", "12.00 GiB", "1.02 GiB", "9.85 GiB", "1.10 GiB"),
        "had_room", "34 MiB 9.85 GiB 12 GiB 1.10 GiB",
    ),
    "a little more than asked for, on Windows": (
        IN_WINDOWS + new("1.00 GiB", "8.00 GiB", "1.10 GiB", "5.90 GiB", "12.00 MiB"),
        "had_room", "1 GiB 1.10 GiB 8 GiB 5.91 GiB",
    ),
    "cudaMallocAsync, on Windows": (
        IN_WINDOWS + asynchronous("5.90 GiB", "14.50 MiB", "12.00 GiB", "5.02 GiB"),
        "had_room", "14.5 MiB 5.02 GiB 12 GiB 5.90 GiB",
    ),
    "much free, system unknown": (
        new("54.00 GiB", "80.00 GiB", "78.10 GiB", "984.00 MiB", "460.00 MiB"),
        "had_room", "54 GiB 78.1 GiB 80 GiB 1.41 GiB",
    ),
    "a little more free than asked for": (
        ON_LINUX + new("1.00 GiB", "8.00 GiB", "1.10 GiB", "5.90 GiB", "12.00 MiB"),
        "had_room", "1 GiB 1.10 GiB 8 GiB 5.91 GiB",
    ),
    "half of the card free": (
        old("2.26 GiB", "6.00 GiB", "780.00 MiB", "4.90 GiB", "1.00 GiB"),
        "had_room", "2.26 GiB 4.90 GiB 6 GiB 1 GiB",
    ),
    "on Linux": (
        ON_LINUX + old("12.50 MiB", "10.92 GiB", "8.50 MiB", "9.28 GiB", "22.00 MiB"),
        "had_room", "12.5 MiB 9.28 GiB 10.9 GiB 22 MiB",
    ),
    "on AMD": (
        new("2.00 MiB", "287.98 GiB", "203.00 GiB", "68.00 GiB", "14.90 GiB", maker="HIP"),
        "had_room", "2 MiB 203 GiB 288 GiB 82.9 GiB",
    ),
    # Spilled into RAM.
    "13.98 GiB on a card of 8": (
        new("66.00 MiB", "8.00 GiB", "0 bytes", "13.98 GiB", "3.20 MiB"),
        "spilled", "66 MiB 0 bytes 8 GiB 14.0 GiB",
    ),
    "spilled, with its middle lost": (
        "CUDA out of memory. Tried to allocate 90.00 MiB. GPU 0 has a total capacty of 6.00 GiB of "
        "which 0 bytes i emory 10.50 GiB is allocated by PyTorch, and 150.00 MiB is reserved by "
        "PyTorch but unallocated.",
        "spilled", "90 MiB 6 GiB 10.6 GiB",
    ),
    "spilled, old": (
        old("1.70 GiB", "8.00 GiB", "17.20 GiB", "0 bytes", "19.15 GiB") + OLD_HINT,
        "spilled", "1.70 GiB 0 bytes 8 GiB 19.2 GiB",
    ),
    # Other programs.
    "nearly all held by something else": (
        "(GPU 0; 15.75 GiB total capacity; 80.00 MiB already allocated; 3.60 MiB free; 86.00 MiB "
        "reserved in total by PyTorch)",
        "others", "3.60 MiB 15.8 GiB 86 MiB 15.7 GiB",
    ),
    "on AMD, held by something else": (
        new("3.30 GiB", "128.00 GiB", "780.00 MiB", "50.10 GiB", "76.00 MiB", maker="HIP"),
        "others", "3.30 GiB 780 MiB 128 GiB 50.2 GiB 77.1 GiB",
    ),
    "named processes": (
        new(
            "2.10 GiB", "23.69 GiB", "1.20 GiB", "9.80 GiB", "20.00 MiB",
            between="Process 4321 has 12.10 GiB memory in use. ",
        ),
        "others", "2.10 GiB 1.20 GiB 23.7 GiB 9.82 GiB 12.1 GiB",
    ),
    # A limit, and what is too large.
    "a limit on AMD": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "
        "capacity of 255.98 GiB of which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated "
        "memory 1.04 GiB is allocated by PyTorch, with 17.00 MiB allocated in private pools (e.g., "
        "HIP Graphs), and 0 bytes is reserved by PyTorch but unallocated.",
        "over_budget", "2 MiB 245 GiB 256 GiB 1.06 GiB 1.05 GiB",
    ),
    "a limit on Intel": (
        "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 256.00 MiB. GPU 0 has a "
        "total capacity of 11.93 GiB of which 10.92 GiB is free. 244.00 MiB allowed; ...",
        "over_budget", "256 MiB 10.9 GiB 11.9 GiB 244 MiB",
    ),
    "larger than the card, on AMD": (
        new("16.00 GiB", "15.24 GiB", "15.09 GiB", "0 bytes", "0 bytes", maker="HIP"),
        "too_large", "16 GiB 15.1 GiB 15.2 GiB 4 GiB",
    ),
    "larger than the card, on Intel": (
        new("32.00 GiB", "11.59 GiB", "9.01 GiB", "0 bytes", "0 bytes", maker="XPU"),
        "too_large", "32 GiB 9.01 GiB 11.6 GiB 4 GiB",
    ),
    # Without first words, or without the last.
    "from the request on": (
        "Tried to allocate 22.00 MiB (GPU 0; 1.96 GiB total capacity; 1.24 GiB already allocated; "
        "2.88 MiB free; 1.25 GiB reserved in total by PyTorch)",
        "card_full", "22 MiB 2.88 MiB 1.96 GiB 1.25 GiB",
    ),
    "from the request on, new": (
        "Tried to allocate 300.00 MiB. GPU 1 has a total capacty of 7.79 GiB of which 210.00 MiB "
        "is free. Of the allocated memory 7.10 GiB is allocated by PyTorch, and 12.00 MiB is "
        "reserved by PyTorch but unallocated.",
        "card_full", "300 MiB 210 MiB 7.79 GiB 7.11 GiB",
    ),
    "from the card on": (
        "GPU 0 has a total capacity of 7.79 GiB of which 11.00 MiB is free. Of the allocated "
        "memory 7.10 GiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but "
        "unallocated.",
        "card_full", "11 MiB 7.79 GiB 7.11 GiB",
    ),
    "only the request": (
        "CUDA out of memory. Tried to allocate 264.00 MiB.",
        "unknown", "264 MiB",
    ),
    "from a title": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 192.00 MiB. GPU",
        "unknown", "192 MiB",
    ),
    "only the first words": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "unknown", "",
    ),
    # ComfyUI.
    "ComfyUI": (
        "# ComfyUI Error Report\n## Error Details\n- **Node Type:** Sampler\n- **Exception Type:** "
        "torch.OutOfMemoryError\n- **Exception Message:** Allocation on device \n## Stack Trace",
        "unknown", "",
    ),
    "ComfyUI's log": (
        "2025-03-04 10:11:12,345 - root - ERROR - !!! Exception during processing !!! Allocation "
        "on device \n2025-03-04 10:11:12,346 - root - ERROR - Traceback (most recent call last):\n"
        "torch.OutOfMemoryError: Allocation on device \n\n2025-03-04 10:11:12,400 - root - ERROR - "
        "Got an OOM, unloading all loaded models.",
        "unknown", "",
    ),
    "ComfyUI's end": (
        "Allocation on device \nThis error means you ran out of memory on your GPU.",
        "unknown", "",
    ),
    # Apple.
    "Apple, private pool": (
        "RuntimeError: " + apple(
            "MPS allocated: 5.50 GB, other allocations: 1.10 GB, max allowed: 6.80 GB", "770.00 MB"
        ) + WATERMARK,
        "mac", "770 MiB 5.50 GiB 1.10 GiB 6.80 GiB",
    ),
    "Apple, shared pool, newer units": (
        apple(
            "MPS allocated: 14.20 GiB, other allocations: 3.60 GiB, max allowed: 20.13 GiB",
            "2.60 GiB", "shared",
        ) + WATERMARK,
        "mac", "2.60 GiB 14.2 GiB 3.60 GiB 20.1 GiB",
    ),
    "Apple, mostly Metal": (
        apple("MPS allocated: 1.40 GB, other allocations: 7.42 GB, max allowed: 9.07 GB", "2 GB"),
        "mac", "2 GiB 1.40 GiB 7.42 GiB 9.07 GiB",
    ),
    "Apple, first form": (
        apple("currently allocated: 17.90 GB, max allowed: 18.13 GB", "300.00 MB"),
        "mac", "300 MiB 17.9 GiB 18.1 GiB",
    ),
    "Apple, no limit": (
        apple("MPS allocated: 11.20 GB, other allocations: 3.10 GB", "4.00 GB", "shared"),
        "mac", "4 GiB 11.2 GiB 3.10 GiB",
    ),
    "Apple, room within the limit": (
        apple("MPS allocated: 2.00 GB, other allocations: 1.00 GB, max allowed: 9.07 GB", "1 GB"),
        "mac", "1 GiB 2 GiB 9.07 GiB",
    ),
    "Apple, without first words": (
        "Tried to allocate 292.50 MiB on private pool." + WATERMARK,
        "mac", "292 MiB",
    ),
    "Apple, one buffer": (
        "RuntimeError: Invalid buffer size: 23.60 GB",
        "too_large", "23.6 GiB 4 GiB",
    ),
    "Apple, Metal's own buffer": (
        "Failed to allocate private MTLBuffer for size 4294967296",
        "mac", "4 GiB",
    ),
    "Apple, Metal alone": (
        "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\n"
        "ggml_metal_synchronize: error: command buffer 1 failed with status 5\n" * 3,
        "mac", "",
    ),
    # Intel.
    "Intel, 39": (
        "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_"
        "MEMORY)",
        "unknown", "",
    ),
    "Intel, native": (
        "RuntimeError: Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_"
        "MEMORY)",
        "unknown", "",
    ),
    "Intel, Level Zero": (
        "terminate called: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "unknown", "",
    ),
    "Intel, resources": (
        "Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES) -5 "
        "(PI_ERROR_OUT_OF_RESOURCES)",
        "unknown", "",
    ),
    "Intel, the PC": (
        "Native API returns: 38 (UR_RESULT_ERROR_OUT_OF_HOST_MEMORY)",
        "ram", "",
    ),
    "Intel, PyTorch's own": (
        new("600.00 MiB", "11.59 GiB", "310.00 MiB", "11.10 GiB", "8.00 MiB", maker="XPU")
        + " Please use `empty_cache` to release all unoccupied cached memory.",
        "card_full", "600 MiB 310 MiB 11.6 GiB 11.1 GiB",
    ),
    "Intel, one piece": (
        new("4.66 GiB", "5.65 GiB", "5.65 GiB", "195.50 KiB", "1.81 MiB", maker="XPU"),
        "too_large", "4.66 GiB 5.65 GiB 2.00 MiB 4 GiB",
    ),
    "Intel, one piece, in its words": (
        "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! "
        "Tried to allocate 6.85 GiB (GPU  0; 15.56 GiB total capacity; 0 bytes already allocated; "
        "0 bytes reserved in total by PyTorch)",
        "too_large", "6.85 GiB 15.6 GiB 4 GiB",
    ),
    "Intel, without what was free": (
        "RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total "
        "capacity; 176.00 MiB already allocated; 180.00 MiB reserved in total by PyTorch)",
        "unknown", "1.71 GiB 15.6 GiB 180 MiB",
    ),
    # llama.cpp.
    "llama.cpp, the model": (
        llama("14481.00") + "\nalloc_tensor_range: failed to allocate CUDA0 buffer of size "
        "15184429056\nllama_model_load: error loading model: unable to allocate CUDA0 buffer",
        "model", "14.1 GiB",
    ),
    "llama.cpp, the work memory": (
        llama("9866.00", 1) + "\nggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size "
        "10345253120\nllama_kv_cache_update_impl: failed to allocate compute buffers",
        "model", "9.63 GiB",
    ),
    "llama.cpp, newest, retried in a container": (
        "\n".join(
            f"llama-1  | 1.06.520.077 E {llama('5174.50', 1)}\nllama-1  | 1.06.520.084 E "
            "ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 5425856512"
            for _ in range(4)
        ),
        "model", "5.05 GiB",
    ),
    "llama.cpp, the old words": (
        "CUDA error 2 at /tmp/llama.cpp/ggml-cuda.cu:359: out of memory",
        "model", "",
    ),
    "llama.cpp, alone": (
        "cudaMalloc failed: out of memory", "model", "",
    ),
    "llama.cpp, Vulkan": (
        "ggml_vulkan: Device memory allocation of size 17368219904 failed.",
        "model", "16.2 GiB",
    ),
    "llama.cpp, decimal comma": (
        llama("1900,50"), "model", "1.86 GiB",
    ),
    "llama.cpp, one buffer": (
        "alloc_tensor_range: failed to allocate CUDA0 buffer of size 1610612736", "model",
        "1.50 GiB",
    ),
    # JAX.
    "JAX": (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 7516192768 bytes.",
        "unknown", "7 GiB",
    ),
    "JAX, old": (
        "2025-01-02 01:17:08.886805: E external/org_tensorflow/tensorflow/compiler/xla/python/"
        "local_client.cc:672] Execution of replica 0 failed: Resource exhausted: Out \nof memory "
        "while trying to allocate 5368709120 bytes.",
        "unknown", "5 GiB",
    ),
    "JAX, short": (
        "RESOURCE_EXHAUSTED: Out of memory allocating 2147483648 bytes.",
        "unknown", "2 GiB",
    ),
    "JAX, newest": (
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5.96GiB.",
        "unknown", "5.96 GiB",
    ),
    "JAX, a request": (
        "RESOURCE_EXHAUSTED: Failed to allocate request for 176.00MiB (184549376B) on device "
        "ordinal 1",
        "unknown", "176 MiB",
    ),
    "JAX, with the driver's sizes": (
        "E1103 18:23:55.103160 3413767 gpu_cudamallocasync_allocator.cc:361] gpu_async_1 "
        "cuMemAllocAsync failed to allocate 32212254720 bytes: RESOURCE_EXHAUSTED: : "
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory\n Reported by CUDA: Free memory/Total memory: "
        "21474836480/85899345920",
        "card_full", "30 GiB 20 GiB 80 GiB",
    ),
    # The driver and the system.
    "the driver alone": (
        "RuntimeError: CUDA error: out of memory", "unknown", "",
    ),
    "the driver's name for it": (
        "cuda_check failed: CUDA_ERROR_OUT_OF_MEMORY", "unknown", "",
    ),
    "AMD's name for it": (
        "hipErrorOutOfMemory", "unknown", "",
    ),
    "RAM on Windows": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough "
        "memory: you tried to allocate 3221225472 bytes.",
        "ram", "3 GiB",
    ),
    "the driver, to PyCUDA": (
        "pycuda._driver.MemoryError: cuMemAlloc failed: out of memory",
        "unknown", "",
    ),
    "the driver, to NCCL": (
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 2 'out of memory'",
        "unknown", "",
    ),
    "without its period": (
        "RuntimeError: CUDA out of memory", "unknown", "",
    ),
    "bitsandbytes": (
        "Error out of memory at line 380 in file /src/csrc/pythonInterface.c",
        "unknown", "",
    ),
    "the driver, while a kernel is loaded": (
        "RuntimeError: Triton Error [CUDA]: out of memory", "unknown", "",
    ),
    "the driver's own interface": ("RuntimeError: CUDA driver error: out of memory", "unknown", ""),
    "the runtime, to TensorRT-LLM": (
        "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, stream->get()): out "
        "of memory (/app/tensorrt_llm/runtime/tllmBuffers.h:112)",
        "unknown", "",
    ),
    # Servers.
    "vLLM, no blocks": (
        "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine.",
        "model", "",
    ),
    "vLLM, the context": (
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (5.25 GiB).",
        "model", "16 GiB 5.25 GiB",
    ),
    "vLLM, the context, old": (
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens "
        "that can be stored in KV cache (12544).",
        "model", "",
    ),
    "vLLM, beside others": (
        "ValueError: Free memory on device (5.79/23.99 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 21.59 GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes.",
        "others", "5.79 GiB 24.0 GiB",
    ),
    "TGI": (
        "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease "
        "`--max-batch-prefill-tokens`",
        "model", "",
    ),
    "SGLang": (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "model", "",
    ),
    "Ollama, on the card": (
        "Error: 500 Internal Server Error: llama runner process has terminated: CUDA error: out of "
        "memory",
        "model", "",
    ),
    "Ollama, in RAM": (
        "Error: model requires more system memory (8.4 GiB) than is available (5.1 GiB)",
        "ram", "8.40 GiB 5.10 GiB",
    ),
    "llama.cpp, its pool": (
        "CUDA error: out of memory\n  current device: 1, in function alloc at ggml-cuda.cu:357\n  "
        "cuMemCreate(&handle, reserve_size, &prop, 0)",
        "model", "",
    ),
    "llama.cpp, the context": (
        "llama_kv_cache_init: failed to allocate buffer for kv cache",
        "model", "",
    ),
    "llama.cpp, the PC": (
        "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory",
        "ram", "1 GiB",
    ),
    "ExLlama": (
        "ValueError: ## Insufficient VRAM for model and cache", "model", "",
    ),
    # Image programs.
    "Automatic1111's own": (
        "RuntimeError: Not enough memory, use lower resolution (max approx. 640x640). Need: 3.2GB "
        "free, Have:2.1GB free",
        "card_full", "3.20 GiB 2.10 GiB",
    ),
    "DirectML": (
        "RuntimeError: Could not allocate tensor with 1073741824 bytes. There is not enough GPU "
        "video memory available!",
        "unknown", "1 GiB",
    ),
    "Blender": ("System is out of GPU memory", "unknown", ""),
    "CTranslate2": ("RuntimeError: CUDA failed with error out of memory", "unknown", ""),
    "a piece on AMD": (
        "ROCm model arena alloc failed for tensor-span:9 (1536.00 MiB chunk): out of memory",
        "unknown", "1.50 GiB",
    ),
    "ComfyUI, no addresses": (
        "!!! Exception during processing !!! VBAR allocation failed\nMemoryError: VBAR allocation "
        "failed",
        "unknown", "",
    ),
    # Frameworks.
    "TensorFlow": (
        "ResourceExhaustedError: OOM when allocating tensor with shape[32,112,112,64] and type "
        "float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]",
        "unknown", "98 MiB",
    ),
    "TensorFlow, its pool": (
        "2024-05-01 10:11:12.345678: W tensorflow/core/common_runtime/bfc_allocator.cc:479] "
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 256.00MiB (rounded to "
        "268435456)requested by op Conv2D",
        "unknown", "256 MiB",
    ),
    "TensorFlow, the driver": (
        "failed to allocate 3.50G (3758096384 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of "
        "memory",
        "unknown", "3.50 GiB",
    ),
    "TensorFlow, in other words": (
        "InternalError: Failed copying input tensor from CPU:0 to GPU:0 in order to run "
        "_EagerConst: Dst tensor is not initialized.",
        "unknown", "",
    ),
    "CuPy": (
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes "
        "(allocated so far: 2,147,483,648 bytes).",
        "unknown", "8 GiB 2 GiB",
    ),
    "Paddle": (
        "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 512.000000MB "
        "memory on GPU 0, 7.500000GB memory has been allocated and available memory is only "
        "500.000000MB.",
        "card_full", "512 MiB 500 MiB 7.50 GiB",
    ),
    "ONNX Runtime": (
        "onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for "
        "requested buffer of size 1073741824",
        "unknown", "1 GiB",
    ),
    "ONNX Runtime, its limit": (
        "onnxruntime::BFCArena::AllocateRawInternal Available memory of 1048576 is smaller than "
        "requested bytes of 1073741824",
        "card_full", "1 GiB 1 MiB",
    ),
    "TensorRT": (
        "[E] Error[2]: Requested amount of GPU memory (2147483648 bytes) could not be allocated.",
        "unknown", "2 GiB",
    ),
    "TensorRT, alone": (
        "[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::140] Error Code 2: OutOfMemory (no "
        "further information)",
        "unknown", "",
    ),
    "TensorRT, with its size": (
        "[TRT] [E] [virtualMemoryBuffer.cpp::resizePhysical::151] Error Code 2: OutOfMemory "
        "(Requested size was 2147483648 bytes.)",
        "unknown", "2 GiB",
    ),
    "cuDNN 9": (
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "unknown", "",
    ),
    "Apple, MLX": (
        "RuntimeError: [metal::malloc] Attempting to allocate 19327352832 bytes which is greater "
        "than the maximum allowed buffer size of 14314045440 bytes.",
        "too_large", "18 GiB 4 GiB",
    ),
    "quantized layers": (
        "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough "
        "GPU RAM to fit the quantized model.",
        "model", "",
    ),
    # Not the card.
    "Triton's shared memory": (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 114688, "
        "Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
        "kernel", "112 KiB 99 KiB",
    ),
    "Triton's shared memory, to Inductor": (
        "No valid triton configs. OutOfMemoryError: out of resource: triton_tem_fused_0 Required: "
        "114688 Hardware limit:101376 Reducing block sizes or `num_stages` may help.",
        "kernel", "112 KiB 99 KiB",
    ),
    "NumPy": (
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB for an array with "
        "shape (1073741824,) and data type float64",
        "ram", "8 GiB",
    ),
    "Linux ended it": (
        "[12345.678901] Out of memory: Killed process 4242 (python3) total-vm:35651584kB",
        "ram", "",
    ),
    "a container's limit": (
        "Memory cgroup out of memory: Killed process 4242 (python) total-vm:35651584kB",
        "ram", "",
    ),
    "the page file": (
        "OSError: [WinError 1455] The paging file is too small for this operation to complete. "
        "Error loading \"C:\\venv\\lib\\site-packages\\torch\\lib\\c10_cuda.dll\".",
        "ram", "",
    ),
    "the page file, in German": (
        "OSError: [WinError 1455] Die Auslagerungsdatei ist zu klein, um diesen Vorgang "
        "durchzuführen.",
        "ram", "",
    ),
    "the page file, to safetensors": (
        "SafetensorError: Die Auslagerungsdatei ist zu klein. (os error 1455)",
        "ram", "",
    ),
    "the loader's workers, in other words": (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
        "shared memory (shm).",
        "workers", "64 MiB",
    ),
    "the loader's workers": (
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible "
        "that dataloader's workers are out of shared memory.",
        "workers", "64 MiB",
    ),
}  # fmt: skip

forms = pytest.mark.parametrize(("text", "kind", "sizes"), FORMS.values(), ids=FORMS.keys())


def plain(words: str) -> str:
    return words.replace("\u202f", " ")


@forms
def test_every_form_is_recognised_with_its_sizes(text: str, kind: str, sizes: str):
    found = explain_oom_text(text)
    assert found is not None
    assert (found.kind, found.errors) == (kind, 1)
    said = re.findall(r"\d[\d.]* (?:[KMG]iB|bytes)", plain(found.meaning))
    assert " ".join(dict.fromkeys(said)) == sizes
    assert len(found.first_steps) == len(set(found.first_steps)) >= 2
    assert "{" not in " ".join((found.headline, found.meaning, *found.first_steps))


def test_every_kind_has_a_text_of_its_own():
    assert {kind for _, kind, _ in FORMS.values()} == set(KINDS)
    assert len({kind.headline for kind in KINDS.values()}) == len(KINDS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("old, full", "batch smaller"),
        ("fragmented, on AMD", "Set PYTORCH_HIP_ALLOC_CONF=expandable_segments:True"),
        ("fragmented, with the newest variable", "Set PYTORCH_ALLOC_CONF=expandable_segments"),
        ("on AMD, held by something else", "(amd-smi"),
        ("a limit on AMD", "torch.cuda.set_per_process_memory_fraction"),
        ("a limit on Intel", "torch.xpu.set_per_process_memory_fraction"),
        ("llama.cpp, the model", "fewer layers"),
        ("vLLM, the context", "--max-model-len"),
        ("JAX", "XLA_PYTHON_CLIENT_PREALLOCATE"),
        ("the page file", "page file larger"),
        ("quantized layers", "4 bits"),
        ("ComfyUI, no addresses", "--disable-dynamic-vram"),
    ],
)
def test_what_to_try_first_suits_the_program(name: str, words: str):
    text, *_ = FORMS[name]
    assert words in explain_oom_text(text).first_steps[0]


def test_a_few_holes_on_a_full_card_are_no_fragmentation():
    text = old("20.00 MiB", "4.00 GiB", "3.43 GiB", "2.00 MiB", "3.46 GiB")
    found = explain_oom_text(text)
    assert (found.kind, found.headline) == ("card_full", "The card is full.")
    assert "batch smaller" in found.first_steps[0]


def test_why_the_driver_refused_is_not_invented():
    text = ON_LINUX + new("8.13 GiB", "24.00 GiB", "8.20 GiB", "15.10 GiB", "12.00 MiB")
    found = explain_oom_text(text)
    assert found.kind == "had_room"
    assert "The text does not say why" in found.meaning
    assert not any(word in found.meaning for word in ("another program", "moment", "probably"))
    assert not any("again" in step for step in found.first_steps)


LINE_BEGINNINGS = {
    "torchrun": "[rank0]: ",
    "torchrun, twice": "[rank0]:[rank0]: ",
    "a rank in words": "rank 3: ",
    "srun": "0: ",
    "elastic": "[default1]:",
    "mpirun": "[1,0]<stderr>:",
    "compose": "trainer-1  | ",
    "compose, old": "web_ui_1   | ",
    "kubernetes": "2025-11-12T11:25:13.4961658Z stderr F ",
    "a continuous build": "2025-11-12T11:25:13.4961658Z ",
    "Python's log": "2025-03-04 10:11:12,345 - root - ERROR - ",
    "a log of columns": "2025-02-28 09:05:49 | ERROR | stderr | ",
    "ComfyUI": "[2025-11-06 23:41:06.473] ",
    "journald": "Apr 17 23:09:42 athena ollama.listener[2840147]: ",
    "sdnext": "23:58:13-803766 ERROR    ",
    "vLLM": "(EngineCore_0 pid=4711) ERROR 11-03 18:23:55 [core.py:708] ",
    "Ray": "(RayTrainWorker pid=4711, ip=10.0.0.12) ",
    "glog": "E1103 18:23:55.103160 3413767 allocator.cc:361] ",
    "a colored rank": "\x1b[36m[rank0]:\x1b[0m ",
    "a quotation": "> > ",
    "a box": "│ ",
}


@pytest.mark.parametrize("beginning", LINE_BEGINNINGS.values(), ids=LINE_BEGINNINGS.keys())
def test_what_begins_each_line_of_a_log_makes_no_difference(beginning: str):
    text = old("22.00 MiB", "1.96 GiB", "1.24 GiB", "2.88 MiB", "1.25 GiB", gpu=3)
    for width in (23, 37, 80):
        lines = [text[i : i + width] for i in range(0, len(text), width)]
        found = explain_oom_text("\n".join(f"{beginning}{line}" for line in lines))
        assert found == explain_oom_text(text), width


def test_the_right_border_of_a_box_makes_no_difference():
    text = old("22.00 MiB", "1.96 GiB", "1.24 GiB", "2.88 MiB", "1.25 GiB")
    lines = [text[i : i + 40] for i in range(0, len(text), 40)]
    assert explain_oom_text("\n".join(f"│ {line:<40} │" for line in lines)) == explain_oom_text(
        text
    )


@pytest.mark.parametrize("escape", ["\x1b", "", "^[", "␛"], ids=["kept", "lost", "caret", "sign"])
def test_colors_make_no_difference(escape: str):
    text = new("256.00 MiB", "1.95 GiB", "153.81 MiB", "1.75 GiB", "8.00 MiB")
    on, off = f"{escape}[1;31m", f"{escape}[0m"
    colored = text.replace("256.00", f"{on}256{off}.00").replace(" GPU", f"{on} GPU{off}")
    assert explain_oom_text(colored) == explain_oom_text(text)


def test_decimal_commas_make_no_difference():
    text = new("256.00 MiB", "1.95 GiB", "153.81 MiB", "1.75 GiB", "8.00 MiB")
    commas = text.replace("6.00", "6,00").replace("1.95", "1,95").replace("3.81", "3,81")
    commas = commas.replace("1.75", "1,75").replace("8.00", "8,00")
    assert commas.count(",") >= 5
    assert explain_oom_text(commas) == explain_oom_text(text)


def test_every_number_of_apples_text_is_read_and_drawn():
    held = "MPS allocated: 5.50 GB, other allocations: 1.10 GB, max allowed: 6.80 GB"
    found = explain_oom_text(apple(held, "770.00 MB"))
    assert found.numbers == OomNumbers(
        tried_bytes=770 * MIB, allocated_bytes=round(5.5 * GIB), other_bytes=round(1.1 * GIB),
        limit_bytes=round(6.8 * GIB),
    )  # fmt: skip
    parts = {part.label: part.size_bytes for part in found.tank.parts}
    assert parts["PyTorch"] == round(5.5 * GIB)
    assert parts["Metal"] == round(1.1 * GIB)
    assert sum(parts.values()) == found.tank.total_bytes == round(6.8 * GIB)
    assert found.tank.card_bytes is None


def test_a_mac_over_its_limit_has_a_line_at_the_limit():
    held = "MPS allocated: 6.50 GB, other allocations: 1.10 GB, max allowed: 6.80 GB"
    tank = explain_oom_text(apple(held, "770.00 MB")).tank
    assert tank.card_bytes == round(6.8 * GIB)
    assert tank.total_bytes == round(6.5 * GIB) + round(1.1 * GIB)


def test_what_was_moved_to_ram_is_in_the_tank_beyond_the_cards_end():
    tank = explain_oom_text(new("66.00 MiB", "8.00 GiB", "0 bytes", "13.98 GiB", "3.00 MiB")).tank
    parts = {part.key: part.size_bytes for part in tank.parts}
    assert parts["tensors"] == round(13.98 * GIB)
    assert tank.card_bytes == 8 * GIB
    assert tank.total_bytes == sum(parts.values()) == round(13.98 * GIB) + 3 * MIB


def test_ranks_with_different_sizes_are_different_errors():
    first = old("22.00 MiB", "1.96 GiB", "1.24 GiB", "2.88 MiB", "1.25 GiB")
    second = old("24.00 MiB", "1.96 GiB", "1.24 GiB", "2.88 MiB", "1.25 GiB", gpu=1)
    text = f"[rank0]: {first}\n[rank1]: {second}\n[rank1]: {second}"
    assert explain_oom_text(text).errors == 2
    assert explain_oom_text(text, last=True).numbers.device_index == 1


@pytest.mark.parametrize(
    "piece",
    ["[", "[0", "[0m", "\x1b[", "rank ", "[rank0]:", "0: ", "a|", "a  |", "2025-01-01 ", "E1103 ",
     "ERROR ", "- a - ", "(pid=1)", "\n0: ", "\na |", "\nE", "|\n", " |\n", "  ", "allocating",
     "allocating1MiBondevice", "MPS backend out of memory (", "GPU 0 has a total ",
     "CUDA error 2 at ",
     "Tried to allocate 1 MiB (GPU 0", "\nApr 17 23:09:42 a ", "failed to allocate 1 MiB:"],
)  # fmt: skip
@pytest.mark.timeout(20)  # a tenth of a second is usual; a search that begins anew takes minutes
def test_a_quarter_of_a_million_letters_of_a_form_come_to_an_end(piece: str):
    explain_oom_text(piece * (250_000 // len(piece)))


@pytest.mark.parametrize(
    "text",
    ["gRPC: RESOURCE_EXHAUSTED: quota exceeded", "allocating 5 MiB on device 0: done",
     "Tried to allocate a room", "GPU 0 has a total of 3 fans", "level_zero backend failed with "
     "error: 20 (UR_RESULT_ERROR_DEVICE_LOST)", "Requested: 5.00 MiB"],
)  # fmt: skip
def test_what_only_looks_alike_is_not_explained(text: str):
    assert explain_oom_text(text) is None


def test_in_a_container_the_program_itself_is_no_other_program():
    """The driver's list has the numbers of the host, so PyTorch does not find itself there."""
    text = new(
        "314.00 MiB", "14.75 GiB", "117.06 MiB", "14.30 GiB", "7.37 MiB",
        between="Process 3123 has 14.63 GiB memory in use. ",
    )  # fmt: skip
    assert explain_oom_text(text).kind == "card_full"
