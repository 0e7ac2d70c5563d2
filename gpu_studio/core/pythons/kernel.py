"""A small kernel in another program's own Python: what it is told, and what it answers.

It runs only when the user asks for it. That Python writes nothing into its folder (``-B``), and
imports nothing from the current one (``-I``), where a file might be called torch.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.pythons.environment import PythonKind
from gpu_studio.core.pythons.mend import MendLine
from gpu_studio.core.pythons.verdict import Judged, PythonVerdict
from gpu_studio.core.texts import listed, plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpu_studio.core.child_question import CallEnd
    from gpu_studio.core.pythons.environment import Environment

LONGEST_S = 90.0
"""PyTorch on a slow disk takes half a minute to load, and its first kernel seconds."""
MOST_BYTES = 1 << 16
_LONGEST_REASON = 200
# Any Python 3 with any PyTorch runs it. 0 + 1 + … + 1023, plus 1 each, is exact in float32.
_SCRIPT = """\
import sys
sys.path[:] = [place for place in sys.path if place]
out, sys.stdout = sys.stdout, sys.stderr
import json, torch
kind = "xpu" if getattr(torch.version, "xpu", None) else "cuda"
cards = getattr(torch, kind)
found = []
for at in range(cards.device_count() if cards.is_available() else 0):
    said = ""
    try:
        numbers = torch.arange(1024, dtype=torch.float32).to("%s:%d" % (kind, at))
        said = "" if float(numbers.add_(1).sum()) == 524800.0 else "the sum is wrong"
    except Exception as error:
        said = str(error).strip().split("\\n")[0] or type(error).__name__
    found.append({"name": cards.get_device_name(at), "failed": said})
out.write("\\n" + json.dumps({"version": str(torch.__version__), "cards": found}) + "\\n")
out.flush()
"""


class CardTried(msgspec.Struct, frozen=True):
    """A card of that PyTorch, and why its kernel failed; "" if it ran."""

    name: str
    failed: str


class KernelAnswer(msgspec.Struct, frozen=True):
    """What the script prints."""

    version: str
    cards: tuple[CardTried, ...] = ()


def kernel_command(one: Environment) -> tuple[str, ...]:
    """Return the words that run the kernel; none if there is no Python to run."""
    if not one.python or one.lost:
        return ()
    start = one.python.split() if one.python.startswith("py ") else [one.python]
    alone = "-E" if one.kind is PythonKind.USER else "-I"  # -I hides the user's own packages
    return (*start, alone, "-B", "-c", _SCRIPT)


def kernel_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of that Python: ours without what is meant for another one."""
    others = ("PYTHON", "GPU_STUDIO_", "VIRTUAL_ENV", "__PYVENV")
    return {name: value for name, value in environ.items() if not name.startswith(others)}


def run_kernel(
    one: Environment, call: Callable[..., CallEnd], is_over: Callable[[], bool]
) -> CallEnd:
    """Run the kernel; return how it ended.

    Args:
        one: has a Python to run, see `kernel_command`.
        call: `process.command_call.call_command`.
        is_over: returns whether it is stopped; asked 20 times a second.
    """
    return call(
        kernel_command(one), kernel_variables(os.environ), longest_s=LONGEST_S,
        most_bytes=MOST_BYTES, is_over=is_over,
    )  # fmt: skip


def after_kernel(one: Judged, ended: CallEnd) -> Judged:
    """Return the verdict after the kernel, which knows better than any table.

    Args:
        one: the verdict from the files.
        ended: how the script ended.
    """
    if ended.is_late:
        return one._replace(reason=f"It did not answer within {LONGEST_S:.0f} s.")
    try:
        answer = msgspec.json.decode(ended.content.strip().split(b"\n")[-1], type=KernelAnswer)
    except (msgspec.MsgspecError, IndexError):
        why = f": {ended.reason}" if ended.reason else ""
        return one._replace(verdict=PythonVerdict.WRONG, reason=f"PyTorch did not start there{why}")
    ran = [card.name for card in answer.cards if not card.failed]
    if ran:
        reason = f"A kernel ran on {plain_text(listed(ran))}."
        if one.verdict is PythonVerdict.WRONG and all(has_code for _, has_code in one.covers):
            return one._replace(reason=f"{one.reason} {reason}")  # something else is wrong
        return one._replace(verdict=PythonVerdict.RIGHT, reason=reason, line=MendLine())
    failed = next((card.failed for card in answer.cards), "PyTorch there sees no card")
    reason = f"No kernel ran: {plain_text(failed)[:_LONGEST_REASON]}"
    return one._replace(verdict=PythonVerdict.WRONG if one.covers else one.verdict, reason=reason)
