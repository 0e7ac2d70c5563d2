"""One process of a DistributedDataParallel group: ``torchrun … -m gpu_studio.engine.replica``.

torchrun starts the requested number of processes, and each inherits the engine's pipes as standard
input and output. Only the first process reads orders there, one JSON line each. It passes them on
to the others and answers. All end when the engine closes its pipe or ends.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from gpu_studio.core.device_name import is_cpu
from gpu_studio.engine.device import accelerator_of, synchronize
from gpu_studio.engine.workloads.train_network import (
    CHECKED_STEPS,
    Training,
    change_error,
    make_batch,
)
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

END, CHECK, STEP = 0, 1, 2
"""What is ordered, with the number of processes, the first ones, that do it together."""
# The engine's threads, which the working processes share.
_THREADS = torch.get_num_threads()


class GroupPlan(msgspec.Struct, frozen=True):
    """A group: the samples in the whole batch, each process's device, and how they meet."""

    size: int
    devices: tuple[str, ...]
    backend: str
    store: str


class ReplicaAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The first process's answer to an order, and an empty one at the start.

    ``elapsed_s`` is a step's time in the slowest process, from the moment when all processes had
    met. A check says whether all processes have the same bits, and has the `change_error`.
    """

    elapsed_s: float = 0.0
    are_same: bool = False
    error: float | None = None


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
        self._whole = make_batch(size)
        rank = dist.get_rank()
        rows = slice(rank * size // processes, (rank + 1) * size // processes)
        inputs, targets = (part[rows].to(device) for part in self._whole)
        self._part = inputs, targets
        self._training = Training(device, torch.float32, None)
        cards = None if is_cpu(device.type) else [device.index]
        self._training.share(
            lambda network: DistributedDataParallel(network, device_ids=cards, process_group=group)
        )

    def timed_step(self) -> ReplicaAnswer:
        """Take one step together; the clock of each process runs from the meeting to its own end.

        DistributedDataParallel exchanges the gradients inside the step. A second meeting that the
        clock sees would count one exchange too many, so the times are compared after it.
        """
        self._share_cores()
        # A sum that all processes wait for: NCCL's barrier would use the current card.
        dist.all_reduce(torch.zeros(1, device=self._device), group=self._group)
        synchronize(self._device)
        start_s = time.perf_counter()
        self._training.step(*self._part)
        synchronize(self._device)
        elapsed_s = time.perf_counter() - start_s
        # A step ends when the last process ends it.
        longest = torch.tensor([elapsed_s], dtype=torch.float64, device=self._device)
        dist.all_reduce(longest, op=dist.ReduceOp.MAX, group=self._group)
        return ReplicaAnswer(elapsed_s=float(longest))

    def check(self) -> ReplicaAnswer:
        """Take the first steps; compare with the other processes, and with one for the batch."""
        self._share_cores()
        for _ in range(CHECKED_STEPS):
            self._training.step(*self._part)
        weights = self._training.weights()
        firsts = weights.to(self._device, copy=True)
        dist.broadcast(firsts, 0, group=self._group)
        differ = torch.tensor([not torch.equal(firsts.cpu(), weights)], dtype=torch.int64)
        differ = differ.to(self._device)
        dist.all_reduce(differ, group=self._group)
        error = change_error(weights, *self._whole) if dist.get_rank() == 0 else None
        return ReplicaAnswer(are_same=not int(differ), error=error)

    def _share_cores(self) -> None:
        torch.set_num_threads(max(1, _THREADS // self._processes))


def _next_order(rank: int, device: torch.device, lines: BinaryIO) -> tuple[int, int]:
    """Return the next order: the first process reads it and sends it on."""
    order = [END, 0]
    if rank == 0 and (line := lines.readline()):
        order = msgspec.json.decode(line, type=list[int])
    message = torch.tensor(order, device=device)
    dist.broadcast(message, 0)
    what, processes = message.tolist()
    return what, processes


def main(argument: str) -> int:
    """Carry out orders until there are no more; return the exit code."""
    plan = msgspec.json.decode(argument, type=GroupPlan)
    # PyTorch stays: looked through for garbage, its next imports take 1.4 times as long.
    gc.freeze()
    orders, out = take_over_stdin(), take_over_stdout()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    rank, world = int(os.environ["RANK"]), len(plan.devices)
    device = torch.device(plan.devices[rank])
    accelerator_of(device).use(device)
    # They meet through a file: a port would be open to the whole network.
    dist.init_process_group(
        plan.backend, init_method=Path(plan.store).as_uri(), rank=rank, world_size=world
    )
    # All processes have to create all groups in the same order.
    groups = {count: dist.new_group(list(range(count))) for count in range(1, world + 1)}
    dist.all_reduce(torch.zeros(1, device=device))  # raises if the backend cannot work
    if rank:
        out.close()
    teams: dict[int, Team] = {}
    answer = ReplicaAnswer()
    while True:
        if rank == 0:
            out.write(msgspec.json.encode(answer) + b"\n")
            out.flush()
        what, processes = _next_order(rank, device, orders)
        if what == END:
            break
        if rank < processes:
            if processes not in teams:
                teams[processes] = Team(plan.size, processes, groups[processes], device)
            team = teams[processes]
            answer = team.check() if what == CHECK else team.timed_step()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stderr.flush()
    # Tearing down CUDA can hang; the driver frees the process's memory anyway.
    os._exit(code)
