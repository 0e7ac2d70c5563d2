"""A recording: the runs of one engine in their original order, to replay on this or another PC.

A recording is a text file: a `RecordingHeader`, then the events of one engine, one JSON object per
line. ``gpu-studio bench --json`` prints this format. Nothing in a file is run, and code snippets in
it are not shown. A file is accepted or refused as a whole, with one sentence. If its end is
missing, the rest is still real.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import operating_system
from gpu_studio.core.benchmark.kept_run import (
    check_result,
    check_samples,
    check_texts,
    check_way,
    clean_name,
    number_trouble,
    read_results,
    refused,
)
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.device_name import address_at, address_there, pc_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.engine import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import (
    EngineDescribed,
    EngineEnded,
    RecordingHeader,
    RequestFailed,
)
from gpu_studio.core.messages.message import LONGEST_S, Event
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import (
    SQUARE,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.other_pc import name_trouble
from gpu_studio.core.packed_frame import MOST_FRAMES, MOST_FRAMES_OF_RUN, thinned, unpack_rows
from gpu_studio.core.program_version import program_title
from gpu_studio.core.protocol import decode_recorded, encode_all, messages_of
from gpu_studio.core.tensors import LARGEST_SIZE
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from gpu_studio.core.benchmark.run import Run


SCHEMA = 1
UNKNOWN = "unknown"
_LONGEST_LINE_BYTES = 8 << 20
# The last line of ``gpu-studio race --json`` follows from the runs before it.
_SUMMARIES = ("race_finished",)
_KNOWN = frozenset(event.__struct_config__.tag for event in messages_of(Event))


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a file; ``described`` is the engine's description, None if there is none.

    ``is_cut_off``: the end of the file is missing.
    """

    header: RecordingHeader
    described: EngineDescribed | None
    runs: tuple[RecordedRun, ...]
    is_cut_off: bool = False

    @property
    def label(self) -> str:
        """The label beside every number of it, which names the devices."""
        header = self.header
        named = short_name(header.device_name) in short_name(header.title)
        title = header.title if named else f"{header.device_name}: {header.title}"
        return clean_name(f"simulated card: {title}" if header.is_simulated else title)

    @property
    def spent_s(self) -> float:
        """The length of a replay at the original speed."""
        return sum(run.spent_s for run in self.runs)


class _Kind(msgspec.Struct):
    type: str = ""


def read_recording(path: Path, is_over: Callable[[], bool] = lambda: False) -> Recording:
    """Return the recording in a file.

    Args:
        path: the file.
        is_over: returns whether the result is no longer needed; called during the reading.

    Raises:
        StudioError: the file is refused; the sentence says why.
    """
    return decode_recording(read_results(path, is_over), is_over)


def is_recording(content: bytes) -> bool:
    """Return whether a file's contents begin like a recording, damaged or not."""
    return _kind_of(text_of(content).partition(b"\n")[0]) == "recording_header"


def decode_recording(content: bytes, is_over: Callable[[], bool] = lambda: False) -> Recording:
    """Return the recording in a file's contents.

    Args:
        content: the whole contents.
        is_over: as for `read_recording`.

    Raises:
        StudioError: the file is refused; the sentence says why.
    """
    first, *lines = text_of(content).split(b"\n")
    header = _header(first)
    described, runs, is_cut_off = None, RunsOfEvents(is_over), False
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        if is_over():
            raise refused("its reading was stopped")
        try:
            event = _event(line, number)
        except ValueError:
            # Every line ends with a newline; only the last may lack it.
            if number <= len(lines):
                raise refused(f"its line {number} is damaged") from None
            is_cut_off = True
            break
        if isinstance(event, EngineDescribed):
            described = described or event
        elif event is not None:
            runs.add(event, number)
    is_cut_off = runs.end() or is_cut_off
    recorded = tuple(runs.runs())
    if not recorded:
        raise refused("it has no runs")
    ran = {run.request.workload for run in recorded}
    return Recording(
        header=header,
        described=_checked_description(described, ran) if described else None,
        runs=recorded,
        is_cut_off=is_cut_off,
    )


