"""The record of a standard run: JSON, to keep, to share, and to compare with another PC's.

It has nothing that identifies you, your PC, or this copy of a card. Reading one runs nothing and
follows no name in it.
"""

from __future__ import annotations

import math
from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.benchmark.kept_run import check_result
from gpu_studio.core.benchmark.standard import STANDARD, STANDARD_1, standard_item
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import (  # noqa: TC001  # msgspec reads the annotations
    CheckVerdict,
    ShortText,
    Text,
)
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Bytes,
    PositiveCount,
    Seconds,
)
from gpu_studio.core.messages.run_messages import RunFinished, RunHeat
from gpu_studio.core.record_json import decode_record_of

SCHEMA = 1
MOST_DEVICES = 16
CHUNK = "gpu-studio-standard"
"""The keyword of the text chunk that has a record in a PNG."""
# A throughput is its work over its median; a file has both, rounded alike.
_AGREE_WITHIN = 1e-3
_Rate = Annotated[float, Meta(gt=0, le=1e100)]
_Key = Annotated[str, Meta(max_length=40)]


class StandardFigure(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a device: its result, or why there is none (``skipped``, a sentence)."""

    key: _Key
    result: RunFinished | None = None
    skipped: Text = ""


class StandardLoad(RunHeat, frozen=True, kw_only=True):
    """The load at the end of a standard run, and what the sensors read during it.

    The rates are in FLOP/s: ``first_rate`` that of the first seconds, ``steady_rate`` that of the
    second half (`sustained.held_speed`). ``ci95`` is the 95 % interval of steady over first.
    """

    seconds: Seconds
    first_rate: _Rate
    steady_rate: _Rate
    ci95: tuple[_Rate, _Rate]


class StandardCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The newest check of a card; ``made_at`` is ISO 8601."""

    verdict: CheckVerdict
    minutes: PositiveCount
    made_at: ShortText


class StandardDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device and its figures, in the order of `STANDARD_1`.

    ``silicon`` is the chip by its PCI device id, ``build`` the version of PyTorch with its local
    part (``2.13.0+cu126``). None means "not reported", an empty text "unknown".
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    is_cpu: bool
    silicon: ShortText = ""
    memory_total_bytes: Bytes | None = None
    compute_capability: ShortText | None = None
    architecture: ShortText | None = None
    driver: ShortText | None = None
    build: ShortText = ""
    figures: Annotated[tuple[StandardFigure, ...], Meta(max_length=len(STANDARD_1))]
    load: StandardLoad | None = None
    check: StandardCheck | None = None

    def figure(self, key: str) -> StandardFigure | None:
        """Return the figure of an item; None if this device does not have the item."""
        return next((figure for figure in self.figures if figure.key == key), None)

    def result(self, key: str) -> RunFinished | None:
        """Return the result of an item; None if there is none."""
        figure = self.figure(key)
        return None if figure is None else figure.result


class StandardRun(msgspec.Struct, frozen=True, kw_only=True):
    """A whole standard run.

    ``made_at`` is ISO 8601, ``system`` the name and version of the operating system. ``pc_name`` is
    only what the user wrote there.
    """

    schema: int = SCHEMA
    standard: int = STANDARD
    made_at: ShortText
    program: ShortText
    system: ShortText = ""
    devices: Annotated[tuple[StandardDevice, ...], Meta(min_length=1, max_length=MOST_DEVICES)]
    pc_name: ShortText = ""


class StandardFinished(msgspec.Struct, frozen=True, kw_only=True, tag="standard_finished"):
    """The last line of ``gpu-studio standard --json``: the record, and what it says in words.

    ``is_complete`` is False if the run was stopped, or a device ended it.
    """

    run: StandardRun
    sentence: str
    is_complete: bool


class _Version(msgspec.Struct):
    standard: int


def encode_standard(run: StandardRun) -> bytes:
    """Return a record as JSON."""
    return msgspec.json.encode(run)


def decode_standard(text: bytes, name: str = "") -> StandardRun:
    """Return the record in a JSON text, which may come from a stranger.

    Args:
        text: the JSON.
        name: the name of its file, for the sentence that refuses it; empty if it has none.

    Raises:
        StudioError: it is not a record, contradicts itself, or is of another standard or of a newer
            program; the sentence says which.
    """
    which = name or "This"

    def look(text: bytes) -> None:
        standard = msgspec.json.decode(text, type=_Version).standard
        if standard != STANDARD:
            message = (
                f"{which} is of standard {standard}, and this GPU Studio measures standard "
                f"{STANDARD}: their work differs, so they cannot be compared."
            )
            raise StudioError(FailureKind.FILE_REFUSED, message)

    run = decode_record_of(StandardRun, text, SCHEMA, partial(_refused, which), name, look)
    check_standard(run, which)
    return run


def check_standard(run: StandardRun, which: str = "This") -> None:
    """Raise `StudioError` if the parts of a record contradict each other.

    Args:
        run: a record, whose types hold the range of each number.
        which: what the sentence calls it.
    """
    try:
        datetime.fromisoformat(run.made_at)
    except ValueError as error:
        raise _refused(which, "its date is invalid") from error
    for device in run.devices:
        keys = [figure.key for figure in device.figures]
        if len(set(keys)) < len(keys):
            raise _refused(which, "it has two figures of one item")
        for figure in device.figures:
            if reason := _contradiction(figure, device):
                raise _refused(which, f"its item “{figure.key}” {reason}")
            if figure.result is not None:
                check_result(figure.result)
        load = device.load
        if load and not load.ci95[0] <= load.steady_rate / load.first_rate <= load.ci95[1]:
            raise _refused(which, "its interval of the load does not contain its ratio")


def _contradiction(figure: StandardFigure, device: StandardDevice) -> str:
    """Return what is wrong with a figure, after its name; empty if nothing is."""
    item, result = standard_item(figure.key), figure.result
    if item is None:
        return f"is not in standard {STANDARD}"
    if (result is None) != bool(figure.skipped):
        return "has a result and a reason for none, or neither"
    if result is None:
        return ""
    if not item.is_of(result) or result.throughput_unit != item.unit or result.race is not None:
        return "is of other work"
    if is_cpu(result.device) != device.is_cpu or not item.runs_on(result.device):
        return "is of another device"
    if not math.isclose(result.throughput * result.median_s, item.work, rel_tol=_AGREE_WITHIN):
        return "has a throughput that is not that of its median"
    return ""


def _refused(which: str, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{which} is not a standard run: {reason}.")
