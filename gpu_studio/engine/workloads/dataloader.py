"""Feeding a device: one epoch of training, with each batch loaded, copied and learned from.

The data sets, the batch of 32 and the loop are those of "How can I switch from CPU to GPU PyTorch?"
and "How can a PyTorch model be moved to the GPU?" (answers of 2025-01-30).
"""

from __future__ import annotations

import contextlib
import time
from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.workloads import DATALOADER
from gpu_studio.core.device_name import wait_line
from gpu_studio.core.units import format_bytes, format_duration, format_percent
from gpu_studio.engine.device import synchronize, time_once
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.feeding import DATA_SETS, LEARNING_RATE, Feed
from gpu_studio.engine.workloads.workload import Workload

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.feeding import Batch, DataSet

PARTS = ("loading", "copying", "computing")
# Many small steps in which a layer forgets its initial weights: the rounding errors of an epoch add
# up like a random walk. Measured on the CPU: at most 2 eps of the weights' norm.
_TOLERANCE_EPS = 16.0
_MOST_ROUNDS = 3
_LONGEST_SPLITTING_S = 1.0


class Dataloader(Workload):
    """An epoch of small batches; see `workload.Workload`."""

    has_products = True
    description = DATALOADER

    def work(self, case: Case) -> Work:
        """Count an epoch's operations and bytes; the throughput is in samples."""
        data_set = DATA_SETS[case.options["data_set"]]
        weights = data_set.inputs * data_set.outputs
        batches = -(-data_set.samples // case.size)
        on_device = data_set.size_bytes if case.options["way"] == "whole_set" else 0
        batch_bytes = data_set.size_bytes * min(case.size, data_set.samples) // data_set.samples
        return Work(
            # Forward and the weights' gradient; the inputs need no gradient.
            operations=4.0 * weights * data_set.samples,
            # Each sample is read. For each batch, the weights are read twice and written once,
            # and their gradient is written.
            bytes_moved=float(data_set.size_bytes + 4 * batches * weights * case.item_bytes),
            throughput_work=float(data_set.samples),
            memory_bytes=on_device + 4 * batch_bytes + 3 * weights * case.item_bytes,
            host_bytes=2 * data_set.size_bytes,
            longest_kernel=0.5 / batches,
        )

    def prepare(self, case: Case) -> Call:
        return DataloaderCall(case)

    def verify(self, case: Case) -> Verification:
        """Compare every arriving sample bit for bit, and one epoch's weights with float64."""
        data_set = DATA_SETS[case.options["data_set"]]
        with contextlib.closing(Feed(case)) as feed:
            arrived = _arrived(feed)
            learner = Learner(data_set, case.device, torch.float32)
            learner.learn(feed)
        drawn = data_set.draw()
        is_complete = all(map(torch.equal, arrived, drawn))
        reference = Learner(data_set, torch.device("cpu"), torch.float64)
        for begin in range(0, data_set.samples, case.size):
            inputs, targets = (part[begin : begin + case.size] for part in drawn)
            reference.step((inputs.double(), targets if data_set.is_labelled else targets.double()))
        expected, found = reference.weights(), learner.weights()
        error = float((found - expected).norm() / expected.norm())
        tolerance = _TOLERANCE_EPS * torch.finfo(torch.float32).eps
        compared = (f"all {data_set.samples} samples", "the weights after an epoch")
        if not is_complete:
            return Verification(False, "some samples did not arrive unchanged", compared)
        if not error <= tolerance:  # also true for NaN
            finding = f"every sample arrived, but the weights are off by {error:.1e}"
            return Verification(False, finding, compared)
        finding = f"arrived bit for bit, weights within {tolerance:.1e} of float64"
        return Verification(True, finding, compared)

    def snippet(self, case: Case) -> str:
        return _script_for(case)


class Learner:
    """A layer that learns from batches with plain gradient descent.

    Args:
        data_set: the data set to learn from.
        device: the device to learn on.
        dtype: the dtype of the weights.
    """

    def __init__(self, data_set: DataSet, device: torch.device, dtype: torch.dtype) -> None:
        self._data_set = data_set
        self._model = data_set.build_model().to(device, dtype)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=LEARNING_RATE)

    def step(self, batch: Batch) -> None:
        inputs, targets = batch
        self._optimizer.zero_grad()
        self._data_set.loss(self._model(inputs), targets).backward()
        self._optimizer.step()

    def learn(self, feed: Feed) -> None:
        for batch in feed.batches():
            self.step(feed.to_device(batch))

    def weights(self) -> torch.Tensor:
        """Return all weights and biases as one vector, float64 on the CPU."""
        parameters = [one.detach().cpu().double() for one in self._model.parameters()]
        return torch.cat([one.flatten() for one in parameters])