def text_of(content: bytes) -> bytes:
    """Return a file's contents in UTF-8.

    Windows PowerShell writes files in UTF-16, with a byte order mark.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise refused("it is damaged, or not a GPU Studio recording") from error
    return content.removeprefix(b"\xef\xbb\xbf")


def _kind_of(line: bytes) -> str | None:
    """Return the type of the message in a line; None if it is not a message."""
    try:
        return msgspec.json.decode(line, type=_Kind).type or None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _header(line: bytes) -> RecordingHeader:
    if _kind_of(line) != "recording_header":
        raise refused("it is not a GPU Studio recording")
    try:
        header = msgspec.json.decode(line, type=RecordingHeader)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise refused("its first line does not say where it comes from") from error
    if header.schema > SCHEMA:
        raise refused(f"a newer GPU Studio wrote it (schema {header.schema})")
    if header.schema < 1:
        raise refused("its schema number is invalid")
    texts = {
        name: clean_name(value)
        for name, value in msgspec.structs.asdict(header).items()
        if isinstance(value, str)
    }
    if not texts["device_name"]:
        raise refused("it does not name its device")
    return msgspec.structs.replace(header, **texts)


def _event(line: bytes, number: int) -> Event | None:
    """Return the event in a line; None for a summary of the lines before it.

    Raises:
        StudioError: the event is unknown to this program, or too large.
        ValueError: it is not JSON.
    """
    if len(line) > _LONGEST_LINE_BYTES:
        raise refused(f"its line {number} is longer than {_LONGEST_LINE_BYTES >> 20} MiB")
    try:
        return decode_recorded(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        kind = _kind_of(line)
        if kind is None:
            raise ValueError from error
        if kind in _SUMMARIES:
            return None
        shown = f"“{clean_name(kind)[:40]}”"
        if kind == "recording_header":
            reason = f"another recording begins in its line {number}; split the file"
        elif kind in _KNOWN:
            reason = number_trouble(error) or f"its line {number}, {shown}, has an invalid form"
        else:
            reason = f"its line {number} is {shown}, unknown to this version"
        raise refused(reason) from error


def _checked_description(described: EngineDescribed, ran: Collection[str]) -> EngineDescribed:
    """Return a foreign engine's description with only what a replay of its runs needs."""
    shown = described_for_others(described, ran)
    described_here = (*shown.workloads, *shown.pictures)
    sizes = (size for workload in described_here for size in workload.sizes)
    if not all(1 <= size <= LARGEST_SIZE for size in sizes):
        raise refused("it has a workload with an invalid size")
    return check_texts(shown)


_MOST_SIZES = 6
_NO_PC = "unknown PC"


def recording_sentences(recording: Recording) -> list[str]:
    """Return a recording's source, its contents and its limits, a sentence each."""
    sentences = [_origin(recording), _contents(recording)]
    if recording.header.is_simulated:
        sentences.append("The cards were simulated: the times do not belong to a real card.")
    if recording.is_cut_off:
        sentences.append("Its end is missing: the last run is incomplete.")
    return sentences


def _origin(recording: Recording) -> str:
    header = recording.header
    when = header.recorded_at[:16].replace("T", " at ") or "at an unknown time"
    named = header.pc.startswith(header.device_name)
    place = header.pc if named else f"{header.device_name} ({header.pc or _NO_PC})"
    torch = header.torch_version or UNKNOWN
    driver = f", driver {header.driver_version}" if header.driver_version else ""
    return f"Recorded {when} on {place}, PyTorch {torch}{driver}."


def _contents(recording: Recording) -> str:
    count = len(recording.runs)
    runs = f"{count} {'run' if count == 1 else 'runs'}"
    devices = {run.request.device: run.device_name or run.request.device for run in recording.runs}
    works: dict[str, dict[str, None]] = {}
    for run in recording.runs:
        size = format_size(run.request.size, run.size_text)
        works.setdefault(run.request.workload, {})[size] = None
    what = "; ".join(
        f"{name} at {sizes_text([*sizes], _MOST_SIZES)}" for name, sizes in works.items()
    )
    duration = format_duration(recording.spent_s)
    return f"{runs} on {', '.join(devices.values())}, {duration} at the original speed: {what}."


# ── written ──────────────────────────────────────────────────────────────────────────────────────


def system_name() -> str:
    """Return the operating system and its release."""
    return f"{operating_system.system()} {operating_system.release()}".strip()


class RecordedPc(msgspec.Struct, frozen=True, kw_only=True):
    """The PC of a recording, without its name and its user's name."""

    processor: str
    system: str
    cards: tuple[str, ...] = ()
    driver_version: str | None = None
    is_simulated: bool = False


