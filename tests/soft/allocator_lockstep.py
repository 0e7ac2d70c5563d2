"""Drives PyTorch's allocator and the model of it with the same calls, and stops where they differ.

Runs in a child on a soft card. After every step all counters of ``torch.cuda.memory_stats()`` are
compared, after an allocation also its address, after an out-of-memory error its text, and now and
then the whole snapshot.
"""

from __future__ import annotations

import random
import re
from typing import Any

import torch

from gpu_studio.core.allocator import AllocatorModel, Block, OutOfMemory

MIB = 1 << 20
_BOUNDARIES = (512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 64 * MIB)
_OFFSETS = (-512, -1, 0, 1, 512)
_PROCESSES = re.compile(r"(Process \d+|Including non-PyTorch memory, this process) has [^a-z]*"
                        r"([KMG]iB|bytes) memory in use\. ")  # fmt: skip
_SNAPSHOT_EVERY = 997


class Trace:
    """Random calls: sizes from 1 byte to a quarter of the card, frees in any order.

    Phases in which memory fills up take turns with phases in which it empties, each with a largest
    size of its own, so that the card is now full and now nearly free, of large and of small blocks.
    Some sizes come back, as those of a network's layers do.
    """

    def __init__(self, seed: int, card_bytes: int) -> None:
        self._random = random.Random(seed)
        self._card_bytes = card_bytes
        self._next_phase()

    def verb(self, living: int) -> str:
        """Return what to do next, with that many tensors living."""
        self._left -= 1
        if self._left < 0:
            self._next_phase()
            return self._random.choice(("empty_cache", "malloc"))
        is_malloc = living == 0 or self._random.random() < self._share_of_mallocs
        return "malloc" if is_malloc else "free"

    def size_bytes(self) -> int:
        return self._random.choice(self._usual) if self._random.random() < 0.4 else self._any_size()

    def victim(self, living: int) -> int:
        """Return which tensor to free: a new one, an old one, or any."""
        return self._random.choice((0, living - 1, self._random.randrange(living)))

    def _next_phase(self) -> None:
        self._left = self._random.randrange(1, 300)
        self._share_of_mallocs = self._random.choice((0.1, 0.3, 0.5, 0.6, 0.8, 0.95))
        self._largest_bytes = self._card_bytes // self._random.choice((4, 4, 4, 16, 256, 4096))
        self._usual = [self._any_size() for _ in range(8)]

    def _any_size(self) -> int:
        kind = self._random.random()
        if kind < 0.0004:
            return self._random.choice((self._card_bytes * 3 // 2, 1 << 50, 1 << 60))
        if kind < 0.1:
            size_bytes = self._random.choice(_BOUNDARIES) + self._random.choice(_OFFSETS)
            return min(size_bytes, self._largest_bytes)
        if kind < 0.2:
            return self._random.randrange(1, self._largest_bytes + 1)
        return int(2 ** self._random.uniform(0, self._largest_bytes.bit_length() - 1))


class Lockstep:
    """PyTorch's allocator and the model, side by side.

    Args:
        conf: the options, which this process was started with.
        fraction: for ``set_per_process_memory_fraction``.
    """

    def __init__(self, conf: str, fraction: float) -> None:
        free_bytes, self.total_bytes = torch.cuda.mem_get_info()
        if fraction < 1:
            torch.cuda.set_per_process_memory_fraction(fraction)
        self.model = AllocatorModel(
            self.total_bytes, self.total_bytes - free_bytes, conf=conf, fraction=fraction
        )
        self._living: list[tuple[torch.Tensor, Block]] = []
        self._offset: int | None = None

    @property
    def living(self) -> int:
        return len(self._living)

    def malloc(self, size_bytes: int) -> None:
        real, block = self._real_malloc(size_bytes), self._model_malloc(size_bytes)
        if isinstance(real, str) or isinstance(block, str):
            assert block == real, f"the model: {block}; PyTorch: {real}"
            return
        if size_bytes:
            if self._offset is None:
                self._offset = real.data_ptr() - block.address
            there = real.data_ptr() - self._offset
            assert block.address == there, f"{block} is at {there:#x} in PyTorch"
        self._living.append((real, block))

    def free(self, index: int) -> None:
        self._living[index], self._living[-1] = self._living[-1], self._living[index]
        real, block = self._living.pop()
        del real
        self.model.free(block)

    def empty_cache(self) -> None:
        torch.cuda.empty_cache()
        self.model.empty_cache()

    def compare(self) -> None:
        """Compare every counter, and what the driver has left."""
        model = self.model.stats()
        real = _flat(torch.cuda.memory_stats_as_nested_dict())
        if model != real:
            differing = {
                key: (model.get(key), real.get(key))
                for key in sorted(model.keys() | real.keys())
                if model.get(key) != real.get(key)
            }
            raise AssertionError(f"(model, PyTorch) differ in {differing}")

    def compare_all(self) -> None:
        """Compare segments and blocks, options, and the driver's free memory, too."""
        self.compare()
        free_bytes, _ = torch.cuda.mem_get_info()
        assert self.model.free_bytes == free_bytes
        real, model = torch.cuda.memory._snapshot(), self.model.snapshot()
        for segment in real["segments"]:
            segment["address"] -= self._offset
            for block in segment["blocks"]:
                block["address"] -= self._offset
        assert model == real, "the snapshots differ"

    def _model_malloc(self, size_bytes: int) -> Block | str:
        try:
            return self.model.allocate(size_bytes)
        except OutOfMemory as error:
            return str(error)

    @staticmethod
    def _real_malloc(size_bytes: int) -> torch.Tensor | str:
        try:
            return torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            return _PROCESSES.sub("", str(error))


def run(conf: str, fraction: float, seed: int, steps: int) -> dict[str, Any]:
    """Go on for so many steps and return PyTorch's counters at the end.

    Raises:
        AssertionError: the two differ; it names the step.
    """
    both = Lockstep(conf, fraction)
    trace = Trace(seed, both.total_bytes)
    for step in range(steps):
        verb = trace.verb(both.living)
        try:
            if verb == "malloc":
                both.malloc(trace.size_bytes())
            elif verb == "free":
                both.free(trace.victim(both.living))
            else:
                both.empty_cache()
            both.compare()
            if step % _SNAPSHOT_EVERY == 0:
                both.compare_all()
        except AssertionError as error:
            raise AssertionError(f"step {step}, {verb}, seed {seed}: {error}") from error
    both.compare_all()
    return dict(torch.cuda.memory_stats())


def _flat(nested: dict[str, Any], prefix: str = "") -> dict[str, int]:
    flat = {}
    for key, value in nested.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
