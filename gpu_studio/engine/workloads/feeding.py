"""The data sets of the workload `dataloader`, and the ways to feed a device with their batches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from gpu_studio.engine.device import synchronize
from gpu_studio.engine.workloads.loader_worker import (
    START_METHOD,
    end_with_engine,
    prepare_start,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.engine.workloads.case import Case

Batch = tuple[torch.Tensor, ...]
LEARNING_RATE = 0.01
_SEED = 20250130
# Each worker imports PyTorch at its start, all at once: on a PC with a hard disk, for minutes.
_LONGEST_WAIT_S = 300.0


class DataSet(msgspec.Struct, frozen=True):
    """Random samples like those of a document, and the layer that learns from them."""

    samples: int
    inputs: int
    outputs: int
    # Whether a target is one of two labels, or as many numbers as the layer has outputs.
    is_labelled: bool

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return inputs, shape (samples, inputs), and their targets; the same every time."""
        generator = torch.Generator().manual_seed(_SEED)
        inputs = torch.randn(self.samples, self.inputs, generator=generator)
        if self.is_labelled:
            return inputs, torch.randint(0, 2, (self.samples,), generator=generator)
        return inputs, torch.randn(self.samples, self.outputs, generator=generator)

    def build_model(self) -> nn.Linear:
        """Return the layer on the CPU, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            return nn.Linear(self.inputs, self.outputs)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.is_labelled:
            return nn.functional.binary_cross_entropy_with_logits(
                outputs.squeeze(1), targets.to(outputs.dtype)
            )
        return nn.functional.mse_loss(outputs, targets)

    @property
    def size_bytes(self) -> int:
        """Bytes of all samples: float32 numbers, int64 labels."""
        target_bytes = 8 if self.is_labelled else 4 * self.outputs
        return self.samples * (4 * self.inputs + target_bytes)


# By the option's value: the data sets of "How can I switch from CPU to GPU PyTorch?" and of "How
# can a PyTorch model be moved to the GPU?", whose layer has one output.
DATA_SETS = {
    "10000x100": DataSet(samples=10_000, inputs=100, outputs=50, is_labelled=False),
    "1000x10": DataSet(samples=1_000, inputs=10, outputs=1, is_labelled=True),
}


class Feed:
    """Batches of a data set, one epoch at a time; `close` ends its workers.

    Args:
        case: the device, the batch size, and the options way, num_workers and data_set.
    """

    def __init__(self, case: Case) -> None:
        self.data_set = DATA_SETS[case.options["data_set"]]
        self._device, self._batch_size = case.device, case.size
        way = case.options["way"]
        self.is_whole = way == "whole_set"
        self.workers = 0 if self.is_whole else int(case.options["num_workers"])
        self.is_pinned = way.startswith("pinned") and case.is_on_card
        self.is_non_blocking = way == "pinned_non_blocking"
        inputs, targets = self.data_set.draw()
        start_s = time.perf_counter()
        if self.is_whole:
            self._whole = (inputs.to(case.device), targets.to(case.device))
            synchronize(case.device)
        else:
            self._loader = self._make_loader(TensorDataset(inputs, targets))
        # The time to copy the whole data set, or to start the workers.
        self.start_s = time.perf_counter() - start_s

    def batches(self) -> Iterator[Batch]:
        """Yield an epoch's batches; on the CPU, unless the whole data set is on a card."""
        if not self.is_whole:
            yield from self._loader
            return
        inputs, targets = self._whole
        for begin in range(0, len(inputs), self._batch_size):
            end = begin + self._batch_size
            yield inputs[begin:end], targets[begin:end]

    def to_device(self, batch: Batch) -> Batch:
        """Return a batch on the device; with non-blocking copies, it may still be on its way."""
        inputs, targets = batch
        return (
            inputs.to(self._device, non_blocking=self.is_non_blocking),
            targets.to(self._device, non_blocking=self.is_non_blocking),
        )

    def close(self) -> None:
        if not self.is_whole:
            # The loader ends with its iterator, which stops the workers and joins them.
            del self._loader

    def _make_loader(self, samples: TensorDataset) -> DataLoader[Batch]:
        if not self.workers:
            return DataLoader(samples, batch_size=self._batch_size, pin_memory=self.is_pinned)
        prepare_start()
        loader: DataLoader[Batch] = DataLoader(
            samples,
            batch_size=self._batch_size,
            pin_memory=self.is_pinned,
            num_workers=self.workers,
            persistent_workers=True,
            multiprocessing_context=START_METHOD,
            worker_init_fn=end_with_engine,
            timeout=_LONGEST_WAIT_S,
        )
        for _ in loader:  # the workers start with the first epoch and live on
            pass
        return loader
