"""``gpu-studio race``: the window's race in a terminal; same engine, same verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import answers, describe, own_engine
from gpu_studio.cli.bench import addresses
from gpu_studio.cli.bench_recording import Recorder
from gpu_studio.cli.screen import Progress, TerminalTable, note, now, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WrongUseError
from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.race_messages import (
    MOST_CONTESTANTS,
    FrameReady,
    FramesOpened,
    Showing,
)
from gpu_studio.core.messages.run_messages import MOST_AT_ONCE, RunAtOnce, RunsEnded
from gpu_studio.core.protocol import encode
from gpu_studio.core.race.contestant import (
    Contestant,
    contestant_name,
    contestant_result,
    race_requests,
    usual_contestants,
)
from gpu_studio.core.race.frame_file import read_frame
from gpu_studio.core.race.kept_frames import kept_frames
from gpu_studio.core.race.picture_order import picture_order
from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.core.race.race_track import MOST_BYTES, RaceFrame, RaceTrack
from gpu_studio.core.race.verdict import judge
from gpu_studio.core.units import format_count, format_duration, format_percent, format_size
from gpu_studio.hardware.cpu import cpu_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.cli.answers import Interrupt
    from gpu_studio.core.benchmark.history import History
    from gpu_studio.core.engine import Engine
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadDescription
    from gpu_studio.core.race.verdict import Verdict

_COLUMNS = (("steps", -9), ("time", -8), ("per step", -8), ("finish line", 20))
_LEAST_NAME = 34
# Of all contestants together: many of them keep fewer frames each.
_MOST_FRAME_BYTES = 256 << 20
_CARD_PAINTER = "gpu_studio.ui.race.share_card"
_LONGEST_PAINTING_S = 60.0


class RaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The race to run; None means the default."""

    picture: str
    size: int | None = None
    devices: tuple[str, ...] | None = None
    threads: tuple[int, ...] | None = None
    dtypes: tuple[str, ...] = ("float32",)
    own_kernel: bool = False
    together: bool = False
    budget_s: float


def run_race(
    request: RaceRequest,
    log_path: Path,
    *,
    as_json: bool,
    kept: History | None = None,
    save_to: Path | None = None,
    record_to: Path | None = None,
    records_frames: bool = False,
) -> int:
    """Run a race; return the exit status.

    Args:
        request: the race.
        log_path: the engine's log file.
        as_json: print every event, and the verdict as the last one.
        kept: the history that keeps finished runs; None keeps none.
        save_to: the PNG file for the result; None saves none.
        record_to: a file for all events, which can be replayed; None writes none.
        records_frames: whether that file also keeps frames.

    Raises:
        WrongUseError: the picture does not support these options.
        StudioError: no such device, no engine, or the file cannot be written.
    """
    picture = next(one for one in PICTURES if one.name == request.picture)
    with own_engine(log_path) as (engine, interrupt), Progress() as progress:
        progress.show("Starting PyTorch …")
        described = describe(engine, interrupt)
        progress.clear()
        contestants = _contestants(request, picture, described)
        if request.own_kernel:
            contestants += _with_own_kernel(contestants, described)
        _check_count(len(contestants), together=request.together)
        recorder = Recorder(log_path, as_json=as_json, path=record_to)
        recorder.begin(described, {picture.name}, {one.device for one in contestants})
        race = _Race(engine, interrupt, progress, picture, as_json=as_json)
        race.run(request, contestants, shows=save_to is not None or records_frames)
    verdict = judge(picture, race.runs)
    _keep(race.runs, kept)
    recorder.save(race.runs, kept_frames(race.runs, race.tracks) if records_frames else None)
    if save_to is not None:
        _save(race, verdict, described, save_to)
    _conclude(picture, race.runs, verdict, as_json=as_json)
    if interrupt.is_asked:
        return INTERRUPTED
    return FAILED if any(run.state is RunState.FAILED for run in race.runs) else DONE


