"""The forms in which people paste out-of-memory errors, and what is said about each.

The sentences around the numbers are the programs' own; the numbers are invented.
"""

from __future__ import annotations

import pytest

from gpu_studio.core.memory.oom_reader import explain_oom_text
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


# A name: the text, its kind, words of the cause, words of the first step.
FORMS: dict[str, tuple[str, str, str, str]] = {
    # The card is full.
    "old, full": (
        f"RuntimeError: {old('24.00 MiB', '5.79 GiB', '4.41 GiB', '7.12 MiB', '4.42 GiB')}",
        "card_full", "7.12 MiB of 5.79 GiB was free", "batch smaller",
    ),
    "old, full, with its hint": (
        old("18.00 MiB", "6.00 GiB", "5.21 GiB", "0 bytes", "5.22 GiB") + OLD_HINT,
        "card_full", "0 bytes of 6 GiB was free", "batch smaller",
    ),
    "new, full, with this process": (
        "torch.OutOfMemoryError: " + new(
            "530.00 MiB", "15.70 GiB", "198.25 MiB", "14.92 GiB", "130.50 MiB",
            between="Including non-PyTorch memory, this process has 15.48 GiB memory in use. ",
        ) + HINT.format(conf="PYTORCH_CUDA_ALLOC_CONF"),
        "card_full", "198 MiB of 15.7 GiB was free", "batch smaller",
    ),
    "cudaMallocAsync, full": (
        asynchronous("13.65 GiB", "700.00 MiB", "14.75 GiB", "31.06 MiB"),
        "card_full", "31.1 MiB of 14.8 GiB was free", "batch smaller",
    ),
    # The driver keeps the rest.
    "6 MiB are the driver's": (
        old("2.00 MiB", "7.93 GiB", "7.40 GiB", "6.00 MiB", "7.42 GiB"),
        "reserve", "The driver keeps the last part", "batch smaller",
    ),
    "so are 42 MiB": (
        new(
            "34.00 MiB", "4.00 GiB", "42.10 MiB", "2.61 GiB", "2.10 MiB",
            between="Including non-PyTorch memory, this process has 3.44 GiB memory in use. ",
        ),
        "reserve", "42.1 MiB are not available", "batch smaller",
    ),
    # Fragmented.
    "fragmented": (
        old("600.00 MiB", "12.00 GiB", "8.10 GiB", "310.00 MiB", "10.90 GiB"),
        "fragmented", "in pieces", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ),
    "fragmented, on AMD": (
        new("1.90 GiB", "23.98 GiB", "1.70 GiB", "17.60 GiB", "4.20 GiB", maker="HIP")
        + HINT.format(conf="PYTORCH_HIP_ALLOC_CONF"),
        "fragmented", "in pieces", "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True",
    ),
    "fragmented, with the newest variable": (
        new("1.90 GiB", "23.98 GiB", "1.70 GiB", "17.60 GiB", "4.20 GiB")
        + HINT.format(conf="PYTORCH_ALLOC_CONF"),
        "fragmented", "in pieces", "Set PYTORCH_ALLOC_CONF=expandable_segments:True",
    ),
    # The commit limit.
    "9.85 GiB free on Windows": (
        IN_WINDOWS + old("34.00 MiB", "12.00 GiB", "1.02 GiB", "9.85 GiB", "1.10 GiB"),
        "commit", "space in RAM or page file", "page file larger",
    ),
    "a little more than asked for, on Windows": (
        IN_WINDOWS + new("1.00 GiB", "8.00 GiB", "1.10 GiB", "5.90 GiB", "12.00 MiB"),
        "commit", "commit limit", "page file larger",
    ),
    "cudaMallocAsync, on Windows": (
        IN_WINDOWS + asynchronous("5.90 GiB", "14.50 MiB", "12.00 GiB", "5.02 GiB"),
        "commit", "space in RAM or page file", "page file larger",
    ),
    "much free, system unknown": (
        new("54.00 GiB", "80.00 GiB", "78.10 GiB", "984.00 MiB", "460.00 MiB"),
        "refused", "78.1 GiB of 80 GiB was free", "Watch the PC's RAM",
    ),
    "a little more free than asked for": (
        ON_LINUX + new("1.00 GiB", "8.00 GiB", "1.10 GiB", "5.90 GiB", "12.00 MiB"),
        "raced", "another program freed memory", "Run it again",
    ),
    "half of the card free": (
        old("2.26 GiB", "6.00 GiB", "780.00 MiB", "4.90 GiB", "1.00 GiB"),
        "refused", "RAM, and on Windows the page file", "Watch the PC's RAM",
    ),
    "on Linux": (
        ON_LINUX + old("12.50 MiB", "10.92 GiB", "8.50 MiB", "9.28 GiB", "22.00 MiB"),
        "refused", "The driver also needs the PC's memory", "Watch the PC's RAM",
    ),
    "on AMD": (
        new("2.00 MiB", "287.98 GiB", "203.00 GiB", "68.00 GiB", "14.90 GiB", maker="HIP"),
        "refused", "203 GiB of 288 GiB was free", "Watch the PC's RAM",
    ),
    # Spilled into RAM.
    "13.98 GiB on a card of 8": (
        new("66.00 MiB", "8.00 GiB", "0 bytes", "13.98 GiB", "3.20 MiB"),
        "spilled", "held 14.0 GiB, more than the card's 8 GiB", "batch smaller",
    ),
    "spilled, old": (
        old("1.70 GiB", "8.00 GiB", "17.20 GiB", "0 bytes", "19.15 GiB") + OLD_HINT,
        "spilled", "held 19.2 GiB, more than the card's 8 GiB", "batch smaller",
    ),
    # Other programs.
    "nearly all held by something else": (
        "(GPU 0; 15.75 GiB total capacity; 80.00 MiB already allocated; 3.60 MiB free; 86.00 MiB "
        "reserved in total by PyTorch)",
        "others", "held only 86 MiB", "See which programs use the card (nvidia-smi",
    ),
    "on AMD, held by something else": (
        new("3.30 GiB", "128.00 GiB", "780.00 MiB", "50.10 GiB", "76.00 MiB", maker="HIP"),
        "others", "is in use by other programs", "(amd-smi",
    ),
    "named processes": (
        new(
            "2.10 GiB", "23.69 GiB", "1.20 GiB", "9.80 GiB", "20.00 MiB",
            between="Process 4321 has 12.10 GiB memory in use. ",
        ),
        "others", "Other processes hold 12.1 GiB", "See which programs",
    ),
    # A limit, and what is too large.
    "a limit on AMD": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "
        "capacity of 255.98 GiB of which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated "
        "memory 1.04 GiB is allocated by PyTorch, with 17.00 MiB allocated in private pools (e.g., "
        "HIP Graphs), and 0 bytes is reserved by PyTorch but unallocated.",
        "over_budget", "limit of 1.05 GiB", "Raise the limit",
    ),
    "larger than the card, on AMD": (
        new("16.00 GiB", "15.24 GiB", "15.09 GiB", "0 bytes", "0 bytes", maker="HIP"),
        "too_large", "16 GiB in one piece", "Print the shapes",
    ),
    "larger than the card, on Intel": (
        new("32.00 GiB", "11.59 GiB", "9.01 GiB", "0 bytes", "0 bytes", maker="XPU"),
        "too_large", "32 GiB in one piece", "Print the shapes",
    ),
    # Without first words, or without the last.
    "from the request on": (
        "Tried to allocate 22.00 MiB (GPU 0; 1.96 GiB total capacity; 1.24 GiB already allocated; "
        "2.88 MiB free; 1.25 GiB reserved in total by PyTorch)",
        "card_full", "2.88 MiB of 1.96 GiB was free", "batch smaller",
    ),
    "from the request on, new": (
        "Tried to allocate 300.00 MiB. GPU 1 has a total capacty of 7.79 GiB of which 210.00 MiB "
        "is free. Of the allocated memory 7.10 GiB is allocated by PyTorch, and 12.00 MiB is "
        "reserved by PyTorch but unallocated.",
        "card_full", "210 MiB of 7.79 GiB was free", "batch smaller",
    ),
    "from the card on": (
        "GPU 0 has a total capacity of 7.79 GiB of which 11.00 MiB is free. Of the allocated "
        "memory 7.10 GiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but "
        "unallocated.",
        "card_full", "11 MiB of 7.79 GiB was free", "batch smaller",
    ),
    "only the request": (
        "CUDA out of memory. Tried to allocate 264.00 MiB.",
        "no_free", "asked for 264 MiB. The text does not say how much was free", "batch smaller",
    ),
    "from a title": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 192.00 MiB. GPU",
        "no_free", "asked for 192 MiB", "batch smaller",
    ),
    "only the first words": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "unknown", "without any numbers", "Use less memory",
    ),
    # ComfyUI.
    "ComfyUI": (
        "# ComfyUI Error Report\n## Error Details\n- **Node Type:** Sampler\n- **Exception Type:** "
        "torch.OutOfMemoryError\n- **Exception Message:** Allocation on device \n## Stack Trace",
        "unknown", "common in ComfyUI, says so without any numbers", "smaller image",
    ),
    "ComfyUI's log": (
        "2025-03-04 10:11:12,345 - root - ERROR - !!! Exception during processing !!! Allocation "
        "on device \n2025-03-04 10:11:12,346 - root - ERROR - Traceback (most recent call last):\n"
        "torch.OutOfMemoryError: Allocation on device \n\n2025-03-04 10:11:12,400 - root - ERROR - "
        "Got an OOM, unloading all loaded models.",
        "unknown", "common in ComfyUI", "smaller image",
    ),
    "ComfyUI's end": (
        "Allocation on device \nThis error means you ran out of memory on your GPU.",
        "unknown", "without any numbers", "smaller image",
    ),
    # Apple.
    "Apple, private pool": (
        "RuntimeError: " + apple(
            "MPS allocated: 5.50 GB, other allocations: 1.10 GB, max allowed: 6.80 GB", "770.00 MB"
        ) + WATERMARK,
        "apple_limit", "PyTorch held 5.50 GiB and Metal itself 1.10 GiB. 770 MiB more would exceed "
        "the limit for this program, 6.80 GiB", "batch or the image smaller",
    ),
    "Apple, shared pool, newer units": (
        apple(
            "MPS allocated: 14.20 GiB, other allocations: 3.60 GiB, max allowed: 20.13 GiB",
            "2.60 GiB", "shared",
        ) + WATERMARK,
        "apple_limit", "2.60 GiB more would exceed", "batch or the image smaller",
    ),
    "Apple, mostly Metal": (
        apple("MPS allocated: 1.40 GB, other allocations: 7.42 GB, max allowed: 9.07 GB", "2 GB"),
        "apple_limit", "Metal itself 7.42 GiB", "batch or the image smaller",
    ),
    "Apple, first form": (
        apple("currently allocated: 17.90 GB, max allowed: 18.13 GB", "300.00 MB"),
        "apple_limit", "PyTorch held 17.9 GiB. 300 MiB more would exceed", "batch or the image",
    ),
    "Apple, no limit": (
        apple("MPS allocated: 11.20 GB, other allocations: 3.10 GB", "4.00 GB", "shared"),
        "apple_full", "PyTorch held 11.2 GiB. Metal itself held 3.10 GiB", "Close other programs",
    ),
    "Apple, room within the limit": (
        apple("MPS allocated: 2.00 GB, other allocations: 1.00 GB, max allowed: 9.07 GB", "1 GB"),
        "apple_full", "Its limit, 9.07 GiB, was not reached", "Close other programs",
    ),
    "Apple, without first words": (
        "Tried to allocate 292.50 MiB on private pool." + WATERMARK,
        "apple_full", "The program asked for 292 MiB", "Close other programs",
    ),
    "Apple, one buffer": (
        "RuntimeError: Invalid buffer size: 23.60 GB",
        "too_large", "23.6 GiB in one piece is more than Metal allows", "Print the shapes",
    ),
    "Apple, Metal's own buffer": (
        "Failed to allocate private MTLBuffer for size 4294967296",
        "apple_full", "asked for 4 GiB", "Close other programs",
    ),
    "Apple, Metal alone": (
        "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\n"
        "ggml_metal_synchronize: error: command buffer 1 failed with status 5\n" * 3,
        "apple_full", "the same memory as all programs", "Close other programs",
    ),
    # Intel.
    "Intel, 39": (
        "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_"
        "MEMORY)",
        "intel", "out of memory, without any numbers", "batch or the image smaller",
    ),
    "Intel, native": (
        "RuntimeError: Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_"
        "MEMORY)",
        "intel", "without any numbers", "batch or the image smaller",
    ),
    "Intel, Level Zero": (
        "terminate called: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "intel",
        "without any numbers", "batch or the image smaller",
    ),
    "Intel, resources": (
        "Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES) -5 "
        "(PI_ERROR_OUT_OF_RESOURCES)",
        "intel", "Memory is the most common", "batch or the image smaller",
    ),
    "Intel, the PC": (
        "Native API returns: 38 (UR_RESULT_ERROR_OUT_OF_HOST_MEMORY)",
        "cpu", "the system for RAM, and the system refused", "Load the data in parts",
    ),
    "Intel, PyTorch's own": (
        new("600.00 MiB", "11.59 GiB", "310.00 MiB", "11.10 GiB", "8.00 MiB", maker="XPU")
        + " Please use `empty_cache` to release all unoccupied cached memory.",
        "card_full", "310 MiB of 11.6 GiB was free", "batch smaller",
    ),
    "Intel, one piece": (
        new("4.66 GiB", "5.65 GiB", "5.65 GiB", "195.50 KiB", "1.81 MiB", maker="XPU"),
        "one_piece", "at most 4 GiB in one piece", "no tensor is larger than 4 GiB",
    ),
    "Intel, one piece, in its words": (
        "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! "
        "Tried to allocate 6.85 GiB (GPU  0; 15.56 GiB total capacity; 0 bytes already allocated; "
        "0 bytes reserved in total by PyTorch)",
        "one_piece", "asked for 6.85 GiB", "no tensor is larger than 4 GiB",
    ),
    "Intel, without what was free": (
        "RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total "
        "capacity; 176.00 MiB already allocated; 180.00 MiB reserved in total by PyTorch)",
        "no_free", "It held 180 MiB of the card's 15.6 GiB", "batch smaller",
    ),
    # llama.cpp.
    "llama.cpp, the model": (
        llama("14481.00") + "\nalloc_tensor_range: failed to allocate CUDA0 buffer of size "
        "15184429056\nllama_model_load: error loading model: unable to allocate CUDA0 buffer",
        "llama", "asked card 0 for 14.1 GiB", "fewer layers",
    ),
    "llama.cpp, the work memory": (
        llama("9866.00", 1) + "\nggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size "
        "10345253120\nllama_kv_cache_update_impl: failed to allocate compute buffers",
        "llama", "asked card 1 for 9.63 GiB in one piece, and less was free. This piece is work "
        "memory", "fewer layers",
    ),
    "llama.cpp, newest, retried in a container": (
        "\n".join(
            f"llama-1  | 1.06.520.077 E {llama('5174.50', 1)}\nllama-1  | 1.06.520.084 E "
            "ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 5425856512"
            for _ in range(4)
        ),
        "llama", "asked card 1 for 5.05 GiB", "fewer layers",
    ),
    "llama.cpp, the old words": (
        "CUDA error 2 at /tmp/llama.cpp/ggml-cuda.cu:359: out of memory",
        "llama", "no memory left", "fewer layers",
    ),
    "llama.cpp, alone": (
        "cudaMalloc failed: out of memory", "llama", "no memory left", "fewer layers",
    ),
    "llama.cpp, Vulkan": (
        "ggml_vulkan: Device memory allocation of size 17368219904 failed.",
        "llama", "for 16.2 GiB", "fewer layers",
    ),
    "llama.cpp, decimal comma": (
        llama("1900,50"), "llama", "for 1.86 GiB", "fewer layers",
    ),
    # JAX.
    "JAX": (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 7516192768 bytes.",
        "jax", "asked for 7 GiB.", "batch smaller",
    ),
    "JAX, old": (
        "2025-01-02 01:17:08.886805: E external/org_tensorflow/tensorflow/compiler/xla/python/"
        "local_client.cc:672] Execution of replica 0 failed: Resource exhausted: Out \nof memory "
        "while trying to allocate 5368709120 bytes.",
        "jax", "asked for 5 GiB.", "batch smaller",
    ),
    "JAX, short": (
        "RESOURCE_EXHAUSTED: Out of memory allocating 2147483648 bytes.",
        "jax", "asked for 2 GiB.", "batch smaller",
    ),
    "JAX, newest": (
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5.96GiB.",
        "jax", "asked for 5.96 GiB.", "batch smaller",
    ),
    "JAX, a request": (
        "RESOURCE_EXHAUSTED: Failed to allocate request for 176.00MiB (184549376B) on device "
        "ordinal 1",
        "jax", "asked for 176 MiB.", "batch smaller",
    ),
    "JAX, with the driver's sizes": (
        "E1103 18:23:55.103160 3413767 gpu_cudamallocasync_allocator.cc:361] gpu_async_1 "
        "cuMemAllocAsync failed to allocate 32212254720 bytes: RESOURCE_EXHAUSTED: : "
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory\n Reported by CUDA: Free memory/Total memory: "
        "21474836480/85899345920",
        "jax", "asked for 30 GiB, and 20 GiB of 80 GiB was free", "batch smaller",
    ),
    # The driver and the system.
    "the driver alone": (
        "RuntimeError: CUDA error: out of memory", "unknown", "without any numbers", "Use less",
    ),
    "the driver's name for it": (
        "cuda_check failed: CUDA_ERROR_OUT_OF_MEMORY", "unknown", "without any numbers", "Use less",
    ),
    "AMD's name for it": (
        "hipErrorOutOfMemory", "unknown", "without any numbers", "Use less",
    ),
    "RAM on Windows": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough "
        "memory: you tried to allocate 3221225472 bytes.",
        "cpu", "3 GiB of RAM", "Load the data in parts",
    ),
    "the driver, to PyCUDA": (
        "pycuda._driver.MemoryError: cuMemAlloc failed: out of memory",
        "unknown", "without any numbers", "Use less",
    ),
    "the driver, to NCCL": (
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 2 'out of memory'",
        "unknown", "without any numbers", "Use less",
    ),
    "without its period": (
        "RuntimeError: CUDA out of memory", "unknown", "without any numbers", "Use less",
    ),
    "bitsandbytes": (
        "Error out of memory at line 380 in file /src/csrc/pythonInterface.c",
        "program", "without any numbers", "smaller batch, image or model",
    ),
    # Servers.
    "vLLM, no blocks": (
        "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine.",
        "server_cache", "The model itself did fit", "--max-model-len",
    ),
    "vLLM, the context": (
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (5.25 GiB).",
        "server_cache", "It needs 16 GiB for that, and 5.25 GiB is left", "--max-model-len",
    ),
    "vLLM, the context, old": (
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens "
        "that can be stored in KV cache (12544).",
        "server_cache", "The model itself did fit", "--max-model-len",
    ),
    "vLLM, beside others": (
        "ValueError: Free memory on device (5.79/23.99 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 21.59 GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes.",
        "server_start", "5.79 GiB of 24.0 GiB was free", "See which programs use the card",
    ),
    "TGI": (
        "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease "
        "`--max-batch-prefill-tokens`",
        "server_cache", "KV cache", "--max-batch-prefill-tokens in TGI",
    ),
    "SGLang": (
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "server_cache", "KV cache", "Make the longest context shorter",
    ),
    "Ollama, on the card": (
        "Error: 500 Internal Server Error: llama runner process has terminated: CUDA error: out of "
        "memory",
        "llama", "no memory left", "num_gpu in Ollama",
    ),
    "Ollama, in RAM": (
        "Error: model requires more system memory (8.4 GiB) than is available (5.1 GiB)",
        "model_in_ram", "needs 8.40 GiB of RAM, and 5.10 GiB is free", "Use a smaller model",
    ),
    "llama.cpp, its pool": (
        "CUDA error: out of memory\n  current device: 1, in function alloc at ggml-cuda.cu:357\n  "
        "cuMemCreate(&handle, reserve_size, &prop, 0)",
        "llama", "no memory left", "fewer layers",
    ),
    "llama.cpp, the context": (
        "llama_kv_cache_init: failed to allocate buffer for kv cache",
        "llama", "for the context (KV cache)", "fewer layers",
    ),
    "llama.cpp, the PC": (
        "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory",
        "cpu", "1 GiB of RAM", "Load the data in parts",
    ),
    "ExLlama": (
        "ValueError: ## Insufficient VRAM for model and cache", "llama", "no memory left", "fewer",
    ),
    # Image programs.
    "Automatic1111's own": (
        "RuntimeError: Not enough memory, use lower resolution (max approx. 640x640). Need: 3.2GB "
        "free, Have:2.1GB free",
        "program", "asked for 3.20 GiB, and 2.10 GiB was free", "smaller batch, image or model",
    ),
    "DirectML": (
        "RuntimeError: Could not allocate tensor with 1073741824 bytes. There is not enough GPU "
        "video memory available!",
        "program", "asked for 1 GiB", "smaller batch, image or model",
    ),
    "Blender": ("System is out of GPU memory", "program", "without any numbers", "smaller batch"),
    # Frameworks.
    "TensorFlow": (
        "ResourceExhaustedError: OOM when allocating tensor with shape[32,112,112,64] and type "
        "float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]",
        "tensorflow", "a tensor of shape [32, 112, 112, 64], 98 MiB", "batch smaller",
    ),
    "TensorFlow, its pool": (
        "2024-05-01 10:11:12.345678: W tensorflow/core/common_runtime/bfc_allocator.cc:479] "
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 256.00MiB (rounded to "
        "268435456)requested by op Conv2D",
        "tensorflow", "asked for 256 MiB", "batch smaller",
    ),
    "TensorFlow, the driver": (
        "failed to allocate 3.50G (3758096384 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of "
        "memory",
        "tensorflow", "asked for 3.50 GiB", "batch smaller",
    ),
    "TensorFlow, in other words": (
        "InternalError: Failed copying input tensor from CPU:0 to GPU:0 in order to run "
        "_EagerConst: Dst tensor is not initialized.",
        "tensorflow", "the card is full", "batch smaller",
    ),
    "CuPy": (
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes "
        "(allocated so far: 2,147,483,648 bytes).",
        "program", "asked for 8 GiB. It held 2 GiB", "smaller batch",
    ),
    "Paddle": (
        "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 512.000000MB "
        "memory on GPU 0, 7.500000GB memory has been allocated and available memory is only "
        "500.000000MB.",
        "program", "asked for 512 MiB, and 500 MiB was free. It held 7.50 GiB", "smaller batch",
    ),
    "ONNX Runtime": (
        "onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for "
        "requested buffer of size 1073741824",
        "program", "asked for 1 GiB", "smaller batch",
    ),
    "ONNX Runtime, its limit": (
        "onnxruntime::BFCArena::AllocateRawInternal Available memory of 1048576 is smaller than "
        "requested bytes of 1073741824",
        "program", "asked for 1 GiB, and 1 MiB was free", "smaller batch",
    ),
    "TensorRT": (
        "[E] Error[2]: Requested amount of GPU memory (2147483648 bytes) could not be allocated.",
        "program", "asked for 2 GiB", "smaller batch",
    ),
    "TensorRT, alone": (
        "[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::140] Error Code 2: OutOfMemory (no "
        "further information)",
        "program", "without any numbers", "smaller batch",
    ),
    "Apple, MLX": (
        "RuntimeError: [metal::malloc] Attempting to allocate 19327352832 bytes which is greater "
        "than the maximum allowed buffer size of 14314045440 bytes.",
        "too_large", "18 GiB in one piece is more than Metal allows", "Print the shapes",
    ),
    "quantized layers": (
        "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough "
        "GPU RAM to fit the quantized model.",
        "offload", "only a part of the layers", "Load it in 4 bits",
    ),
    # Not the card.
    "Triton's shared memory": (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 114688, "
        "Hardware limit: 101376. Reducing block sizes or `num_stages` may help.",
        "kernel_blocks", "One block asked for 112 KiB, and this card has 99 KiB", "num_stages",
    ),
    "NumPy": (
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8.00 GiB for an array with "
        "shape (1073741824,) and data type float64",
        "cpu", "8 GiB of RAM", "Load the data in parts",
    ),
    "Linux ended it": (
        "[12345.678901] Out of memory: Killed process 4242 (python3) total-vm:35651584kB",
        "killed", "The PC's RAM was full, and Linux ended “python3”", "Load the data in parts",
    ),
    "a container's limit": (
        "Memory cgroup out of memory: Killed process 4242 (python) total-vm:35651584kB",
        "killed", "A container reached the memory limit", "Load the data in parts",
    ),
    "the page file": (
        "OSError: [WinError 1455] The paging file is too small for this operation to complete. "
        "Error loading \"C:\\venv\\lib\\site-packages\\torch\\lib\\c10_cuda.dll\".",
        "page_file", "commit limit", "page file larger",
    ),
    "the page file, in German": (
        "OSError: [WinError 1455] Die Auslagerungsdatei ist zu klein, um diesen Vorgang "
        "durchzuführen.",
        "page_file", "commit limit", "page file larger",
    ),
    "the page file, to safetensors": (
        "SafetensorError: Die Auslagerungsdatei ist zu klein. (os error 1455)",
        "page_file", "commit limit", "page file larger",
    ),
    "the loader's workers": (
        "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible "
        "that dataloader's workers are out of shared memory.",
        "workers", "/dev/shm", "--shm-size",
    ),
}  # fmt: skip

