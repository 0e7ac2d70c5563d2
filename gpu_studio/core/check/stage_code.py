"""What each stage of a check does, as a few lines of PyTorch that run as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.check.stages import stage_title

if TYPE_CHECKING:
    from gpu_studio.core.messages.check_messages import StageName

_LINES: dict[StageName, str] = {
    "load": """\
import time

import torch

device = torch.device("{address}")
a = torch.randint(-127, 128, (512, 512)).float()  # whole numbers: the product is exact
on_device, exact = a.to(device), a @ a
for duty in (1.0, 0.2, 0.6):
    for _ in range(20):
        begun_s = time.perf_counter()
        assert torch.equal((on_device @ on_device).cpu(), exact), "a wrong product"
        time.sleep((time.perf_counter() - begun_s) * (1 - duty) / duty)
print("every product is right, at each load")
""",
    "compute": """\
import torch

device = torch.device("{address}")
a = torch.randint(-127, 128, (512, 256)).float()  # whole numbers: the product is exact
b = torch.randint(-127, 128, (256, 512)).float()
assert torch.equal((a.to(device) @ b.to(device)).cpu(), a @ b), "a wrong product"
values, places = torch.arange(1 << 18), torch.randperm(1 << 18)
gathered = values.to(device)[places.to(device)].cpu()
assert torch.equal(gathered, values[places]), "a wrong element"
print("every element is right")
""",
    "layouts": """\
import torch

device = torch.device("{address}")
x, y, z = torch.randn(3, 96, 128)
transposed, strided = x.T.contiguous().T, x.repeat_interleave(2, 1)[:, ::2]
for on_cpu in (x.clone(), transposed, strided):
    on_device = torch.empty_strided(on_cpu.shape, on_cpu.stride(), device=device).copy_(on_cpu)
    on_cpu.addcmul_(y, z)
    on_device.addcmul_(y.to(device), z.to(device))
    torch.testing.assert_close(on_device.cpu(), on_cpu)
print("addcmul_ gives the CPU's result in three layouts")
""",
    "memory": """\
import torch

device = torch.device("{address}")
words = torch.empty(8 << 20, dtype=torch.int64, device=device)  # 64 MiB; the check takes all
for pattern in (0, -1, 0x5555555555555555, -0x5555555555555556):
    words.fill_(pattern)
    wrong = (words != pattern).sum().item()
    assert wrong == 0, f"{{wrong}} wrong words"
torch.arange(len(words), out=words)  # each word holds its own address
assert torch.equal(words.cpu(), torch.arange(len(words))), "a word in the wrong place"
print("5 patterns came back")
""",
    "link": """\
import time

import torch

device = torch.device("{address}")
there = torch.randint(0, 1 << 30, (8 << 20,), dtype=torch.int32)
begun_s = time.perf_counter()
back = there.to(device, copy=True).cpu()
seconds = time.perf_counter() - begun_s
assert torch.equal(back, there), "a copy arrived changed"
print(f"{{2 * there.nbytes / seconds / 1e9:.1f}} GB/s there and back")
""",
}


def stage_code(name: StageName, address: str) -> str:
    """Return the core of a stage in a few lines, for a device in PyTorch's words."""
    return f"# {stage_title(name, address)}\n" + _LINES[name].format(address=address)
