"""One process of a DistributedDataParallel group: ``torchrun … -m gpu_studio.engine.replica``.

torchrun starts the requested number of processes, and each inherits the engine's pipes as standard
input and output. Only the first process reads orders there, one JSON object per line. It passes
them on to the others and answers. All end when the engine or torchrun ends.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import math
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import psutil
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from gpu_studio.core.device_name import is_cpu
from gpu_studio.engine.device import accelerator_of, synchronize
from gpu_studio.engine.workloads.train_network import (
    LEARNING_RATE,
    MOMENTUM,
    build_network,
    make_batch,
)
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECK, STEP, END = 1, 2, 3
# Momentum shows only in the second step.
CHECKED_STEPS = 2
_WATCH_PERIOD_S = 0.2
# The engine's threads, which the working processes share.
_THREADS = torch.get_num_threads()


class Order(msgspec.Struct, frozen=True):
    """An order of the engine: the first ``processes`` do ``what`` (`CHECK`, `STEP`) together."""

    what: int
    processes: int


class Share(msgspec.Struct, frozen=True):
    """A process's part of the batch, and its device."""

    device: str
    rows: int


class ReplicaAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The first process's answer to an order, and its description at the start (``backend``).

    ``elapsed_s`` is a step's time in the slowest process, from the moment when all processes had
    met. A check has the ``shares``, whether all processes have the same bits, and the error of the
    weights' change: the largest difference from one process with the whole batch, in float64, over
    the norm of the change; None for NaN.
    """

    elapsed_s: float = 0.0
    backend: str = ""
    shares: tuple[Share, ...] = ()
    are_same: bool = False
    error: float | None = None


class Replica:
    """This process's share of the work.

    Args:
        size: samples in the whole batch.
        devices: of all processes, in the order of their ranks.
    """

    def __init__(self, size: int, devices: Sequence[str]) -> None:
        self.rank, world = dist.get_rank(), dist.get_world_size()
        self._size, self._devices = size, devices
        self._device = torch.device(devices[self.rank])
        # All processes have to create all groups in the same order.
        self._groups = {
            processes: dist.new_group(list(range(processes))) for processes in range(1, world + 1)
        }
        self._teams: dict[int, Team] = {}

    def run_order(self, order: Order) -> ReplicaAnswer:
        """Carry out an order, if it includes this process."""
        if self.rank >= order.processes:
            return ReplicaAnswer()
        if order.what == CHECK:
            return self._team(order.processes).check(self._devices)
        if order.processes not in self._teams:
            self._teams[order.processes] = self._team(order.processes)
        return self._teams[order.processes].timed_step()

    def _team(self, processes: int) -> Team:
        return Team(self._size, processes, self._groups[processes], self._device)


class Team:
    """The first processes of the group, each with a copy of the network and its rows of the batch.

    Args:
        size: samples in the whole batch.
        processes: the number of processes that share the batch.
        group: the group of these processes.
        device: this process's device.
    """

    def __init__(
        self, size: int, processes: int, group: dist.ProcessGroup, device: torch.device
    ) -> None:
        self._group, self._device, self._processes = group, device, processes
        inputs, targets = make_batch(size)
        rank = dist.get_rank()
        rows = slice(rank * size // processes, (rank + 1) * size // processes)
        self._inputs, self._targets = inputs[rows].to(device), targets[rows].to(device)
        self._network = build_network().to(device)
        self._whole = (inputs, targets)
        cards = None if is_cpu(device.type) else [device.index]
        self._model = DistributedDataParallel(self._network, device_ids=cards, process_group=group)
        self._optimizer = make_optimizer(self._model)

    def timed_step(self) -> ReplicaAnswer:
        """Take one step together; the clock of each process runs from the meeting to its own end.

        DistributedDataParallel exchanges the gradients inside the step. A second meeting that the
        clock sees would count one exchange too many, so the times are compared after it.
        """
        self._share_cores()
        self._wait_for_others()
        start_s = time.perf_counter()
        self._step()
        synchronize(self._device)
        return ReplicaAnswer(elapsed_s=self._longest_s(time.perf_counter() - start_s))

    def check(self, names: Sequence[str]) -> ReplicaAnswer:
        """Take two steps; compare with the other processes, and with one process for the batch."""
        self._share_cores()
        for _ in range(CHECKED_STEPS):
            self._step()
        rank, weights = dist.get_rank(), weights_of(self._network)
        firsts = weights.to(self._device)
        dist.broadcast(firsts, 0, group=self._group)
        differ = torch.tensor([not torch.equal(firsts.cpu(), weights)], dtype=torch.int64)
        rows = torch.zeros(self._processes, dtype=torch.int64)
        rows[rank] = len(self._inputs)
        found = torch.cat([differ, rows]).to(self._device)
        dist.all_reduce(found, group=self._group)
        count, *all_rows = found.tolist()
        return ReplicaAnswer(
            shares=tuple(map(Share, names, all_rows)),
            are_same=count == 0,
            error=change_error(weights, *self._whole) if rank == 0 else None,
        )

    def _step(self) -> None:
        self._optimizer.zero_grad()
        nn.functional.cross_entropy(self._model(self._inputs), self._targets).backward()
        self._optimizer.step()

    def _wait_for_others(self) -> None:
        # A sum that all processes wait for: NCCL's barrier would use the current card.
        dist.all_reduce(torch.zeros(1, device=self._device), group=self._group)
        synchronize(self._device)

    def _longest_s(self, own_s: float) -> float:
        """Return the longest time of all processes: a step ends when the last process ends it."""
        longest = torch.tensor([own_s], dtype=torch.float64, device=self._device)
        dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=self._group)
        return float(longest)

    def _share_cores(self) -> None:
        torch.set_num_threads(max(1, _THREADS // self._processes))


def make_optimizer(model: nn.Module) -> torch.optim.SGD:
    """Return the optimizer for a copy of the network."""
    return torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)


def weights_of(network: nn.Module) -> torch.Tensor:
    """Return all weights and biases as one vector, on the CPU."""
    return torch.cat([one.detach().cpu().flatten() for one in network.parameters()])


def change_error(found: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor) -> float | None:
    """Return the error of the weights after the checked steps, over the norm of their change.

    Args:
        found: all weights and biases as one vector.
        inputs: the whole batch's inputs, on the CPU.
        targets: the whole batch's targets, on the CPU.
    """
    reference = build_network().double()
    before, optimizer = weights_of(reference), make_optimizer(reference)
    for _ in range(CHECKED_STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(reference(inputs.double()), targets).backward()
        optimizer.step()
    after = weights_of(reference)
    error = float((found.double() - after).norm() / (after - before).norm())
    return error if math.isfinite(error) else None


def _up_to(engine: int) -> list[int]:
    """Return the engine, and the processes between it and this one: torchrun, and what starts it.

    On Windows, the ``python.exe`` of an environment only starts the real one: without torchrun, it
    goes on.
    """
    between = itertools.takewhile(lambda one: one.pid != engine, psutil.Process().parents())
    return [engine, *(one.pid for one in between)]


def _end_with(*pids: int) -> None:
    """End this process as soon as one of these processes ends, even if it is a zombie."""
    processes = [psutil.Process(pid) for pid in pids]

    def watch() -> None:
        with contextlib.suppress(psutil.Error):
            while all(one.is_running() and not _is_zombie(one) for one in processes):
                time.sleep(_WATCH_PERIOD_S)
        os._exit(0)

    threading.Thread(target=watch, name="end with the engine", daemon=True).start()


def _is_zombie(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_ZOMBIE)


def _orders(rank: int, device: torch.device, lines: BinaryIO) -> Order | None:
    """Return the next order: the first process reads it and sends it on; None ends all."""
    message = torch.tensor([END, 0], device=device)
    if rank == 0 and (line := lines.readline()):
        order = msgspec.json.decode(line, type=Order)
        message = torch.tensor([order.what, order.processes], device=device)
    dist.broadcast(message, 0)
    what, processes = message.tolist()
    return None if what == END else Order(what, processes)


def main(arguments: Sequence[str]) -> int:
    """Carry out orders until there are no more; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--devices", required=True)
    parser.add_argument("--store", required=True)
    chosen = parser.parse_args(arguments)
    # PyTorch stays: looked through for garbage, its next imports take 1.4 times as long.
    gc.freeze()
    orders, out = take_over_stdin(), take_over_stdout()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(*_up_to(chosen.engine))
    devices = chosen.devices.split(",")
    device = torch.device(devices[int(os.environ["LOCAL_RANK"])])
    accelerator_of(device).use(device)
    dist.init_process_group(
        chosen.backend,
        # Through a file: a port would be open to the whole network.
        init_method=Path(chosen.store).as_uri(),
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    dist.all_reduce(torch.zeros(1, device=device))  # raises if the backend cannot work
    replica = Replica(chosen.size, devices)
    if replica.rank == 0:
        _send(out, ReplicaAnswer(backend=chosen.backend))
    else:
        out.close()
    while (order := _orders(replica.rank, device, orders)) is not None:
        answer = replica.run_order(order)
        if replica.rank == 0:
            _send(out, answer)
    dist.destroy_process_group()
    return 0


def _send(out: BinaryIO, answer: ReplicaAnswer) -> None:
    out.write(msgspec.json.encode(answer) + b"\n")
    out.flush()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Tearing down CUDA can hang; the driver frees the process's memory anyway.
    os._exit(code)