def header_of(pc: RecordedPc, described: EngineDescribed, recorded_at: str) -> RecordingHeader:
    """Return the first line of a recording.

    Args:
        pc: the PC that records.
        described: the recorded engine.
        recorded_at: the present time in ISO 8601.
    """
    devices = ", ".join(dict.fromkeys(pc.cards)) or pc.processor
    place = f" with {short_name(pc.processor)}" if pc.cards else ""
    return RecordingHeader(
        title=f"{short_name(devices)}{place}, {recorded_at[:16].replace('T', ' ')}",
        device_name=devices,
        driver_version=pc.driver_version,
        torch_version=described.torch_version,
        recorded_at=recorded_at,
        source=program_title(),
        pc=f"{pc.processor}, {pc.system}",
        is_simulated=pc.is_simulated,
    )


def described_for_others(described: EngineDescribed, workloads: Collection[str]) -> EngineDescribed:
    """Return an engine's description without its private and local parts.

    Args:
        described: the complete description.
        workloads: the names of the workloads that ran.
    """
    return msgspec.structs.replace(
        described,
        workloads=tuple(one for one in described.workloads if one.name in workloads),
        pictures=tuple(one for one in described.pictures if one.name in workloads),
        pid=0,
        visible_devices=None,
        allocator_configuration=None,
        models=(),
        pitfalls=(),
        snippet="",
        cards=(),
    )


def recording_of(
    header: RecordingHeader,
    described: EngineDescribed,
    runs: Sequence[Run],
    frames: Mapping[str, Sequence[FramesOpened | FrameReady]] | None = None,
) -> bytes:
    """Return the contents of a recording of runs; only runs of this PC are included.

    Args:
        header: the first line.
        described: the engine that made the runs.
        runs: the runs.
        frames: those to keep, by the run's id (`core.race.side`); None leaves all out.
    """
    frames_by_run = frames or {}
    ours = [run for run in runs if is_recordable(run)]
    shown = described_for_others(described, {run.request.workload for run in ours})
    return encode_all(
        [header, shown, *(event for run in ours for event in _events_of(run, frames_by_run))]
    )


def is_recordable(run: Run) -> bool:
    """Return whether a run began on this PC; a replayed run already has a file."""
    return run.recording is None and run.has_begun


def _events_of(
    run: Run, frames_by_run: Mapping[str, Sequence[FramesOpened | FrameReady]]
) -> Iterator[Event]:
    request, result = run.request, run.result
    frames = deque(frames_by_run.get(request.run_id, ()))
    yield RunStarted(
        run_id=request.run_id,
        **request.settings | (result.parameters if result else {}),
        size_text=run.size_text,
        device_name=result.device_name if result else "",
    )
    if run.batches:
        yield RunPhaseChanged(
            run_id=request.run_id, phase="timing", expected_call_s=run.expected_call_s
        )
    samples_s, begin = run.series.values.tolist(), 0
    for batch in run.batches:
        yield from _frames_before(batch.spent_s, frames)
        yield SamplesMeasured(
            run_id=request.run_id,
            samples_s=tuple(samples_s[begin : batch.end]),
            calls_per_sample=batch.calls_per_sample,
            spent_s=batch.spent_s,
            ended_s=batch.end_s if run.is_clocked else None,
            round_number=batch.round_number,
        )
        begin = batch.end
    yield from frames
    if result is not None:
        yield result
    elif run.failure is not None:
        # A traceback contains private folder names.
        failure = Failure(run.failure.kind, run.failure.message)
        yield RunFailed(run_id=request.run_id, failure=failure)
    else:
        yield RunStopped(run_id=request.run_id, samples=begin)


def _frames_before(
    spent_s: float, frames: deque[FramesOpened | FrameReady]
) -> Iterator[FramesOpened | FrameReady]:
    """Take the frames from before a moment: a replay shows them when they were shown first."""
    while frames and (isinstance(frames[0], FramesOpened) or frames[0].elapsed_s < spent_s):
        yield frames.popleft()


# ── the runs, checked ────────────────────────────────────────────────────────────────────────────


