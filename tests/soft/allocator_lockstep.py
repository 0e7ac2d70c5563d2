"""PyTorch's allocator and the model of it, side by side, for a child on a soft card.

Whatever is asked of the one is asked of the other, and all they tell must be the same: addresses,
the texts of errors, the model's counters in ``torch.cuda.memory_stats()``, and the whole snapshot.
"""

import random
import re
from typing import Any

import torch

from gpu_studio.core.memory.allocator.blocks import Block, ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.allocator.options import parse_configuration
from tests.core.memory.allocator.allocator_trace import (
    Edge,
    Setting,
    follow,
    reserved_at,
)

__all__ = ["Edge", "Lockstep", "Setting", "compare_options", "reserved_at", "run"]

_PROCESSES = re.compile(
    r"(Process \d+|Including non-PyTorch memory, this process) has \S+ \S+ memory in use\. "
)


class Lockstep:
    """Both allocators; one that differs is an AssertionError.

    Args:
        conf: the options, which this process was started with.
        fraction: for ``set_per_process_memory_fraction``.
    """

    def __init__(self, conf: str = "", fraction: float = 1.0) -> None:
        free_bytes, total_bytes = torch.cuda.mem_get_info()
        if fraction < 1:
            torch.cuda.set_per_process_memory_fraction(fraction)
        self.other_bytes = total_bytes - free_bytes
        self.model = AllocatorModel(total_bytes, self.other_bytes, conf=conf, fraction=fraction)
        self._tensors: list[tuple[torch.Tensor, Block]] = []
        self._offset = 0

    @property
    def living(self) -> int:
        return len(self._tensors)

    def malloc(self, size_bytes: int) -> str | None:
        real, block = _real_malloc(size_bytes), self._model_malloc(size_bytes)
        if isinstance(real, str) or isinstance(block, str):
            assert block == real, f"the model: {block}; PyTorch: {real}"
            return real
        if size_bytes:
            self._offset = self._offset or real.data_ptr() - block.address
            there = real.data_ptr() - self._offset
            assert block.address == there, f"{block} is at {there:#x} in PyTorch"
        self._tensors.append((real, block))
        return None

    def free(self, index: int) -> None:
        self._tensors[index], self._tensors[-1] = self._tensors[-1], self._tensors[index]
        real, block = self._tensors.pop()
        del real
        self.model.free(block)

    def empty_cache(self) -> None:
        torch.cuda.empty_cache()
        self.model.empty_cache()

    def stats(self) -> dict[str, int]:
        """Return the model's counters, which are PyTorch's too."""
        model, all_real = self.model.stats(), self.all_stats()
        real = {name: all_real[name] for name in model}
        if model != real:
            differing = {
                name: (model[name], real[name]) for name in model if model[name] != real[name]
            }
            raise AssertionError(f"(model, PyTorch) differ in {differing}")
        return real

    def all_stats(self) -> dict[str, int]:
        return _flat(torch.cuda.memory_stats_as_nested_dict())

    def snapshot(self) -> dict[str, Any]:
        """Return PyTorch's snapshot, which is the model's too, at the model's addresses."""
        free_bytes, _ = torch.cuda.mem_get_info()
        assert self.model.card.free_bytes == free_bytes
        real = torch.cuda.memory._snapshot()
        for segment in real["segments"]:
            segment["address"] -= self._offset
            for block in segment["blocks"]:
                block["address"] -= self._offset
        assert self.model.snapshot() == real, "the snapshots differ"
        return real

    def _model_malloc(self, size_bytes: int) -> Block | str:
        try:
            return self.model.allocate(size_bytes)
        except ModelledOutOfMemory as error:
            return str(error)


def _real_malloc(size_bytes: int) -> torch.Tensor | str:
    try:
        return torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        return _PROCESSES.sub("", str(error))


def run(setting: Setting, steps: int) -> dict[str, Any]:
    """Make the calls of a setting of both, and return what PyTorch told of them."""
    both = Lockstep(setting.conf, setting.fraction)
    digests = follow(both, setting, steps)
    both.snapshot()
    return {"other_bytes": both.other_bytes, "digests": digests, "stats": both.all_stats()}


_KEYS = [
    "large_segment_size_mb", "max_split_size_mb", "max_non_split_rounding_mb",
    "garbage_collection_threshold", "roundup_power2_divisions", "expandable_segments",
    "pinned_use_background_threads", "pinned_max_round_threshold_mb", "pinned_max_cached_size_mb",
    "backend", "release_lock_on_cudamalloc", "pinned_use_hip_host_register",
    "graph_capture_record_stream_reuse", "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb", "per_process_memory_fraction", "throw_on_cudamalloc_oom",
    "unheard_of",
]  # fmt: skip
_VALUES = [
    "True", "False", "true", "0", "1", "2", "3", "8", "11", "19", "20", "64", "256", "-1", "+5",
    "1e3", "0.5", ".5", "5.", "nan", "-inf", "0x10", "0x1p-3", "0xg", "abc", "64x", "1e-400",
    "99999999999999999999", "-18446744073709551615", "0e-999", "native", "cudaMallocAsync", "",
    "[", "[]", ">", "[4:1]", "[4:1,>:2]", "[256:1,512:2,>:8]", "[2:3]", "[3:2]", "1e", "-", "5 5",
]  # fmt: skip


def compare_options(seed: int, texts: int) -> tuple[int, int]:
    """Give random option texts to both parsers; count the accepted and the refused ones.

    PyTorch also takes texts that its documentation does not show; the model may refuse those.
    """
    chance = random.Random(seed)
    accepted = 0
    for _ in range(texts):
        parts = [
            chance.choice(_KEYS) + chance.choice(":::::=,") + chance.choice(_VALUES)
            for _ in range(chance.choice((1, 1, 2, 3)))
        ]
        text = chance.choice((",", ",", " ,", "")).join(parts)
        if chance.random() < 0.3:
            cut = chance.randrange(len(text) + 1)
            text = text[:cut] + chance.choice(("", ",", ":", "[", "]", "1"))
        # This one option is not put back by reading the next text.
        torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:20")
        if not _refusal(parse_configuration, text):
            accepted += 1
            real = _refusal(torch._C._accelerator_setAllocatorSettings, text)
            assert not real, f"{text!r}: the model takes it, PyTorch says {real}"
    return accepted, texts - accepted


def _refusal(parse: Any, text: str) -> str:
    try:
        parse(text)
    except (ValueError, IndexError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _flat(nested: dict[str, Any], prefix: str = "") -> dict[str, int]:
    flat = {}
    for key, value in nested.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
