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
from gpu_studio.core.benchmark.history import read_capped
from gpu_studio.core.benchmark.kept_run import (
    LONGEST_NAME,
    SHORTEST_S,
    check_result,
    check_samples,
    check_texts,
    check_way,
    clean_name,
    out_of_range,
    refused,
)
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import (
    EngineDescribed,
    EngineEnded,
    RecordingHeader,
    RequestFailed,
)
from gpu_studio.core.messages.message import LARGEST_COUNT, LONGEST_S, Event
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
from gpu_studio.core.packed_frame import unpack_frame
from gpu_studio.core.protocol import decode_event, encode_all, messages_of
from gpu_studio.core.tensors import LARGEST_SIZE
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from gpu_studio.core.benchmark.run import Run


SCHEMA = 1
NOT_TOLD = "unknown"
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
    return decode_recording(read_capped(path), path.name, is_over)


def is_recording(content: bytes) -> bool:
    """Return whether a file's contents begin like a recording, damaged or not."""
    lines = _text_of(content).split(b"\n", 2)
    return len(lines) > 1 and _kind_of(lines[0]) is not None


def decode_recording(
    content: bytes, file_name: str, is_over: Callable[[], bool] = lambda: False
) -> Recording:
    """Return the recording in a file's contents.

    Args:
        content: the whole contents.
        file_name: the name for a file that does not say where it comes from.
        is_over: as for `read_recording`.

    Raises:
        StudioError: the file is refused; the sentence says why.
    """
    lines = _text_of(content).split(b"\n")
    has_header = _kind_of(lines[0]) == "recording_header"
    header = _header(lines[0]) if has_header else None
    described, runs, is_cut_off = None, RunsOfEvents(), False
    for number, line in enumerate(lines[has_header:], 1 + has_header):
        if not line.strip():
            continue
        if is_over():
            raise refused("its reading was stopped")
        try:
            event = _event(line, number)
        except ValueError:
            if header is None and not runs.has_begun:
                raise refused("it is not a GPU Studio recording") from None
            # Every line ends with a newline; only the last may lack it.
            if number < len(lines):
                raise refused(f"its line {number} is damaged") from None
            is_cut_off = True
            break
        if isinstance(event, EngineDescribed):
            described = described or event
        elif event is not None:
            runs.take(event, number)
    is_cut_off = runs.end() or is_cut_off
    if not runs.has_begun:
        raise refused("it has no runs")
    recorded = tuple(runs.runs())
    ran = {run.request.workload for run in recorded}
    return Recording(
        header=header or _header_of_results(runs.results, file_name),
        described=_checked_description(described, ran) if described else None,
        runs=recorded,
        is_cut_off=is_cut_off,
    )


def _text_of(content: bytes) -> bytes:
    """Return UTF-8: Windows PowerShell writes files in UTF-16, with a byte order mark."""
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


