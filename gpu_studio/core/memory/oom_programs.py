"""What the out-of-memory errors of other programs mean: servers, frameworks, systems.

`oom_meaning` has PyTorch's own, whose numbers tell more.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from gpu_studio.core.memory.oom_words import asked_text, sized

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.oom_text import OomNumbers
    from gpu_studio.core.memory.oom_words import Kind

# TensorFlow's names of its types, with their bytes.
_TYPE_BYTES = {
    "half": 2, "bfloat16": 2, "float": 4, "double": 8, "int32": 4, "int64": 8, "complex64": 8,
    "complex128": 16, "uint8": 1, "int8": 1, "bool": 1,
}  # fmt: skip
_SHAPE = re.compile(rf"withshape\[([\d,]{{1,80}})\](?:andtype({'|'.join(_TYPE_BYTES)}))?", re.ASCII)
_BLOCKS = re.compile(r"Required:(\d{1,12}),Hardwarelimit:(\d{1,12})", re.ASCII)
_KILLED = re.compile(r"rocess\d{1,10}\(([\w.+-]{1,40})\)", re.ASCII)
_LARGEST_BYTES = 1 << 60


def _llama(error: str, numbers: OomNumbers) -> tuple[str, str]:
    device = "the card" if numbers.device_index is None else f"card {numbers.device_index}"
    asked = (
        "The driver had no memory left."
        if numbers.tried_bytes is None
        else f"llama.cpp asked {device} for {sized(numbers.tried_bytes)} in one piece, and "
        "less was free."
    )
    if "computebuffers" in error:
        asked += " This piece is work memory, which grows with the context and the batch."
    elif "kvcache" in error:
        asked += " It was for the context (KV cache), whose size is the longest context."
    return "The model does not fit on the card.", asked


def _jax(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    asked = asked_text(numbers) if numbers.tried_bytes is not None else "The text has no size."
    return "JAX got no memory.", (
        f"{asked} By default, JAX takes three quarters of a card when it starts and uses only that."
    )


def _tensorflow(error: str, numbers: OomNumbers) -> tuple[str, str]:
    shape = _SHAPE.search(error)
    if numbers.tried_bytes is not None:
        asked = f"{asked_text(numbers)} "
    elif shape is not None:
        asked = f"There was no room for a tensor of shape {_shape_words(shape)}. "
    else:
        asked = "In these words, TensorFlow says that the card is full. "
    return "TensorFlow got no memory.", (
        f"{asked}By default, TensorFlow takes nearly the whole card when it starts and "
        "uses only that."
    )


def _shape_words(shape: re.Match[str]) -> str:
    """Return a shape in words, with its size if the type is known."""
    sides = [int(side) for side in shape[1].split(",") if side]
    words = f"[{', '.join(map(str, sides))}]"
    size_bytes = _TYPE_BYTES.get(shape[2] or "", 0) * math.prod(sides)
    return f"{words}, {sized(size_bytes)}" if 0 < size_bytes < _LARGEST_BYTES else words


def _server_start(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    return "Too little of the card is free.", (
        f"{asked_text(numbers)} That is less than the share of the card that the server is set to "
        "take (gpu_memory_utilization)."
    )


def _server_cache(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    needed = (
        f"It needs {sized(numbers.tried_bytes)} for that, and {sized(numbers.free_bytes)} is left. "
        if numbers.tried_bytes is not None and numbers.free_bytes is not None
        else ""
    )
    return "The model leaves too little room for its context.", (
        "The server keeps the context of its answers (KV cache) in what the model leaves of its "
        f"share of the card. {needed}The model itself did fit."
    )


def _offload(_error: str, _numbers: OomNumbers) -> tuple[str, str]:
    return "The model does not fit on the card.", (
        "Accelerate found room for only a part of the layers, and these quantized layers have to "
        "be on the card. The text has no sizes."
    )


def _program(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    if numbers.tried_bytes is None and numbers.free_bytes is None:
        return "Out of memory.", "The program says so without any numbers."
    held = (
        f" It held {sized(numbers.allocated_bytes)}." if numbers.allocated_bytes is not None else ""
    )
    return "The card is full.", f"{asked_text(numbers)}{held}"


def _kernel_blocks(error: str, _numbers: OomNumbers) -> tuple[str, str]:
    sizes = _BLOCKS.search(error)
    asked = (
        f"One block asked for {sized(int(sizes[1]))}, and this card has {sized(int(sizes[2]))}."
        if sizes
        else "One block asked for more than this card has."
    )
    return "Not the card's memory: a kernel's blocks are too large.", (
        f"“Shared memory” is a small, fast memory inside each multiprocessor. {asked} Free memory "
        "on the card does not help."
    )


def _cpu(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = sized(numbers.tried_bytes)
    return "The PC ran out of memory, not the card.", (
        f"The program asked the system for {f'{tried} of ' if tried else ''}RAM, and the system "
        "refused."
    )


def _model_in_ram(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    return "The model does not fit into the PC's RAM.", (
        f"The part of it that does not fit on the card needs {sized(numbers.tried_bytes)} of "
        f"RAM, and {sized(numbers.free_bytes)} is free."
    )


def _page_file(_error: str, _numbers: OomNumbers) -> tuple[str, str]:
    return "Windows ran out of memory, not the card.", (
        "RAM and page file together were full while a file was loaded. Each Python process that "
        "imports PyTorch needs a few GiB of them, even if it uses little. Windows calls this the "
        "commit limit."
    )


def _killed(error: str, _numbers: OomNumbers) -> tuple[str, str]:
    found = _KILLED.search(error)
    who = f"“{found[1]}”" if found else "a program"
    where = (
        "A container reached the memory limit it was given"
        if "cgroup" in error[:12]
        else "The PC's RAM was full"
    )
    return "The PC ran out of memory, not the card.", f"{where}, and Linux ended {who}."


def _workers(_error: str, _numbers: OomNumbers) -> tuple[str, str]:
    return "Not the card: the loader's workers have too little memory.", (
        "DataLoader workers hand over their batches in /dev/shm. By default, Docker gives a "
        "container 64 MiB of it."
    )


PROGRAM_MEANINGS: dict[Kind, Callable[[str, OomNumbers], tuple[str, str]]] = {
    "llama": _llama,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "server_start": _server_start,
    "server_cache": _server_cache,
    "offload": _offload,
    "program": _program,
    "kernel_blocks": _kernel_blocks,
    "cpu": _cpu,
    "model_in_ram": _model_in_ram,
    "page_file": _page_file,
    "killed": _killed,
    "workers": _workers,
}
_SMALLER_MODEL = "Use a smaller model, or a file with stronger quantization."
_LARGER_PAGE_FILE = (
    "Make the page file larger: search Windows for “Advanced system settings”, then Performance, "
    "Advanced, Virtual memory."
)
PROGRAM_STEPS: dict[Kind, tuple[str, ...]] = {
    "llama": (
        "Put fewer layers on the card: lower -ngl (--n-gpu-layers; num_gpu in Ollama).",
        "Make the context smaller (-c; num_ctx in Ollama), or use a file with stronger "
        "quantization.",
    ),
    "jax": (
        "Make the batch smaller.",
        "If other programs use the card too, set XLA_PYTHON_CLIENT_PREALLOCATE=false before "
        "Python starts.",
    ),
    "tensorflow": (
        "Make the batch smaller.",
        "See which programs use the card ({monitor} or the Devices tab): an old notebook kernel "
        "keeps nearly all of it.",
        "If other programs use the card too, set TF_FORCE_GPU_ALLOW_GROWTH=true before Python "
        "starts.",
    ),
    "server_start": (
        "See which programs use the card ({monitor} or the Devices tab), and close some of them.",
        "Lower the server's share: --gpu-memory-utilization.",
    ),
    "server_cache": (
        "Make the longest context shorter: --max-model-len in vLLM, --max-batch-prefill-tokens in "
        "TGI.",
        "Raise the server's share of the card: --gpu-memory-utilization in vLLM, "
        "--mem-fraction-static in SGLang.",
        _SMALLER_MODEL,
    ),
    "offload": (
        "Load it in 4 bits, or choose a smaller model.",
        "Close other programs that use the card.",
        "With llm_int8_enable_fp32_cpu_offload=True, some layers stay in RAM, where they are slow.",
    ),
    "program": (
        "Use less memory: a smaller batch, image or model.",
        "See which programs use the card ({monitor} or the Devices tab), and close some of them.",
    ),
    "kernel_blocks": (
        "In a kernel of your own, use smaller blocks or a lower num_stages.",
        "In a library, turn that kernel off or take another version: it is tuned for larger cards.",
    ),
    "cpu": (
        "Load the data in parts, or use fewer DataLoader workers.",
        "Look for a wrong shape: the requested size is often a clue.",
    ),
    "model_in_ram": (
        _SMALLER_MODEL,
        "Close programs that use much RAM, such as a browser.",
    ),
    "page_file": (
        _LARGER_PAGE_FILE,
        "Start fewer DataLoader workers: each one is a Python process.",
    ),
    "killed": (
        "Load the data in parts, or use fewer DataLoader workers.",
        "Watch the PC's RAM while the program runs; in a container, raise its memory limit.",
    ),
    "workers": (
        "Start the container with --shm-size=8g or --ipc=host.",
        "Use fewer workers: num_workers=0 needs none of it.",
    ),
}
