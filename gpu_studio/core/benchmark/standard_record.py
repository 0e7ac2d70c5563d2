"""The record of a standard run: JSON, to keep, to share, and to compare with another PC's.

It has nothing that identifies you, your PC, or this copy of a card: `record_of` leaves out the
names of other programs, and masks those of users, PCs and files. Reading one runs nothing and
follows no name in it.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.benchmark.kept_run import LARGEST_FILE_BYTES, check_result
from gpu_studio.core.benchmark.recording import text_of
from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.benchmark.standard import ITEMS, LOAD, LOAD_ITEM, STANDARD, STANDARD_1, key_of
from gpu_studio.core.benchmark.sustained import held_speed
from gpu_studio.core.device_name import address_there, is_cpu
from gpu_studio.core.devices.facts import driver_text
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import ShortText, Text  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.message import Seconds  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.run_messages import OtherLoad, RunFinished, RunHeat
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.program_version import program_title
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES, decode_record_of
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.user_file import (
    SilentDriveError,
    UnusableFileError,
    read_own_file,
    read_part,
    read_user_file,
    write_atomically,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.benchmark.standard import StandardItem, StandardPlan
    from gpu_studio.core.devices.devices import Device, Inventory
    from gpu_studio.core.messages.engine_messages import EngineDescribed

SCHEMA = 1
MOST_DEVICES = 16
CHUNK = "gpu-studio-standard"
"""The keyword of the text chunk that has a record in a PNG."""
LAST_EVENT = "standard_finished"
# A throughput is its work over its median; a file has both, rounded alike.
_AGREE_WITHIN = 1e-3
_Rate = Annotated[float, Meta(gt=0, le=1e100)]
_Key = Annotated[str, Meta(max_length=40)]

_STOPPED = "The run was stopped before this was measured."
_ENGINE_ENDED = "PyTorch ended before this was measured."
_LONGEST_SENTENCE = 300


class StandardFigure(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a device: its result, or why there is none: ``skipped`` is a sentence."""

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


class StandardDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device and its figures, in the order of `STANDARD_1`.

    ``build`` is the version of PyTorch with its local part (``2.13.0+cu126``), empty if unknown;
    ``driver`` is None if it was not reported.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    is_cpu: bool
    driver: ShortText | None = None
    build: ShortText = ""
    figures: Annotated[tuple[StandardFigure, ...], Meta(max_length=len(STANDARD_1))]
    load: StandardLoad | None = None


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


class StandardFinished(msgspec.Struct, frozen=True, kw_only=True, tag=LAST_EVENT):
    """The last line of ``gpu-studio standard --json``: the record, and what it says in words.

    ``is_complete`` is False if the run was stopped, or a device ended it.
    """

    run: StandardRun
    sentence: str
    is_complete: bool


# ── made ─────────────────────────────────────────────────────────────────────────────────────────


def record_of(
    plan: StandardPlan,
    runs: Sequence[Run],
    *,
    inventory: Inventory | None,
    described: EngineDescribed | None,
    made_at: str,
    system: str,
) -> StandardRun | None:
    """Return the record of a plan that is over; None if it measured nothing.

    Args:
        plan: the plan; it may have been stopped.
        runs: its runs that have begun.
        inventory: the devices of the PC; None if it was not looked at.
        described: the engine that made the runs; None if unknown.
        made_at: the present time in ISO 8601.
        system: the operating system's name and version.
    """
    devices = []
    for address in plan.devices:
        own = {key_of(run.request.run_id): run for run in runs if run.request.device == address}
        devices.append(_device(address, own, made_at, inventory, described))
    measured = tuple(device for device in devices if any(one.result for one in device.figures))
    if not measured:
        return None
    made = StandardRun(made_at=made_at, program=program_title(), system=system, devices=measured)
    return without_identifiers(made)