def _check_count(count: int, *, together: bool) -> None:
    """Raise `WrongUseError` for more contestants than a race can have."""
    most = MOST_AT_ONCE if together else MOST_CONTESTANTS
    if count > most:
        at_once = " that run at the same time" if together else ""
        raise WrongUseError(
            f"A race has at most {most} contestants{at_once}, and these options make {count}: "
            "leave some out."
        )
    if together and count < 2:
        raise WrongUseError("A single contestant has nothing to run together with: name two.")


def _contestants(
    request: RaceRequest, picture: WorkloadDescription, described: EngineDescribed
) -> list[Contestant]:
    """Return the contestants in the order in which they were named."""
    there_are = addresses(described)
    for dtype in request.dtypes:
        if dtype not in picture.dtypes:
            raise WrongUseError(
                f"{picture.name} does not run in {dtype}: choose {', '.join(picture.dtypes)}."
            )
    named = request.devices
    if named is None:
        usual = usual_contestants(there_are[1:], described.cpu_threads)
        if request.threads is None:
            return [
                msgspec.structs.replace(one, dtype=dtype)
                for one in usual
                for dtype in request.dtypes
            ]
        named = tuple(dict.fromkeys(one.device for one in usual))
    for device in named:
        if device not in there_are:
            reason = f" {described.cuda_reason}" if described.cuda_reason else ""
            raise StudioError(
                FailureKind.NO_SUCH_DEVICE, f"There is no {device[:20]} here.{reason}"
            )
    if request.threads and "cpu" not in named:
        raise WrongUseError("A number of threads is only for the CPU: add cpu to --device.")
    return [
        Contestant(device=device, threads=threads, dtype=dtype)
        for device in named
        for threads in ((request.threads or (None,)) if is_cpu(device) else (None,))
        for dtype in request.dtypes
    ]


def _with_own_kernel(
    contestants: Sequence[Contestant], described: EngineDescribed
) -> list[Contestant]:
    """Return each card's contestants again, with the custom kernel."""
    cards = [one for one in contestants if not is_cpu(one.device)]
    if not cards:
        reason = described.cuda_reason or "Name a card with --device."
        raise StudioError(
            FailureKind.NO_SUCH_DEVICE, f"The custom CUDA kernel needs a card. {reason}"
        )
    return [msgspec.structs.replace(one, own_kernel=True) for one in cards]