_MOST_RUNS = 1000
_DEVICE = re.compile(r"cpu|cuda:[0-9]{1,3}")
_ENDS = (RunFinished, RunStopped, RunFailed)
_RunEvent = (
    RunPhaseChanged
    | SamplesMeasured
    | FramesOpened
    | FrameReady
    | RunFinished
    | RunStopped
    | RunFailed
)
# An older start does not say whether its run is sustained, and has not all workload options.
_ONLY_IN_RESULTS = ("options", "sustained")
_CUT_OFF = Failure(FailureKind.NOT_RECORDED, "The recording ends in the middle of this run.")


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a recording: its events from its `RunStarted` to its last event.

    ``device_name`` is the device of the run, empty if unknown.
    """

    request: RunWorkload
    device_name: str
    events: tuple[Event, ...]

    @property
    def result(self) -> RunFinished | None:
        """The result; None if the run was stopped, failed or cut off."""
        last = self.events[-1]
        return last if isinstance(last, RunFinished) else None

    @property
    def size_text(self) -> str:
        """The format of its workload's sizes."""
        first = self.events[0]
        return first.size_text if isinstance(first, RunStarted) else SQUARE

    @property
    def samples_s(self) -> list[float]:
        """All its samples, in seconds per call."""
        batches = (event for event in self.events if isinstance(event, SamplesMeasured))
        return [sample_s for batch in batches for sample_s in batch.samples_s]

    @property
    def spent_s(self) -> float:
        """The time of its timed part."""
        return max((e.spent_s for e in self.events if isinstance(e, SamplesMeasured)), default=0.0)


class _RunOfEvents:
    """The events of one run so far, with the last ones of the kinds that have an order."""

    def __init__(self, started: RunStarted) -> None:
        self.started = started
        self.events: list[Event] = [started]
        self.opened: FramesOpened | None = None
        self.batch: SamplesMeasured | None = None
        self.frames: list[FrameReady] = []


class RunsOfEvents:
    """Groups the events by run; an engine makes one run after another, or several for show.

    Args:
        is_over: returns whether the runs are no longer needed.
    """

    def __init__(self, is_over: Callable[[], bool] = lambda: False) -> None:
        self._is_over = is_over
        self._runs: list[_RunOfEvents] = []
        self._open: dict[str, _RunOfEvents] = {}
        self._frames = 0
        self.results: list[RunFinished] = []

    def add(self, event: Event, number: int) -> None:
        """Add the event of a line; events that belong to no run are ignored.

        Raises:
            StudioError: the event belongs to another run, or is invalid.
        """
        if isinstance(event, RunStarted):
            self._begin(event)
        elif isinstance(event, (EngineEnded, RequestFailed)):
            self._end_all(_failure_of(event))
        elif isinstance(event, _RunEvent):
            if event.run_id not in self._open:
                raise refused(f"its line {number} belongs to a run that did not begin")
            self._add_to_run(event, self._open[event.run_id])

    def end(self) -> bool:
        """End the unfinished runs; return whether there were any."""
        were_open = bool(self._open)
        self._end_all(_CUT_OFF)
        return were_open

    def runs(self) -> Iterator[RecordedRun]:
        """Yield the runs; unfinished runs get their device's name from the others."""
        names = {result.device: result.device_name for result in self.results}
        for run in self._runs:
            started, (_, *rest) = run.started, run.events
            name = started.device_name or names.get(started.device, "")
            yield RecordedRun(
                request=_request_of(started, run.events[-1]),
                device_name=name,
                events=(msgspec.structs.replace(started, device_name=name), *rest),
            )

    def _begin(self, event: RunStarted) -> None:
        if len(self._runs) == _MOST_RUNS:
            raise refused(f"it has more than {_MOST_RUNS} runs")
        others = {run.started.turns for run in self._open.values()}
        if event.run_id in self._open or not event.turns or others - {event.turns}:
            self._end_all(_CUT_OFF)
        self._open[event.run_id] = _RunOfEvents(_checked_start(event))
        self._runs.append(self._open[event.run_id])

    def _add_to_run(self, event: _RunEvent, run: _RunOfEvents) -> None:
        match event:
            case SamplesMeasured():
                _check_batch(event, run.batch)
                run.batch = event
            case FramesOpened():
                if run.opened is not None:
                    raise refused("it has a run with two sizes of frames")
                run.opened = event
            case FrameReady(picture=None):
                return  # it was left out
            case FrameReady():
                self._frames += 1
                if self._frames > MOST_FRAMES:
                    raise refused(f"it has more than {MOST_FRAMES} frames")
                _check_order(event, run)
                run.frames.append(event)
            case RunFinished():
                event = _checked_end(event, run)
                self.results.append(event)
            case RunFailed():
                event = RunFailed(run_id=event.run_id, failure=_failure_of(event))
            case RunPhaseChanged():
                event = msgspec.structs.replace(event, phase=clean_name(event.phase))
        run.events.append(event)
        if isinstance(event, _ENDS):
            self._close(run)

    def _end_all(self, failure: Failure) -> None:
        for run in [*self._open.values()]:
            run.events.append(RunFailed(run_id=run.started.run_id, failure=failure))
            self._close(run)

    def _close(self, run: _RunOfEvents) -> None:
        """Keep so many frames of a run as are shown, and see that these are whole."""
        del self._open[run.started.run_id]
        few = thinned(run.frames, MOST_FRAMES_OF_RUN)
        for frame in few:
            if self._is_over():
                raise refused("its reading was stopped")
            _check_frame(frame, run.opened)
        if len(few) < len(run.frames):
            shown = {id(frame) for frame in few}
            run.events = [
                one for one in run.events if not isinstance(one, FrameReady) or id(one) in shown
            ]
        run.frames = []


