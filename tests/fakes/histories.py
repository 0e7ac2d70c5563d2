"""Histories of a simulated card and of invented trainings, recorded by the allocator's model."""

import pickle
from pathlib import Path
from typing import Any

from gpu_studio.core.memory.allocator.blocks import Block, ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.modelled_memory import ModelledMemory, ModelledTensor

MIB = 1 << 20
_FORWARD = [{"filename": "/x/torch/nn/modules/module.py", "line": 1775, "name": "_call_impl"}]
_BACKWARD = [{"filename": "/x/torch/_tensor.py", "line": 630, "name": "backward"}]
_STEP = [{"filename": "/x/torch/optim/adam.py", "line": 180, "name": "_init_group"}]
_MOVE = [{"filename": "/x/torch/nn/modules/module.py", "line": 1340, "name": "convert"}]
_LINES = {
    "train.py": {31: "main", 73: "main", 74: "main"},
    "unet.py": {118: "forward", 142: "forward"},
    "attn.py": {57: "forward"},
    "norm.py": {12: "forward"},
}


def _entry(action: str, address: int, size_bytes: int, **more: Any) -> dict[str, Any]:
    place = {"device_free" if action == "oom" else "addr": address}
    return {"action": action, **place, "size": size_bytes, "stream": 0, "frames": [], **more}


class RecordedMemory(ModelledMemory):
    """A simulated card whose tensors and segments are recorded from `start_history` on."""

    def start_history(self) -> None:
        self._trace: list[dict[str, Any]] = []
        self.allocator.card.watch = self._note

    def write_snapshot(self, path: Path) -> None:
        snapshot = self.allocator.snapshot()
        snapshot["device_traces"] = [self._trace]
        self.allocator.card.watch = None
        path.write_bytes(pickle.dumps(snapshot))

    def empty(self, size_bytes: int) -> ModelledTensor:
        try:
            block = self.allocator.allocate(size_bytes)
        except ModelledOutOfMemory:
            self._note("oom", self.allocator.card.free_bytes, size_bytes)
            raise
        self._note("alloc", block.address, size_bytes)
        return ModelledTensor(self, block)

    def free(self, block: Block) -> None:
        for action in ("free_requested", "free_completed"):
            self._note(action, block.address, block.requested_bytes)
        super().free(block)

    def _note(self, action: str, address: int, size_bytes: int) -> None:
        if self.allocator.card.watch is not None:
            self._trace.append(_entry(action, address, size_bytes))


class TrainingHistory:
    """Records what a training of a small network would ask of a card.

    Args:
        batch: the size of a batch: activations grow with it.
        total_mib: the card's memory.
        conf: the allocator's options.
    """

    def __init__(self, batch: int = 16, *, total_mib: int = 1 << 15, conf: str = "") -> None:
        self._model = AllocatorModel(total_mib * MIB, conf=conf)
        self._batch = batch
        self._trace: list[dict[str, Any]] = []
        self._stacks: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
        self._frames: list[dict[str, Any]] = []
        self._time_us = 1_760_000_000_000_000
        self._model.card.watch = self._note

    def run(self, steps: int = 4, *, layers: int = 12, width_mib: int = 25) -> None:
        self._each(layers, "train.py", 31, _MOVE, width_mib * MIB)
        states: list[Block] = []
        gradients: list[Block] = []
        for _ in range(steps):
            held = []
            for layer in range(layers):
                for file, line, share in (
                    ("unet.py", 118, 2), ("unet.py", 142, 3), ("attn.py", 57, 2), ("norm.py", 12, 1)
                ):  # fmt: skip
                    size_bytes = self._batch * (share * (MIB // 3) + 4096 * layer)
                    held += self._each(1, file, line, _FORWARD, size_bytes)
                    self._free(self._each(1, file, line, _FORWARD, size_bytes // 3)[0])
            for _ in range(layers):
                if len(gradients) < layers:
                    gradients += self._each(1, "train.py", 73, _BACKWARD, width_mib * MIB)
                passing = self._each(2, "train.py", 73, _BACKWARD, self._batch * MIB)
                for block in (*passing, *(held.pop() for _ in range(4))):
                    self._free(block)
            if not states:
                states = self._each(2 * layers, "train.py", 74, _STEP, width_mib * MIB)
            self._time_us += 200_000

    def empty_cache(self) -> None:
        self._model.empty_cache()

    def write(self, path: Path) -> None:
        snapshot = self._model.snapshot()
        snapshot["device_traces"] = [self._trace]
        path.write_bytes(pickle.dumps(snapshot))

    def _each(
        self, count: int, file: str, line: int, above: list[dict[str, Any]], size_bytes: int
    ) -> list[Block]:
        key = (file, line, above[0]["name"])
        own = {"filename": f"/home/me/{file}", "line": line, "name": _LINES[file][line]}
        self._frames = self._stacks.setdefault(key, [*above, own])
        return [self._allocate(size_bytes) for _ in range(count)]

    def _allocate(self, size_bytes: int) -> Block:
        block = self._model.allocate(size_bytes)
        self._note("alloc", block.address, size_bytes)
        return block

    def _free(self, block: Block) -> None:
        for action in ("free_requested", "free_completed"):
            self._note(action, block.address, block.requested_bytes)
        self._model.free(block)

    def _note(self, action: str, address: int, size_bytes: int) -> None:
        self._time_us += 4_000
        self._trace.append(
            _entry(action, address, size_bytes, time_us=self._time_us, frames=self._frames)
        )
