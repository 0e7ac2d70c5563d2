"""The card waits for the CPU to load the next batch."""

from __future__ import annotations

import re

from gpu_studio.core.device_name import is_cpu, wait_line
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import STARVED_GPU
from gpu_studio.core.units import format_duration, format_percent
from gpu_studio.engine.pitfalls.pitfall import Bench, seconds, share

_WORKERS = 2
_RESULT = re.compile(r"([\d.]+) s at work, ([\d.]+) s waiting")


class StarvedGpu:
    """See `pitfall.Pitfall`. It runs a script, so the data loader starts as in a user's script."""

    description = STARVED_GPU

    def snippet(self, part: str, device: str) -> str:
        is_fixed, is_card = part == "fixed", not is_cpu(device)
        return _SCRIPT.format(
            device=device,
            workers=_WORKERS if is_fixed else 0,
            warm_up=_WORKERS,
            pin=", pin_memory=True" if is_fixed and is_card else "",
            non_blocking=", non_blocking=True" if is_fixed and is_card else "",
            wait=wait_line(device).rstrip() or "pass",
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        end = bench.run_script(self.snippet(part, bench.address))
        match = _RESULT.search(end.output)
        if match is None:
            raise StudioError(FailureKind.INTERNAL, f"The data loader's script failed: {end.error}")
        work_s, wait_s = float(match[1]), float(match[2])
        whole_s = work_s + wait_s
        return PitfallOutcome(
            part=part,
            sentence=(
                f"{bench.address} worked for {format_percent(work_s / whole_s)} of "
                f"{format_duration(whole_s)}. The rest of the time it waited for data."
            ),
            figures=(
                share("busy", "Share of time working", work_s / whole_s),
                seconds("work_s", "Working", work_s),
                seconds("wait_s", "Waiting for data", wait_s, aim="less"),
                seconds("whole_s", "All batches", whole_s, aim="less"),
            ),
            stand_in=bench.stand_in,
            output=end.output,
        )


_SCRIPT = """\
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        time.sleep(0.002)  # a disk and a decoder
        return torch.randn(3 * 32 * 32)


def main():
    device = "{device}"
    loader = DataLoader(Pictures(), batch_size=16, num_workers={workers}{pin})
    model = torch.nn.Sequential(
        torch.nn.Linear(3 * 32 * 32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    ).to(device)
    batches = iter(loader)
    for _ in range({warm_up}):  # until the device and every worker have started
        model(next(batches).to(device)).sum().backward()
    work = 0.0
    start = time.perf_counter()
    for batch in batches:
        begin = time.perf_counter()
        model(batch.to(device{non_blocking})).sum().backward()
        {wait}
        end = time.perf_counter()
        work += end - begin
    whole = end - start  # without the workers' own end
    print(f"{{work:.6f}} s at work, {{whole - work:.6f}} s waiting")


if __name__ == "__main__":
    main()
"""