def _checked_end(event: RunFinished, run: _RunOfEvents) -> RunFinished:
    """Return a result after checking that it matches the run's own samples."""
    import numpy as np  # 80 ms

    result, started = check_result(event), run.started
    ends = {name: getattr(result, name) for name in _ONLY_IN_RESULTS}
    if result.parameters != {**started.parameters, **ends}:
        raise refused("it has a result that belongs to another run")
    if not result.device_name:
        raise refused("it has a result without its device")
    batches = (e.samples_s for e in run.events if isinstance(e, SamplesMeasured))
    values = [sample_s for batch in batches for sample_s in batch]
    check_samples(result, np.array(values, "<f8").tobytes())
    if result.outcome is not None:
        check_way([frame.elapsed_s for frame in run.frames], result.outcome.seconds)
    return result


def _is_device(address: str) -> bool:
    """Return whether this is a device's name, which may begin with that of another PC."""
    pc, there = pc_of(address), address_there(address)
    is_named = not pc or not name_trouble(pc)
    return is_named and address == address_at(pc, there) and _DEVICE.fullmatch(there) is not None


def _checked_start(event: RunStarted) -> RunStarted:
    """Return a run's start without its snippet, because foreign code is not shown."""
    if not _is_device(event.device):
        raise refused("it has a device with an invalid address")
    if not 1 <= event.size <= LARGEST_SIZE or not 0 < event.timed_s <= LONGEST_S:
        raise refused("it has an invalid size or time budget")
    return check_texts(msgspec.structs.replace(event, snippet=""))


def _check_order(event: FrameReady, run: _RunOfEvents) -> None:
    if run.frames and event.elapsed_s < run.frames[-1].elapsed_s:
        raise refused("its frames are out of order")
    if run.opened is None:
        raise refused("it has a frame without a size")


def _check_frame(frame: FrameReady, opened: FramesOpened | None) -> None:
    """Raise `StudioError` unless a frame can be unpacked to its size."""
    assert opened is not None
    assert frame.picture is not None
    if unpack_rows(frame.picture, opened.width, opened.height) is None:
        raise refused("it has a damaged frame")


def _check_batch(event: SamplesMeasured, before: SamplesMeasured | None) -> None:
    if before is not None and event.spent_s < before.spent_s:
        raise refused("its samples are out of order")


def _failure_of(event: EngineEnded | RequestFailed | RunFailed) -> Failure:
    """Return a recorded run's failure, which must not end the engine that replays it."""
    if isinstance(event, EngineEnded):
        return Failure(FailureKind.INTERNAL, describe_exit(event.exit_code))
    kind, message = event.failure.kind, clean_name(event.failure.message)
    return Failure(FailureKind.INTERNAL if kind is FailureKind.ENGINE_ENDED else kind, message)


def _request_of(started: RunStarted, end: Event) -> RunWorkload:
    """Return the request of a run; an older start does not say whether it was sustained."""
    is_sustained = end.sustained if isinstance(end, RunFinished) else started.sustained
    return RunWorkload(run_id=started.run_id, **{**started.settings, "sustained": is_sustained})