def _device(
    address: str,
    runs: dict[str, Run],
    made_at: str,
    inventory: Inventory | None,
    described: EngineDescribed | None,
) -> StandardDevice:
    """Return a device with its figures; ``runs`` are its own by the keys of their items."""
    cards = described.cards if described else ()
    torch_card = next((card for card in cards if card.address == address), None)
    device = inventory.find(address) if inventory else None
    if inventory and device is None and torch_card is not None and torch_card.uuid:
        device = inventory.device_with(torch_card.uuid)
    results = [run.result for run in runs.values() if run.result is not None]
    named = [device.name if device else "", *(one.device_name for one in results), address]
    build = described.torch_version if described else ""
    return StandardDevice(
        name=plain_text(next(filter(None, named)))[:100],
        is_cpu=is_cpu(address),
        driver=_driver_of(device, inventory),
        build=next((one.conditions.torch_version for one in results), build),
        figures=tuple(
            _figure(item, runs.get(item.key), made_at)
            for item in STANDARD_1
            if item.runs_on(address)
        ),
        load=_load(runs.get(LOAD)),
    )


def _driver_of(device: Device | None, inventory: Inventory | None) -> str | None:
    if device is None or device.is_cpu:
        return None
    of_maker = inventory.driver.version if inventory and device.is_cudas else None
    return driver_text(device) or of_maker


def _figure(item: StandardItem, run: Run | None, made_at: str) -> StandardFigure:
    if run is not None and run.result is not None:
        turns = f"standard {made_at}" if run.result.turns else ""
        return StandardFigure(key=item.key, result=_cleaned(run.result, item.key, turns))
    return StandardFigure(key=item.key, skipped=_why_none(run))


def _why_none(run: Run | None) -> str:
    """Return why a run has no result, in a sentence."""
    if run is None or run.state is RunState.STOPPED:
        return _STOPPED
    if run.failure is None or run.failure.kind is FailureKind.ENGINE_ENDED:
        return _ENGINE_ENDED
    return plain_text(run.failure.message)[:_LONGEST_SENTENCE] or _ENGINE_ENDED


def _cleaned(result: RunFinished, key: str, turns: str) -> RunFinished:
    """Return a result as it leaves this PC: what others did here is a load without a name.

    Args:
        result: from an engine.
        key: the item's, in place of the run's own id.
        turns: a name for its turns that no other PC has; empty if it was alone.
    """
    replace, load = msgspec.structs.replace, result.conditions.other_load
    nameless = OtherLoad(percent=load.percent) if load is not None else None
    return replace(
        result,
        run_id=key,
        device=address_there(result.device),
        conditions=replace(result.conditions, other_load=nameless),
        details=replace(result.details, findings=(), curves={}),
        turns=turns,
    )


def _load(run: Run | None) -> StandardLoad | None:
    """Return what a load showed; None if it was not made, or too short."""
    if run is None or run.result is None:
        return None
    held = held_speed(run.series.values, run.result.calls_per_sample)
    heat = run.result.conditions.heat
    if held is None or not held.first_s or not held.steady_s or not held.ratio_ci95[0]:
        return None
    return StandardLoad(
        seconds=held.seconds,
        first_rate=LOAD_ITEM.work / held.first_s,
        steady_rate=LOAD_ITEM.work / held.steady_s,
        ci95=_around(held.ratio_ci95, held.first_s / held.steady_s),
        **(msgspec.structs.asdict(heat) if heat is not None else {}),
    )


def _around(interval: tuple[float, float], ratio: float) -> tuple[float, float]:
    """Return an interval that has its ratio in it, also after the rounding of two divisions."""
    return min(interval[0], ratio * (1 - 1e-12)), max(interval[1], ratio * (1 + 1e-12))


# ── written and read ─────────────────────────────────────────────────────────────────────────────


class _Version(msgspec.Struct):
    standard: int


def encode_standard(run: StandardRun) -> bytes:
    """Return a record as JSON."""
    return msgspec.json.encode(run)


def shared_json(run: StandardRun) -> str:
    """Return a record for strangers, without identifiers in its texts.

    It is JSON in ASCII: Qt writes other texts in another kind of chunk.
    """
    content = json.loads(encode_standard(without_identifiers(run)))
    return json.dumps(content, separators=(",", ":"))


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
    item, result = ITEMS.get(figure.key), figure.result
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


# ── in files ─────────────────────────────────────────────────────────────────────────────────────


