"""A recording: the runs of one engine as they came, to be watched again, also on another PC.

A recording is a text file: a `RecordingHeader`, then the events of one engine, one JSON object a
line. That is what ``gpu-studio bench --json`` prints. Nothing in a file is run, and no line of code
in one is shown to anybody. A file is taken as a whole or refused as a whole, with one sentence; one
whose end is missing was cut off, and what is there of it is real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec

from gpu_studio.core.benchmark.history import read_capped
from gpu_studio.core.benchmark.kept_run import LONGEST_NAME, clean_name, refused
from gpu_studio.core.benchmark.recording_runs import RecordedRun, RunsOfEvents
from gpu_studio.core.pc.devices import short_name
from gpu_studio.core.protocol import EngineDescribed, Event, RecordingHeader, decode_event

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpu_studio.core.protocol import RunFinished

SCHEMA = 1
NOT_TOLD = "not told"
_LONGEST_LINE_BYTES = 8 << 20
_KNOWN = frozenset(event.__struct_config__.tag for event in get_args(Event))


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says; ``described`` is the engine's own account, None where it has none.

    ``is_cut_off`` says that the end of the file is missing.
    """

    header: RecordingHeader
    described: EngineDescribed | None
    runs: tuple[RecordedRun, ...]
    is_cut_off: bool = False

    @property
    def label(self) -> str:
        """What stands beside every number of it: it names the devices."""
        header = self.header
        named = short_name(header.device_name) in short_name(header.title)
        title = header.title if named else f"{header.device_name}: {header.title}"
        return clean_name(f"simulated card: {title}" if header.is_simulated else title)

    @property
    def spent_s(self) -> float:
        """How long it takes at its own pace."""
        return sum(run.spent_s for run in self.runs)


class _Kind(msgspec.Struct):
    type: str = ""


def read_recording(path: Path) -> Recording:
    """Return the recording in a file.

    Raises:
        StudioError: with one sentence why the file is refused.
    """
    return decode_recording(read_capped(path), path.name)


def is_recording(content: bytes) -> bool:
    """Return whether a file's content begins as a recording does, damaged or not."""
    lines = _text_of(content).split(b"\n", 2)
    return len(lines) > 1 and _kind_of(lines[0]) is not None


def decode_recording(content: bytes, file_name: str) -> Recording:
    """Return the recording in a file's content.

    Args:
        content: all of it.
        file_name: by which a file that does not say where it is from is called.

    Raises:
        StudioError: with one sentence why it is refused.
    """
    lines = _text_of(content).split(b"\n")
    has_header = _kind_of(lines[0]) == "recording_header"
    header = _header(lines[0]) if has_header else None
    described, runs, is_cut_off = None, RunsOfEvents(), False
    for number, line in enumerate(lines[has_header:], 1 + has_header):
        if not line.strip():
            continue
        try:
            event = _event(line, number)
        except ValueError:
            if header is None and not runs.has_begun:
                raise refused("it is no recording of this program") from None
            # A line has its end; only the last can be without.
            if number < len(lines):
                raise refused(f"its line {number} is damaged") from None
            is_cut_off = True
            break
        if isinstance(event, EngineDescribed):
            described = described or event
        else:
            runs.take(event, number)
    is_cut_off = runs.end() or is_cut_off
    if not runs.has_begun:
        raise refused("it has no run")
    return Recording(
        header=header or _header_of_results(runs.results, file_name),
        described=described,
        runs=tuple(runs.runs()),
        is_cut_off=is_cut_off,
    )


def _text_of(content: bytes) -> bytes:
    """Return UTF-8: Windows' PowerShell writes UTF-16 into a file, and a mark in front."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise refused("it is damaged, or no recording of this program") from error
    return content.removeprefix(b"\xef\xbb\xbf")


def _kind_of(line: bytes) -> str | None:
    """Return the type of the message in a line; None where it is none."""
    try:
        return msgspec.json.decode(line, type=_Kind).type or None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _header(line: bytes) -> RecordingHeader:
    try:
        header = msgspec.json.decode(line, type=RecordingHeader)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise refused("its first line does not say where it is from") from error
    if header.schema > SCHEMA:
        raise refused(f"a newer version of this program wrote it (schema {header.schema})")
    if header.schema < 1:
        raise refused("its schema makes no sense")
    texts = {
        name: clean_name(value)
        for name, value in msgspec.structs.asdict(header).items()
        if isinstance(value, str)
    }
    if not texts["device_name"]:
        raise refused("it does not say on which device it was made")
    return msgspec.structs.replace(header, **texts)


def _header_of_results(results: Sequence[RunFinished], file_name: str) -> RecordingHeader:
    """Return what the results themselves tell, of a file without a header."""
    names = dict.fromkeys(result.device_name for result in results if result.device_name)
    if not names:
        raise refused("it does not say on which device it was made")
    devices = clean_name(", ".join(names))
    return RecordingHeader(
        title=clean_name(f"{devices[: LONGEST_NAME // 2]}, from {file_name}"),
        device_name=devices[: LONGEST_NAME // 2],
        driver_version=None,
        torch_version=results[-1].torch_version,
        recorded_at="",
        source=clean_name(file_name),
    )


def _event(line: bytes, number: int) -> Event:
    """Return the event in a line.

    Raises:
        StudioError: this program knows no such event, or it is larger than any.
        ValueError: it is not JSON.
    """
    if len(line) > _LONGEST_LINE_BYTES:
        raise refused(f"its line {number} is longer than {_LONGEST_LINE_BYTES >> 20} MiB")
    try:
        return decode_event(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        kind = _kind_of(line)
        if kind is None:
            raise ValueError from error
        shown = f"“{clean_name(kind)[:40]}”"
        if kind == "recording_header":
            reason = f"another recording begins in its line {number}: open each by itself"
        elif kind in _KNOWN:
            reason = f"its line {number}, {shown}, is not as this program writes it"
        else:
            reason = f"its line {number} is {shown}, which this version does not know"
        raise refused(reason) from error