forms = pytest.mark.parametrize(("text", "kind", "cause", "step"), FORMS.values(), ids=FORMS.keys())


def plain(words: str) -> str:
    return words.replace("\u202f", " ")


@forms
def test_every_form_has_its_cause_and_its_step(text: str, kind: str, cause: str, step: str):
    found = explain_oom_text(text)
    assert found is not None
    assert (found.kind, found.errors) == (kind, 1)
    assert cause in plain(found.meaning)
    assert step in found.first_steps[0]
    assert len(found.first_steps) == len(set(found.first_steps)) >= 2
    has_numbers = found.numbers != OomNumbers(device_index=found.numbers.device_index)
    assert not (has_numbers and "without any numbers" in found.meaning)


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (new("12.00 GiB", "16.00 GiB", "9.00 GiB", "10.00 GiB", "0 bytes"),
         "10 GiB held by this program and 9 GiB free are more than the whole card, 16 GiB"),
        (new("12.00 GiB", "16.00 GiB", "17.00 GiB", "1.00 GiB", "0 bytes"),
         "17 GiB free is more than the whole card, 16 GiB"),
        (old("12.00 GiB", "16.00 GiB", "9.00 GiB", "1.00 GiB", "4.00 GiB"),
         "9 GiB allocated is more than 4 GiB reserved"),
        (new("12.00 GiB", "16.00 GiB", "1.00 GiB", "8.00 GiB", "0 bytes",
             between="Process 7 has 9.00 GiB memory in use. "),
         "8 GiB held by this program, 9 GiB held by other processes and 1 GiB free"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_all_be_true_are_called_that(text: str, words: str):
    meaning = plain(explain_oom_text(text).meaning)
    assert "The sizes contradict each other" in meaning
    assert words in meaning


def test_sizes_that_only_round_apart_do_not_contradict_each_other():
    text = new("1.00 GiB", "8.00 GiB", "0.51 GiB", "7.49 GiB", "5.00 MiB")
    assert "contradict" not in explain_oom_text(text).meaning


def test_a_card_that_had_room_for_it_is_not_called_full():
    text, *_ = FORMS["Intel, without what was free"]
    assert explain_oom_text(text).headline == "Out of memory."
    text, *_ = FORMS["only the request"]
    assert explain_oom_text(text).headline == "The card is full."


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
    found = explain_oom_text(text)
    assert (found.kind, found.numbers.processes) == ("card_full", ())
    assert found.numbers.in_use_bytes == round(14.63 * GIB)
    assert "contradict" not in found.meaning


def test_in_a_container_another_program_is_still_another_one():
    text = new(
        "2.00 GiB", "14.75 GiB", "0.11 GiB", "4.00 GiB", "0 bytes",
        between="Process 7 has 10.10 GiB memory in use. Process 3123 has 4.40 GiB memory in use. ",
    )  # fmt: skip
    found = explain_oom_text(text)
    assert [process.pid for process in found.numbers.processes] == [7]
    assert (found.kind, found.numbers.in_use_bytes) == ("others", round(4.40 * GIB))