class _Race:
    """The runs of a race.

    Args:
        engine: makes the runs.
        interrupt: Ctrl-C stops the present run, and no other starts.
        progress: the progress line.
        picture: what is drawn.
        as_json: print every event.
    """

    def __init__(
        self,
        engine: Engine,
        interrupt: Interrupt,
        progress: Progress,
        picture: WorkloadDescription,
        *,
        as_json: bool,
    ) -> None:
        self._engine, self._interrupt, self._progress = engine, interrupt, progress
        self._as_json = as_json
        self.picture = picture
        self.runs: list[Run] = []
        self.tracks: list[RaceTrack] = []
        self._most_bytes = MOST_BYTES

    def run(self, request: RaceRequest, contestants: Sequence[Contestant], *, shows: bool) -> None:
        """Let the contestants run: in turn, or together for show.

        Args:
            request: size and time budget.
            contestants: in their order.
            shows: whether to keep the frames.
        """
        assert self.picture.race is not None
        requests = race_requests(
            self.picture,
            request.size or self.picture.race.default_size,
            contestants,
            request.budget_s,
            showing=Showing() if shows else None,
            at_once=request.together,
        )
        self._most_bytes = min(MOST_BYTES, _MOST_FRAME_BYTES // len(requests))
        if request.together:
            self._ask(RunAtOnce(runs=tuple(requests)), requests)
            return
        for one in requests:
            if self._interrupt.is_asked:
                return
            self._ask(one, [one])

    def _ask(self, request: Request, requests: Sequence[RunWorkload]) -> None:
        """Ask the engine for runs, and follow them to their end."""
        runs = [Run(one) for one in requests]
        for run in runs:
            run.size_text = self.picture.size_text
            self.runs.append(run)
            self.tracks.append(RaceTrack(most_bytes=self._most_bytes))
        for event in answers(self._engine, request, self._interrupt):
            for run, track in zip(self.runs, self.tracks, strict=True):
                if run.apply(event):
                    self._take(event, run, track)
            # The file of the frames goes with the engine, so its name is of no use to a reader.
            if self._as_json and not isinstance(event, (FramesOpened, FrameReady, RunsEnded)):
                say_bytes(encode(event))
        self._progress.clear()
        for run in runs:
            if run.failure is not None:
                note(f"{contestant_name(run)}: {run.failure.message}")

    def _take(self, event: Event, run: Run, track: RaceTrack) -> None:
        if isinstance(event, FrameReady) and run.opened is not None:
            picture = read_frame(Path(run.opened.path), event.number)
            track.add(RaceFrame.of(event, picture))
        self._progress.show(
            f"{self.runs.index(run) + 1}  {contestant_name(run)}: {run.phase or 'starting'} "
            f"{format_percent(run.progress)}"
        )


def _conclude(
    picture: WorkloadDescription, runs: Sequence[Run], verdict: Verdict, *, as_json: bool
) -> None:
    if as_json:
        say_bytes(encode(verdict.finished))
        return
    traits = picture.race
    assert traits is not None
    say(f"{picture.title}, {format_size(verdict.finished.size, picture.size_text)}")
    names = [contestant_name(run, runs) for run in runs]
    table = TerminalTable((("contestant", max(_LEAST_NAME, *map(len, names))), *_COLUMNS))
    say(table.heading)
    for name, run in zip(names, runs, strict=True):
        one = contestant_result(run)
        outcome = run.result.outcome if run.result else None
        line = f"{traits.finish:g} {traits.unit}"
        if outcome is None or not outcome.reached:
            line = "not reached" if outcome is None else f"{outcome.measure:.3g} of {line}"
        median = "–" if one.step_median_s is None else format_duration(one.step_median_s)
        say(
            table.row(
                [name, format_count(one.steps), format_duration(one.seconds),
                 median, line]
            )
        )  # fmt: skip
    for doubt in verdict.doubts:
        say(f"  in doubt: {doubt}")
    for sentence in filter(None, (verdict.finished.sentence, verdict.reason)):
        say()
        say(sentence)


def _keep(runs: Sequence[Run], kept: History | None) -> None:
    for run in runs:
        if run.result is None or kept is None or run.is_for_show:
            continue
        try:
            kept.keep(run, now())
        except StudioError as error:
            note(str(error))


def _save(race: _Race, verdict: Verdict, described: EngineDescribed, path: Path) -> None:
    """Save the result as a picture; a child paints it, because Qt is not in this process.

    Raises:
        StudioError: it cannot be painted or written.
    """
    order = picture_order(
        race.picture,
        verdict,
        race.runs,
        race.tracks,
        made_at=now(),
        cpu_name=cpu_name(),
        torch_version=described.torch_version,
    )
    command = [sys.executable, "-m", _CARD_PAINTER, str(path.absolute())]
    try:
        painter = subprocess.run(
            command,
            input=msgspec.json.encode(order),
            capture_output=True,
            timeout=_LONGEST_PAINTING_S,
            cwd=_HOME,
            env={**os.environ, "PYTHONUTF8": "1"},
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StudioError(
            FailureKind.NOT_SAVED, f"The picture could not be painted: {error}"
        ) from error
    if painter.returncode:
        last = painter.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StudioError(FailureKind.NOT_SAVED, last or "The picture could not be painted.")
    note(f"Saved as {path}.")


# "python -m" imports from the present folder first, which may have a file named like a library.
_HOME = Path(__file__).resolve().parent.parent.parent
