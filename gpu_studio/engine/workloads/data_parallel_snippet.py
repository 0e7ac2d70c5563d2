"""The lines of PyTorch that share a batch as the workload `data_parallel` does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpu_studio.core.device_name import address_there, wait_line
from gpu_studio.engine.workloads.replicated import devices_of
from gpu_studio.engine.workloads.train_network import (
    CLASSES,
    INPUTS,
    LEARNING_RATE,
    MOMENTUM,
    NETWORK_LINES,
)

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.case import Case


def snippet_for(case: Case) -> str:
    """Return a program that runs as it stands; DistributedDataParallel has to be a file."""
    is_one_program = case.options["way"] == "DataParallel"
    devices = [address_there(name) for name in devices_of(case)]
    cards = None
    if is_one_program and case.is_on_card:
        cards = [int(name.partition(":")[2]) for name in devices]
    start = _BY_ITSELF if sys.platform == "win32" else _BY_TORCHRUN
    text = _ONE_PROGRAM if is_one_program else start + _PROCESSES
    return text.format(
        size=case.size,
        device=case.address,
        cards=cards,
        devices=devices,
        count=len(devices),
        network=NETWORK_LINES,
        inputs=INPUTS,
        classes=CLASSES,
        rate=LEARNING_RATE,
        momentum=MOMENTUM,
        wait=wait_line(case.address),
    )


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
import time
import torch

size, device = {size}, "{device}"
{network}model = torch.nn.DataParallel(model, device_ids={cards})
optimizer = torch.optim.SGD(model.parameters(), lr={rate}, momentum={momentum})
inputs = torch.randn(size, {inputs}, device=device)
targets = torch.randint({classes}, (size,), device=device)


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()


step()  # the first step is slower
{wait}start = time.perf_counter()
for _ in range(10):
    step()
{wait}print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
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
