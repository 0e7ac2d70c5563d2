"""What a check does, as a few lines of PyTorch a stage that run as they stand."""

from __future__ import annotations

_LINES = """\
import time

import torch

device = torch.device("{address}")
# Load and heat: whole numbers, so that the product is exact
a = torch.randint(-127, 128, (512, 512)).float()
on_device, exact = a.to(device), a @ a
for duty in (1.0, 0.2, 0.6):
    for _ in range(20):
        begun_s = time.perf_counter()
        assert torch.equal((on_device @ on_device).cpu(), exact), "a wrong product"
        time.sleep((time.perf_counter() - begun_s) * (1 - duty) / duty)

# Compute: whole numbers, and an indexed access
values, places = torch.arange(1 << 18), torch.randperm(1 << 18)
gathered = values.to(device)[places.to(device)].cpu()
assert torch.equal(gathered, values[places]), "a wrong element"

# Correctness of PyTorch: an operation in place, in three layouts
x, y, z = torch.randn(3, 96, 128)
transposed, strided = x.T.contiguous().T, x.repeat_interleave(2, 1)[:, ::2]
for on_cpu in (x.clone(), transposed, strided):
    there = torch.empty_strided(on_cpu.shape, on_cpu.stride(), device=device).copy_(on_cpu)
    on_cpu.addcmul_(y, z)
    there.addcmul_(y.to(device), z.to(device))
    torch.testing.assert_close(there.cpu(), on_cpu)

# Memory: 64 MiB; the check takes all
words = torch.empty(8 << 20, dtype=torch.int64, device=device)
for pattern in (0, -1, 0x5555555555555555, -0x5555555555555556):
    words.fill_(pattern)
    assert not (words != pattern).any(), "a wrong word"
torch.arange(len(words), out=words)  # each word holds its own address
assert torch.equal(words.cpu(), torch.arange(len(words))), "a word in the wrong place"

# Link: a copy there and back
begun_s = time.perf_counter()
back = values.to(device, copy=True).cpu()
seconds = time.perf_counter() - begun_s
assert torch.equal(back, values), "a copy arrived changed"
print(f"No error; {{2 * values.nbytes / seconds / 1e9:.1f}} GB/s there and back")
"""


def check_code(address: str) -> str:
    """Return the core of each stage in a few lines, for a device in PyTorch's words."""
    return _LINES.format(address=address)