class DataloaderCall(Call):
    """One epoch; its workers live until `close`.

    Args:
        case: the device, the batch size, and the options.
    """

    is_batched = False

    def __init__(self, case: Case) -> None:
        self._case = case
        self._feed = Feed(case)
        self._learner = Learner(self._feed.data_set, case.device, case.dtype)
        self._whole_s = self._split_s = 0.0

    def __call__(self) -> object:
        self._learner.learn(self._feed)
        return self._learner

    def parts_s(self) -> dict[str, float]:
        """Return the time of loading, copying and computing in a separate epoch.

        This epoch waits for the card after each part, so nothing overlaps; the findings say what
        that costs. It is the median of up to three epochs.
        """
        rounds: list[tuple[float, list[float]]] = []
        started_s = time.perf_counter()
        while len(rounds) < _MOST_ROUNDS:
            rounds.append((time_once(self, self._case.device), self._split_epoch_s()))
            if time.perf_counter() - started_s >= _LONGEST_SPLITTING_S:
                break
        self._whole_s = median(whole_s for whole_s, _ in rounds)
        seconds = sorted((one for _, one in rounds), key=sum)[len(rounds) // 2]
        self._split_s = sum(seconds)
        return dict(zip(PARTS, seconds, strict=True))

    def _split_epoch_s(self) -> list[float]:
        device, seconds = self._case.device, [0.0, 0.0, 0.0]
        batches = self._feed.batches()
        begin_s = time.perf_counter()
        while (batch := next(batches, None)) is not None:
            loaded_s = time.perf_counter()
            on_device = self._feed.to_device(batch)
            synchronize(device)
            copied_s = time.perf_counter()
            self._learner.step(on_device)
            synchronize(device)
            end_s = time.perf_counter()
            seconds[0] += loaded_s - begin_s
            seconds[1] += copied_s - loaded_s
            seconds[2] += end_s - copied_s
            begin_s = end_s
        seconds[0] += time.perf_counter() - begin_s  # the loader's time to report the end
        return seconds

    def findings(self) -> tuple[str, ...]:
        feed = self._feed
        waiting = " and waits for the card" if self._case.is_on_card else ""
        found = [
            f"The parts come from an epoch that reads the clock{waiting} after each part. It took "
            f"{format_duration(self._split_s)}; an epoch without that took "
            f"{format_duration(self._whole_s)} ({_by_how_much(self._split_s, self._whole_s)})."
        ]
        if feed.is_whole and self._case.is_on_card:
            found.append(
                f"Copying the whole data set ({format_bytes(feed.data_set.size_bytes)}) to the "
                f"card took {format_duration(feed.start_s)}, once, before the timing."
            )
        if feed.workers:
            found.append(
                f"Starting the workers took {format_duration(feed.start_s)} before the timing, "
                "including their first epoch; without persistent_workers=True, every epoch starts "
                "so."
            )
        return (*found, *_meaningless(self._case))

    def close(self) -> None:
        self._feed.close()


def _arrived(feed: Feed) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all inputs and targets as they arrived on the device, copied back, in order."""
    batches = [feed.to_device(batch) for batch in feed.batches()]
    inputs, targets = zip(*batches, strict=True)
    return torch.cat([one.cpu() for one in inputs]), torch.cat([one.cpu() for one in targets])


def _by_how_much(split_s: float, whole_s: float) -> str:
    longer = split_s / whole_s - 1.0
    return f"{format_percent(abs(longer))} {'longer' if longer >= 0 else 'shorter'}"


def _meaningless(case: Case) -> tuple[str, ...]:
    """Return sentences about the options that have no effect in this case."""
    found = []
    if not case.is_on_card and case.options["way"] != "batch_by_batch":
        found.append(
            "On the CPU, the data already is in the device's memory: nothing is copied, and "
            "pinned memory has no effect."
        )
    if case.options["way"] == "whole_set" and case.options["num_workers"] != "0":
        found.append("The whole data set is on the device, so no worker was started.")
    return tuple(found)


def _script_for(case: Case) -> str:
    """Return a runnable script; with workers, it must be saved as a file."""
    data_set, way = DATA_SETS[case.options["data_set"]], case.options["way"]
    workers = int(case.options["num_workers"])
    feed = _LOADER.format(
        pin_memory=way.startswith("pinned") and case.is_on_card,
        workers=f", num_workers={workers}, persistent_workers=True" if workers else "",
    )
    return _SNIPPET.format(
        size=case.size,
        device=case.address,
        samples=data_set.samples,
        inputs=data_set.inputs,
        outputs=data_set.outputs,
        targets="torch.randint(0, 2, ({0},))" if data_set.is_labelled else "torch.randn({0}, {1})",
        loss=_LABELLED if data_set.is_labelled else _NUMBERS,
        rate=LEARNING_RATE,
        feed=_WHOLE if way == "whole_set" else feed,
        non_blocking=", non_blocking=True" if way == "pinned_non_blocking" else "",
        wait=wait_line(case.address).replace("torch", "    torch"),
    ).format(data_set.samples, data_set.outputs)


_LABELLED = "binary_cross_entropy_with_logits(model(inputs).squeeze(1), targets.float())"
_NUMBERS = "mse_loss(model(inputs), targets)"
_WHOLE = """\
    dataset = TensorDataset(x_data.to(device), y_data.to(device))
    loader = [dataset[i : i + size] for i in range(0, len(dataset), size)]
"""
_LOADER = """\
    dataset = TensorDataset(x_data, y_data)
    loader = DataLoader(dataset, batch_size=size, pin_memory={pin_memory}{workers})
"""
_SNIPPET = """\
import time
import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    size, device = {size}, "{device}"
    x_data = torch.randn({samples}, {inputs})
    y_data = {targets}
{feed}    model = torch.nn.Linear({inputs}, {outputs}).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr={rate})

    def epoch():
        for inputs, targets in loader:
            inputs = inputs.to(device{non_blocking})
            targets = targets.to(device{non_blocking})
            optimizer.zero_grad()
            loss = torch.nn.functional.{loss}
            loss.backward()
            optimizer.step()

    epoch()  # the first one is slower
{wait}    start = time.perf_counter()
    for _ in range(3):
        epoch()
{wait}    print(f"{{{{(time.perf_counter() - start) / 3:.6f}}}} s a call")


if __name__ == "__main__":  # worker processes import this file
    main()
"""
