"""Lessons whose scripts run in new processes, as a user's own would."""

from __future__ import annotations

import os
import re

import torch

from gpu_studio.core.device_name import is_cpu, wait_line
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import (
    FRESH_RESULTS,
    STARVED_GPU,
    STICKY_ERROR,
    VISIBLE_DEVICES_TOO_LATE,
)
from gpu_studio.core.units import format_bytes, format_duration, format_percent
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.pitfalls.pitfall import Bench, ScriptEnd, count, seconds, share

# Larger than any result that glibc keeps by default (32 MiB): there is no luck in it.
_SIZE = 4096
_RESULT_BYTES = 4 * _SIZE**2
_CALL_S = re.compile(r"([\d.]+) s per call")


class FreshResults:
    """See `pitfall.Pitfall`. It runs a script: the engine keeps memory that a script gives back."""

    description = FRESH_RESULTS

    def snippet(self, part: str, device: str) -> str:
        return _ADDITIONS.format(
            size=_SIZE,
            made="" if part == "broken" else _MADE.format(size=_SIZE),
            call=_FRESH if part == "broken" else _KEPT,
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        end = bench.run_script(self.snippet(part, bench.address))
        match = _CALL_S.search(end.output)
        if match is None:
            raise StudioError(FailureKind.INTERNAL, f"The new process failed: {end.error}")
        call_s = float(match[1])
        how = "with new memory for each result" if part == "broken" else "into the same memory"
        return PitfallOutcome(
            part=part,
            sentence=(
                f"An addition of {format_bytes(_RESULT_BYTES)} takes {format_duration(call_s)} on "
                f"the CPU, {how}."
            ),
            figures=(seconds("call_s", "Time per addition", call_s, aim="less"),),
            output=end.output,
        )


_MADE = "y = torch.empty({size}, {size})  # once\n"
_FRESH = "y = a + b"
_KEPT = "torch.add(a, b, out=y)"
_ADDITIONS = """\
import time

import torch

a = torch.rand({size}, {size})
b = torch.rand({size}, {size})
{made}times = []
for _ in range(11):
    start = time.perf_counter()
    {call}
    times.append(time.perf_counter() - start)
print(f"{{sorted(times)[5]:.6f}} s per call")  # the median
"""


_WORKERS = 2
_SPENT = re.compile(r"([\d.]+) s at work, ([\d.]+) s waiting")


class StarvedGpu:
    """See `pitfall.Pitfall`. It runs a script, so the data loader starts as in a user's script."""

    description = STARVED_GPU

    def snippet(self, part: str, device: str) -> str:
        is_fixed, is_card = part == "fixed", not is_cpu(device)
        return _LOADING.format(
            device=device,
            workers=_WORKERS if is_fixed else 0,
            warm_up=_WORKERS,
            pin=", pin_memory=True" if is_fixed and is_card else "",
            non_blocking=", non_blocking=True" if is_fixed and is_card else "",
            wait=wait_line(device).rstrip() or "pass",
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        end = bench.run_script(self.snippet(part, bench.address))
        match = _SPENT.search(end.output)
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


_LOADING = """\
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


_ERROR = "error: "
_CPU_REMARK = (
    "This PC has no card that PyTorch can use. The CPU stands in for it. Unlike a card, it names "
    "the cause in the right line, and later lines still work."
)


class StickyError:
    """See `pitfall.Pitfall`. It runs in a new process: a card's error would end the engine."""

    description = STICKY_ERROR

    def snippet(self, part: str, device: str) -> str:
        return _SCRIPT.format(device=device, look="" if part == "broken" else _LOOK)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        end = bench.run_script(self.snippet(part, bench.address))
        errors = [
            line.removeprefix(_ERROR) for line in end.output.splitlines() if line.startswith(_ERROR)
        ]
        if end.error and not errors:
            errors = [end.error]
        if not end.output and not errors:
            raise StudioError(FailureKind.INTERNAL, "The new process printed nothing.")
        if part == "fixed":
            sentence = "The script found the wrong index before it used it: nothing failed."
            if errors:
                sentence = "It still failed."
        else:
            sentence = (
                "Nothing failed here.",
                "One line failed. The next one worked.",
                "One line failed, and so did the next one, which has nothing to do with it.",
            )[min(len(errors), 2)]
        return PitfallOutcome(
            part=part,
            sentence=sentence,
            error="\n".join(errors),
            figures=(count("errors", "Lines that failed", len(errors), aim="less"),),
            stand_in="" if bench.has_card else _CPU_REMARK,
            output=end.output,
        )


_SCRIPT = """\
import torch

device = "{device}"
table = torch.nn.Embedding(10, 4).to(device)
index = torch.tensor([3, 12])  # there is no row 12
{look}

def look_up():
    return table(index.to(device)).sum().item()


def something_else():
    return torch.ones(3, device=device).sum().item()


for work in (look_up, something_else):
    try:
        print(work.__name__, work())
    except Exception as error:
        print("error:", work.__name__, type(error).__name__, str(error).splitlines()[0])
"""
_LOOK = """\
if int(index.max()) >= table.num_embeddings:  # on the CPU, before the index moves
    print("there is no row", int(index.max()), "in a table of", table.num_embeddings)
    index = index[index < table.num_embeddings]
"""


_SEEN = re.compile(r": (\d+)")
_CARD = re.compile(r"^cuda is (.+)$", re.MULTILINE)
_NAME = re.compile(r"^(.+) [0-9a-f-]{36}$")  # without the UUID behind it
_UNNAMED = "a card"
_NOTHING = "nothing"
_THREADS_STAND_IN = (
    "This PC has no card that PyTorch can use. OMP_NUM_THREADS, which PyTorch also reads once at "
    "its start, stands in for CUDA_VISIBLE_DEVICES."
)


class VisibleDevicesTooLate:
    """See `pitfall.Pitfall`. Both parts run in new processes, which read the variable again."""

    description = VISIBLE_DEVICES_TOO_LATE

    def snippet(self, part: str, device: str) -> str:
        """Return the script that `run` starts.

        Raises:
            StudioError: the variable hides no cards of this kind.
        """
        if is_cpu(device):
            script = _THREADS_TOO_LATE if part == "broken" else _THREADS_IN_TIME
            return script.format(threads=2 if torch.get_num_threads() == 1 else 1)
        reason = accelerator_of(torch.device(device)).lacks("CUDA_VISIBLE_DEVICES")
        if reason:
            raise StudioError(FailureKind.BAD_REQUEST, reason)
        script = _TOO_LATE if part == "broken" else _IN_TIME
        return script.format(visible=_visible())

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        end = bench.run_script(self.snippet(part, bench.address))
        sentence = _of_cards(part, end) if bench.has_card else _of_threads(part, end)
        what = "cards" if bench.has_card else "threads"
        seen = [int(number) for number in _SEEN.findall(end.output)]
        return PitfallOutcome(
            part=part,
            sentence=sentence,
            figures=(count(f"{what}_seen", f"{what.capitalize()} that PyTorch sees", seen[-1]),),
            stand_in="" if bench.has_card else _THREADS_STAND_IN,
            output=end.output,
        )


def _of_cards(part: str, end: ScriptEnd) -> str:
    """Say which card ``cuda`` was and is: CUDA's own answer, whatever PyTorch counts."""
    identities = _CARD.findall(end.output)
    cards = [_NAME.sub(r"\1", found) for found in identities]
    if not cards or not _SEEN.search(end.output):
        raise StudioError(FailureKind.INTERNAL, f"The new process failed: {end.error}")
    if part == "fixed":
        if identities[-1] == _NOTHING:
            return "Set before the import of PyTorch, the variable hides the card: “cuda” fails."
        return f"Set before the import of PyTorch, it works: “cuda” is {cards[-1]}."
    if identities[-1] in (identities[0], _UNNAMED):
        return f"“cuda” is {cards[0]}, and is the same card after the variable was set."
    return f"“cuda” was {cards[0]} and is {cards[-1]} after the variable was set."


def _of_threads(part: str, end: ScriptEnd) -> str:
    seen = [int(number) for number in _SEEN.findall(end.output)]
    if not seen:
        raise StudioError(FailureKind.INTERNAL, f"The new process failed: {end.error}")
    before, after = (_counted(number, "thread") for number in (seen[0], seen[-1]))
    if part == "fixed":
        return f"Set before the import of PyTorch, it works: {after}."
    return f"PyTorch has {before} before the variable was set, and {after} after."


def _counted(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _visible() -> str:
    """Return the last card's number if there are several cards, else an empty list."""
    several = torch.cuda.device_count() > 1 and "CUDA_VISIBLE_DEVICES" not in os.environ
    return str(torch.cuda.device_count() - 1) if several else ""


_CARD_NOW = """\
def card():
    try:
        torch.empty(1, device="cuda")  # no kernel, so a card without PyTorch code counts
    except Exception:
        return "nothing"
    try:
        found = torch.cuda.get_device_properties(0)
    except Exception:  # PyTorch's own check looks at the variable, CUDA does not
        return "a card"
    return f"the {{found.name}} {{found.uuid}}"


"""
_TOO_LATE = (
    """\
import os

import torch


"""
    + _CARD_NOW
    + """\
print("cards:", torch.cuda.device_count())
print("cuda is", card())  # CUDA starts, and reads the variable
os.environ["CUDA_VISIBLE_DEVICES"] = "{visible}"  # too late
print("cards:", torch.cuda.device_count())
print("cuda is", card())
"""
)
_IN_TIME = (
    """\
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "{visible}"  # before PyTorch is imported

import torch


"""
    + _CARD_NOW
    + """\
print("cards:", torch.cuda.device_count())
print("cuda is", card())
"""
)
_THREADS_TOO_LATE = """\
import os

import torch

print("threads:", torch.get_num_threads())
os.environ["OMP_NUM_THREADS"] = "{threads}"  # too late
print("threads:", torch.get_num_threads())
"""
_THREADS_IN_TIME = """\
import os

os.environ["OMP_NUM_THREADS"] = "{threads}"  # before PyTorch is imported

import torch

print("threads:", torch.get_num_threads())
"""