def _header_of_results(results: Sequence[RunFinished], file_name: str) -> RecordingHeader:
    """Return a header for a file without one, from its results."""
    names = dict.fromkeys(result.device_name for result in results if result.device_name)
    if not names:
        raise refused("it does not name its device")
    devices = clean_name(", ".join(names))
    return RecordingHeader(
        title=clean_name(f"{devices[: LONGEST_NAME // 2]}, from {file_name}"),
        device_name=devices[: LONGEST_NAME // 2],
        driver_version=None,
        torch_version=results[-1].torch_version,
        recorded_at="",
        source=clean_name(file_name),
    )


def _event(line: bytes, number: int) -> Event | None:
    """Return the event in a line; None for a summary of the lines before it.

    Raises:
        StudioError: the event is unknown to this program, or too large.
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
        if kind in _SUMMARIES:
            return None
        shown = f"“{clean_name(kind)[:40]}”"
        if kind == "recording_header":
            reason = f"another recording begins in its line {number}; split the file"
        elif kind in _KNOWN:
            reason = out_of_range(error) or f"its line {number}, {shown}, has an invalid form"
        else:
            reason = f"its line {number} is {shown}, unknown to this version"
        raise refused(reason) from error


_MOST_RUNS = 1000
_DEVICE = re.compile(r"cpu|cuda:[0-9]{1,3}")
_MOST_FRAMES = 2000
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
_TOLD_BY_RESULTS = ("options", "sustained")
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


class RunsOfEvents:
    """Groups the events by run; an engine makes one run after another, or several for show."""

    def __init__(self) -> None:
        self._events: list[list[Event]] = []
        self._open: dict[str, list[Event]] = {}
        self._frames = 0
        self.results: list[RunFinished] = []

    @property
    def has_begun(self) -> bool:
        """Whether there was any run."""
        return bool(self._events)

    def take(self, event: Event, number: int) -> None:
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
            self._take(event, self._open[event.run_id])

    def end(self) -> bool:
        """End the unfinished runs; return whether there were any."""
        were_open = bool(self._open)
        self._end_all(_CUT_OFF)
        return were_open

    def runs(self) -> Iterator[RecordedRun]:
        """Yield the runs; unfinished runs get their device's name from the others."""
        names = {result.device: result.device_name for result in self.results}
        for events in self._events:
            started = _start_of(events)
            name = started.device_name or names.get(started.device, "")
            yield RecordedRun(
                request=_request_of(started, events[-1]),
                device_name=name,
                events=(msgspec.structs.replace(started, device_name=name), *events[1:]),
            )

    def _begin(self, event: RunStarted) -> None:
        if len(self._events) == _MOST_RUNS:
            raise refused(f"it has more than {_MOST_RUNS} runs")
        others = {_start_of(events).turns for events in self._open.values()}
        if event.run_id in self._open or not event.turns or others - {event.turns}:
            self._end_all(_CUT_OFF)
        self._open[event.run_id] = [_checked_start(event)]
        self._events.append(self._open[event.run_id])

    def _take(self, event: _RunEvent, events: list[Event]) -> None:
        match event:
            case SamplesMeasured():
                _check_batch(event, events)
            case FramesOpened():
                event = _checked_opening(event, events)
            case FrameReady(picture=None):
                return  # of an engine at work; its file is gone
            case FrameReady():
                self._frames += 1
                if self._frames > _MOST_FRAMES:
                    raise refused(f"it has more than {_MOST_FRAMES} frames")
                _check_frame(event, events)
            case RunFinished():
                event = _checked_end(event, events)
                self.results.append(event)
            case RunFailed():
                event = RunFailed(run_id=event.run_id, failure=_failure_of(event))
            case RunPhaseChanged():
                event = msgspec.structs.replace(event, phase=clean_name(event.phase))
        events.append(event)
        if isinstance(event, _ENDS):
            del self._open[event.run_id]

    def _end_all(self, failure: Failure) -> None:
        for run_id, events in self._open.items():
            events.append(RunFailed(run_id=run_id, failure=failure))
        self._open.clear()


def _start_of(events: Sequence[Event]) -> RunStarted:
    started = events[0]
    assert isinstance(started, RunStarted)
    return started


def _checked_end(event: RunFinished, events: Sequence[Event]) -> RunFinished:
    """Return a result after checking that it matches the run's own samples."""
    import numpy as np  # 80 ms

    result, started = check_result(event), _start_of(events)
    told = {name: getattr(result, name) for name in _TOLD_BY_RESULTS}
    if result.parameters != {**started.parameters, **told}:
        raise refused("it has a result that belongs to another run")
    if not result.device_name:
        raise refused("it has a result without its device")
    batches = (e.samples_s for e in events if isinstance(e, SamplesMeasured))
    values = [sample_s for batch in batches for sample_s in batch]
    check_samples(result, np.array(values, "<f8").tobytes())
    if result.outcome is not None:
        frames_s = [event.elapsed_s for event in events if isinstance(event, FrameReady)]
        check_way(frames_s, result.outcome.seconds)
    return result


def _checked_start(event: RunStarted) -> RunStarted:
    """Return a run's start without its snippet, because foreign code is not shown."""
    if _DEVICE.fullmatch(event.device) is None:
        raise refused("it has a device with an invalid address")
    if not 1 <= event.size <= LARGEST_SIZE or not 0 < event.budget_s <= LONGEST_S:
        raise refused("it has an invalid size or time budget")
    return check_texts(msgspec.structs.replace(event, snippet=""))


def _checked_description(described: EngineDescribed, ran: Collection[str]) -> EngineDescribed:
    """Return a foreign engine's description with only what a replay of its runs needs."""
    shown = described_for_others(described, ran)
    described_here = (*shown.workloads, *shown.pictures)
    sizes = (size for workload in described_here for size in workload.sizes)
    if not all(1 <= size <= LARGEST_SIZE for size in sizes):
        raise refused("it has a workload with an invalid size")
    return check_texts(shown)


def _checked_opening(event: FramesOpened, events: Sequence[Event]) -> FramesOpened:
    """Return a run's announcement of frames without the path of another PC's file."""
    if any(isinstance(one, FramesOpened) for one in events):
        raise refused("it has a run with two sizes of frames")
    return msgspec.structs.replace(event, path="")


def _check_frame(event: FrameReady, events: Sequence[Event]) -> None:
    opened = next((one for one in events if isinstance(one, FramesOpened)), None)
    before = next((one for one in reversed(events) if isinstance(one, FrameReady)), None)
    if before is not None and event.elapsed_s < before.elapsed_s:
        raise refused("its frames are out of order")
    if (
        opened is None
        or event.picture is None
        or unpack_frame(event.picture, opened.width, opened.height) is None
    ):
        raise refused("it has a damaged frame")


def _check_batch(event: SamplesMeasured, events: Sequence[Event]) -> None:
    before = next((one for one in reversed(events) if isinstance(one, SamplesMeasured)), None)
    since_s = before.spent_s if before is not None else 0.0
    is_counted = 1 <= event.calls_per_sample <= LARGEST_COUNT
    if not since_s <= event.spent_s <= LONGEST_S or not is_counted:
        raise refused("its samples are out of order")
    if not all(SHORTEST_S <= sample_s <= LONGEST_S for sample_s in event.samples_s):
        raise refused("it has a sample that is not a time")


def _failure_of(event: EngineEnded | RequestFailed | RunFailed) -> Failure:
    """Return a recorded run's failure, which must not end the engine that replays it."""
    if isinstance(event, EngineEnded):
        return Failure(FailureKind.INTERNAL, describe_exit(event.exit_code))
    kind, message = event.failure.kind, clean_name(event.failure.message)
    return Failure(FailureKind.INTERNAL if kind is FailureKind.ENGINE_ENDED else kind, message)


def _request_of(started: RunStarted, end: Event) -> RunWorkload:
    """Return the request of a run; an older start does not say whether it was sustained."""
    is_sustained = end.sustained if isinstance(end, RunFinished) else started.sustained
    return RunWorkload(
        run_id=started.run_id,
        budget_s=started.budget_s,
        **{**started.parameters, "sustained": is_sustained},
    )


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


def header_of(
    pc: RecordedPc, described: EngineDescribed, recorded_at: str, program: str
) -> RecordingHeader:
    """Return the first line of a recording.

    Args:
        pc: the PC that records.
        described: the recorded engine.
        recorded_at: the present time in ISO 8601.
        program: this program with its version.
    """
    devices = ", ".join(dict.fromkeys(pc.cards)) or pc.processor
    place = f" with {short_name(pc.processor)}" if pc.cards else ""
    return RecordingHeader(
        title=f"{short_name(devices)}{place}, {recorded_at[:16].replace('T', ' ')}",
        device_name=devices,
        driver_version=pc.driver_version,
        torch_version=described.torch_version,
        recorded_at=recorded_at,
        source=program,
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
        own_table={},
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
        frames: the frames to keep, by the run's id (`core.race.kept_frames`); None leaves all out.
    """
    kept = frames or {}
    ours = [run for run in runs if is_recordable(run)]
    shown = described_for_others(described, {run.request.workload for run in ours})
    return encode_all([header, shown, *(event for run in ours for event in _events_of(run, kept))])


def is_recordable(run: Run) -> bool:
    """Return whether a run began on this PC; a replayed run already has a file."""
    return run.recording is None and run.has_begun


def _events_of(
    run: Run, kept: Mapping[str, Sequence[FramesOpened | FrameReady]]
) -> Iterator[Event]:
    request, result = run.request, run.result
    frames = deque(kept.get(request.run_id, ()))
    yield RunStarted(
        run_id=request.run_id,
        **(result or request).parameters,
        budget_s=request.budget_s,
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
    torch = header.torch_version or NOT_TOLD
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
    took = format_duration(recording.spent_s)
    return f"{runs} on {', '.join(devices.values())}, {took} at the original speed: {what}."
