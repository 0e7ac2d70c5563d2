"""One batch shared by several cards, or by several processes on the CPU: is it faster?

"Chapter 17: Using torch with CUDA" (section 17.5) uses DataParallel; "How can I switch from CPU to
GPU PyTorch?" (answer of 2025-01-30) names both methods. The network, the batch and the step are
those of `train_step`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.workloads import DATA_PARALLEL
from gpu_studio.core.device_name import address_there
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.device import accelerator, accelerator_of
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.replicated import GroupCall, ModuleCall, devices_of
from gpu_studio.engine.workloads.train_network import (
    CLASSES,
    HIDDEN,
    INPUTS,
    LEARNING_RATE,
    LONGEST_PRODUCT,
    MOMENTUM,
    NETWORK_LINES,
    parameters_count,
    step_operations,
)
from gpu_studio.engine.workloads.workload import Workload, timed_script

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.call import Call

# As in train_step: a ReLU that rounding switches changes the norm by a root of eps.
_TOLERANCE = 3.0 * torch.finfo(torch.float32).eps ** 0.5


class DataParallel(Workload):
    """A shared training step; see `workload.Workload`."""

    has_products = True
    description = DATA_PARALLEL
    # Its processes take seconds to start: start them only once for the check.
    small_up_to = 1 << 30

    def check(self, case: Case) -> None:
        processes = int(case.options["processes"])
        if case.is_on_card and processes > (there_are := accelerator().count()):
            raise StudioError(
                FailureKind.NO_SUCH_DEVICE,
                f"{processes} cards cannot share the batch here: PyTorch sees {there_are}.",
            )
        if case.is_on_card and case.options["way"] == "DataParallel":
            reason = accelerator_of(case.device).lacks("DataParallel")
            if reason:
                raise StudioError(FailureKind.BAD_REQUEST, reason)
        if case.size % processes:
            raise StudioError(
                FailureKind.BAD_REQUEST,
                f"{case.size} samples cannot be shared by {processes} evenly: choose a multiple.",
            )

    def work(self, case: Case) -> Work:
        """Count the step, and the gradients that the copies of the network exchange."""
        weights, processes = parameters_count(), int(case.options["processes"])
        activations = case.size * (INPUTS + 2 * HIDDEN + CLASSES)
        copies_bytes = 4 * weights * case.item_bytes
        activations_bytes = 4 * activations * case.item_bytes
        return Work(
            operations=step_operations(case.size),
            # As for train_step, in each copy; each copy also sends and receives the gradients.
            bytes_moved=float(processes * (8 + 2) * weights * case.item_bytes + activations_bytes),
            throughput_work=float(case.size),
            memory_bytes=copies_bytes * (1 if case.is_on_card else processes) + activations_bytes,
            host_bytes=processes * copies_bytes if case.is_on_card else 0,
            longest_kernel=LONGEST_PRODUCT / processes,
        )

    def __init__(self) -> None:
        self._checked: tuple[Case, GroupCall] | None = None

    def prepare(self, case: Case) -> Call:
        """Make a call; processes that were just checked are timed."""
        if case.options["way"] == "DataParallel":
            return ModuleCall(case)
        checked, self._checked = self._checked, None
        if checked is not None:
            key, call = checked
            if key == case:
                return call
            call.close()  # of a run that was stopped in between
        return GroupCall(case)

    def verify(self, case: Case) -> Verification:
        """Compare the changes of two shared steps with the whole batch in float64 on the CPU."""
        call = self.prepare(case)
        assert isinstance(call, (ModuleCall, GroupCall))
        try:
            error, are_same = call.check()
        except BaseException:
            call.close()
            raise
        if isinstance(call, GroupCall):
            self._checked = case, call
        shares = len(devices_of(case))
        compared = ("all weights and biases after two steps",)
        if not are_same:
            return Verification(False, f"the {shares} copies of the network differ", compared)
        if error is None or not error <= _TOLERANCE:
            how_far = "not a number" if error is None else f"off by {error:.1e}"
            return Verification(False, f"what two steps change is {how_far}", compared)
        finding = f"what two steps change is within {_TOLERANCE:.1e} of one float64 network"
        return Verification(True, finding, compared)

    def snippet(self, case: Case) -> str:
        return _script_for(case)


def _script_for(case: Case) -> str:
    """Return a program that runs as it stands; DistributedDataParallel has to be a file."""
    is_one_program = case.options["way"] == "DataParallel"
    devices = [address_there(name) for name in devices_of(case)]
    cards = None
    if is_one_program and case.is_on_card:
        cards = [int(name.partition(":")[2]) for name in devices]
    start = _BY_ITSELF if sys.platform == "win32" else _BY_TORCHRUN
    text = _ONE_PROGRAM if is_one_program else start + _PROCESSES
    text = text.format(
        size=case.size,
        cards=cards,
        devices=devices,
        count=len(devices),
        network=NETWORK_LINES,
        inputs=INPUTS,
        classes=CLASSES,
        rate=LEARNING_RATE,
        momentum=MOMENTUM,
    )
    return timed_script(case, text, "step()") if is_one_program else text


_BY_TORCHRUN = """\
# Save this as share.py, then: torchrun --standalone --nproc-per-node={count} share.py
import os
import time
import torch
import torch.distributed as dist

"""
# PyTorch for Windows lacks libuv, and torchrun has no option to meet without:
# github.com/pytorch/pytorch, issue 148283. By a file it does.
_BY_ITSELF = """\
# Save this as share.py, then: python share.py
import os
import sys
import tempfile
import time
import torch
import torch.distributed as dist
from torch.distributed.run import main as torchrun

if "RANK" not in os.environ:  # not started by torchrun yet
    os.environ.update(USE_LIBUV="0", TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        torchrun([
            "--rdzv-backend=c10d", f"--rdzv-endpoint={{os.path.join(folder, 'meeting')}}",
            "--rdzv-conf=store_type=file", "--local-addr=127.0.0.1",
            "--nproc-per-node={count}", __file__,
        ])
    sys.exit()

"""

_ONE_PROGRAM = """\
{network}model = torch.nn.DataParallel(model, device_ids={cards})
optimizer = torch.optim.SGD(model.parameters(), lr={rate}, momentum={momentum})
inputs = torch.randn(size, {inputs}, device=device)
targets = torch.randint({classes}, (size,), device=device)


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
"""

_PROCESSES = """\
size, devices = {size}, {devices}
rank, processes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device(devices[rank])
on_card = device.type == "cuda"
if on_card:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_card and dist.is_nccl_available() else "gloo")
{network}model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr={rate}, momentum={momentum})
inputs = torch.randn(size // processes, {inputs}, device=device)
targets = torch.randint({classes}, (size // processes,), device=device)


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()  # waits for the card


step()  # the first step is slower
start = time.perf_counter()
for _ in range(10):
    step()
if rank == 0:
    print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
dist.barrier()
del model, optimizer  # they hold the group, whose threads must end before Python does
dist.destroy_process_group()
"""
