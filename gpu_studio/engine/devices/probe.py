"""Run one real kernel on each card, in a separate process (this file runs as a module).

If PyTorch has no code for a card, everything except a kernel still works: the card is listed,
memory is allocated, copies run. So only a kernel is proof. The process runs with the user's own
environment, so that cards have the same numbers as in the user's scripts. It ends at once, so that
it holds no memory.

It writes one line of JSON per step: CUDA's answer, then the start and the outcome for each card. A
missing step tells the other side which card's driver hung.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import torch

from gpu_studio.core.devices.access import CardProbed, Outcome, PcProbed, ProbeStep
from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import family_of
from gpu_studio.core.failure import first_line
from gpu_studio.engine.device import (
    accelerator,
    accelerator_state,
    synchronize,
    torch_card,
    torch_cards,
)
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.messages.engine_messages import TorchCard

# 0 + 1 + … + 1023, plus 1 each: whole numbers below 2^24, exact in float32 in any order.
_NUMBERS = 1024
_EXPECTED_TOTAL = float(sum(range(_NUMBERS)) + _NUMBERS)
_LOAD_BYTES = 16 << 20
# cudaError_t of the CUDA runtime.
_OUTCOMES: dict[int, Outcome] = {2: "out_of_memory", 46: "busy", 209: "no_code"}
_BREAKING = frozenset({"failed", "lost"})
_TEXTS: tuple[tuple[str, Outcome], ...] = (
    ("busy or unavailable", "busy"),
    ("out of memory", "out_of_memory"),
    ("OUT_OF_DEVICE_MEMORY", "out_of_memory"),
    ("fallen off the bus", "lost"),
    ("GPU is lost", "lost"),
)


def steps(first: int, load_s: float) -> Iterator[ProbeStep]:
    """Yield CUDA's answer, then the start and the outcome of each card from ``first`` on."""
    state = accelerator_state()
    yield ProbeStep(
        pc=PcProbed(
            error=state.reason,
            start_error=state.error,
            visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        ),
        cards=torch_cards(),
    )
    for index in range(first, accelerator().count() if state.is_available else 0):
        card = torch_card(index)
        yield ProbeStep(begun=card)
        probed = probe_card(card, load_s)
        yield ProbeStep(probed=probed)
        if probed.outcome in _BREAKING:
            return  # this process is broken; another one continues with the next card


def probe_card(card: TorchCard, load_s: float = 0.0) -> CardProbed:
    """Launch a kernel on a card, synchronize, and check the sum that it computed.

    Args:
        card: the card.
        load_s: seconds of copies afterwards, so that the card's link wakes up and can be read.
    """
    device = torch.device(card.kind, card.torch_index)
    try:
        numbers = torch.arange(_NUMBERS, dtype=torch.float32).to(device)
        total = numbers.add_(1).sum()
        synchronize(device)
        result = float(total.item())
    except (RuntimeError, AssertionError) as error:
        failed = _failed(card, error)
        if failed.outcome == "no_code":  # copies need no code
            _load(device, load_s)
        return failed
    _load(device, load_s)
    return CardProbed(card=card, outcome="ran", total=result, expected_total=_EXPECTED_TOTAL)


def _failed(card: TorchCard, error: Exception) -> CardProbed:
    text = str(error).strip()
    code = getattr(error, "error_code", None)  # torch 2.8 and newer
    outcome = _OUTCOMES.get(code) if isinstance(code, int) else None
    by_text = next((kind for words, kind in _TEXTS if words in text), None)
    if family_of(text) is Family.NO_CODE:
        by_text = "no_code"
    return CardProbed(
        card=card,
        outcome=outcome or by_text or "failed",
        message=first_line(text, 300) or type(error).__name__,
        error_code=code if isinstance(code, int) else None,
    )


def _load(device: torch.device, load_s: float) -> None:
    """Copy for a while; a failure here does not change the verdict."""
    if load_s <= 0:
        return
    until_s = time.monotonic() + load_s
    with contextlib.suppress(RuntimeError):
        source = torch.empty(_LOAD_BYTES, dtype=torch.uint8, pin_memory=True)
        target = torch.empty(_LOAD_BYTES, dtype=torch.uint8, device=device)
        while time.monotonic() < until_s:
            target.copy_(source, non_blocking=True)
            synchronize(device)


def main(arguments: Sequence[str] | None = None) -> int:
    """Probe every card; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m gpu_studio.engine.devices.probe")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--load-s", type=float, default=0.0)
    options = parser.parse_args(arguments)
    lifeline, pipe = take_over_stdin(buffering=0), take_over_stdout(buffering=0)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    warnings.simplefilter("ignore")  # this program itself reports unsupported cards
    for step in steps(options.first, options.load_s):
        pipe.write(msgspec.json.encode(step) + b"\n")
    return 0


def _end_with(lifeline: BinaryIO) -> None:
    lifeline.read()  # until the other side has ended
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
