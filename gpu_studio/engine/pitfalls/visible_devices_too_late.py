"""CUDA_VISIBLE_DEVICES is set after CUDA has read it."""

from __future__ import annotations

import os
import re

import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import VISIBLE_DEVICES_TOO_LATE
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.pitfalls.pitfall import Bench, ScriptEnd, count

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