FOLDER_NAME = "standard"
# The beginnings of the pictures that chat programs and web sites make of a PNG.
_OTHER_PICTURES = (b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")
_FAMILY_AT = 4  # bytes before the brand of an AVIF or HEIC file
_LONGEST_HEAD = 16
# Also of a file that is cut off or too large, so that the sentence can say so.
_BEGINNING = re.compile(rb'\{\s*"schema"\s*:\s*-?[0-9]+\s*,\s*"standard"\s*:')
_LONGEST_EVENT_BYTES = LARGEST_RECORD_BYTES + (1 << 16)
_NO_DATA = (
    "The picture {name} has lost its data: chat programs and web sites remove it. Ask for the "
    "JSON file, which keeps it, or for the PNG as a file."
)


def read_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> StandardRun:
    """Return the standard run in a picture, a recording or JSON, whatever the file's name.

    Args:
        path: the file.
        is_over: returns whether the run is no longer needed.

    Raises:
        StudioError: the file has none, or it is damaged, too large, from a newer version, or of
            another standard; the sentence says which.
    """
    found = find_standard(path, is_over)
    if found is None:
        raise _unread(f"There is no standard run in {file_name(path)}.")
    return found


def find_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> StandardRun | None:
    """Return the standard run in a file as `read_standard`; None if it holds something else."""
    name = file_name(path)
    try:
        is_picture, text = _json_in(path, is_over)
    except UnusableFileError as error:
        raise _unread(f"{name} cannot be opened: {error}.") from error
    if text is None and is_picture:
        raise _unread(_NO_DATA.format(name=name))
    return None if text is None else decode_standard(text, name)


def has_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a file has a standard run, damaged or not.

    Raises:
        SilentDriveError: its drive does not answer; any other file that cannot be read has none.
    """
    try:
        return _json_in(path, is_over)[1] is not None
    except SilentDriveError:
        raise
    except (UnusableFileError, StudioError):
        return False


def _json_in(path: Path, is_over: Callable[[], bool]) -> tuple[bool, bytes | None]:
    """Return whether a file is a picture, and the JSON in it: None without, empty if damaged."""
    is_picture, text = read_part(path, _text_in_picture, is_over)
    if is_picture:
        return True, text
    return False, standard_in(read_user_file(path, LARGEST_FILE_BYTES, is_over))


def _text_in_picture(file: BinaryIO) -> tuple[bool, bytes | None]:
    head = file.read(_LONGEST_HEAD)
    if head.startswith(PNG_HEAD):
        return True, png_text(file, CHUNK.encode(), LARGEST_RECORD_BYTES)
    return head.startswith(_OTHER_PICTURES) or head[_FAMILY_AT:].startswith(b"ftyp"), None


def standard_in(content: bytes) -> bytes | None:
    """Return the JSON of the standard run in a recording, or in JSON; None without one."""
    content = text_of(content).strip()
    # Limits before each decoding: it would hold the window's interpreter as long as it takes.
    last = content[-_LONGEST_EVENT_BYTES:].rpartition(b"\n")[2]
    try:
        event = msgspec.json.decode(last, type=_LastEvent)
        if event.type == LAST_EVENT:
            return bytes(event.run)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass  # no recording, or of something else
    return content if _BEGINNING.match(content) else None


class _LastEvent(msgspec.Struct):
    type: str
    run: msgspec.Raw


def _unread(sentence: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, sentence)


class StandardFolder:
    """The last standard runs of this PC; window and terminal share the folder.

    Args:
        folder: need not exist yet; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def keep(self, run: StandardRun) -> str:
        """Keep a run; return why it is not kept, or nothing."""
        if self._folder is None:
            return ""
        name = "".join(letter for letter in run.made_at if letter.isascii() and letter.isalnum())
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / f"{name}.json", encode_standard(run))
        except OSError as error:
            return f"The run could not be kept: {error.strerror or error}."
        return ""

    def newest(self) -> StandardRun | None:
        """Return the newest run; None if there is none. A file that cannot be read is left out."""
        if self._folder is not None:
            for path in sorted(self._folder.glob("*.json"), reverse=True):
                with contextlib.suppress(OSError, StudioError, UnusableFileError):
                    content = read_own_file(path, LARGEST_RECORD_BYTES)
                    return decode_standard(content, path.name)
        return None
