"""``gpu-studio race``: the window's race in a terminal; same engine, same verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import RunPrinter
from gpu_studio.cli.command import Option, WrongUseError, command
from gpu_studio.cli.output import (
    TerminalTable,
    complain,
    now,
    painted,
    print_event,
    print_line,
    save,
)
from gpu_studio.cli.pc import check_device, engine_for
from gpu_studio.cli.runs import IN_DOUBT, RECORDING, Recorder, processor_name
from gpu_studio.core.benchmark.refusal import dtype_refusal
from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.device_name import CPU, address_at, address_there, is_cpu
from gpu_studio.core.devices.access import usable_cards
from gpu_studio.core.devices.adapters import usual_adapters
from gpu_studio.core.messages.race_messages import (
    MOST_CONTESTANTS,
    FrameReady,
    FramesOpened,
    Showing,
)
from gpu_studio.core.messages.run_messages import RunsEnded, RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.core.race.contestant import (
    Contestant,
    contestant_name,
    contestant_result,
    race_requests,
    usual_contestants,
)
from gpu_studio.core.race.picture_file import (
    DECODER,
    MEMORY_BYTES,
    NO_LOG,
    Photo,
    open_picture,
    refused,
)
from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S, LEARN, PICTURES
from gpu_studio.core.race.side import MOST_BYTES, RaceSide, RaceTrack, kept_frames
from gpu_studio.core.race.stage_view import Moment, picture_order
from gpu_studio.core.race.verdict import judge
from gpu_studio.core.units import (
    format_count,
    format_duration,
    format_percent,
    format_size,
    three_digits,
)
from gpu_studio.process.child_call import ChildCall
from gpu_studio.process.sleep_block import SleepBlock

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.verdict import Verdict

_COLUMNS = (
    ("steps", -17), ("time", -8), ("a second", -8), ("per step", -8),
)  # fmt: skip
# Of all contestants together: many of them keep fewer frames each.
_MOST_FRAME_BYTES = 256 << 20
_PAINTER = "gpu_studio.ui.race.painter"
_MOST_THREADS = 4096
_NAMES = [picture.name for picture in PICTURES]


@command(
    Option(
        "picture", "; ".join(f"{one.name}: {one.race.limit}" for one in PICTURES if one.race),
        choices=_NAMES, metavar="|".join(_NAMES),
    ),
    Option(
        "--picture", "with learn: the picture to learn, a PNG, JPEG, WebP, BMP or GIF",
        metavar="FILE", type=Path, dest="photo",
    ),
    Option("--size", "the size (default: the picture's own)", metavar="N", type=types.size),
    Option(
        "--device", "cpu, cuda:0, … (default: the CPU and the first card that PyTorch can use)",
        metavar="D[,D…]", type=types.devices,
    ),
    Option(
        "--threads", "CPU threads; each number is a contestant (default: all). The same number "
        "twice races the CPU against itself: the noise of this PC",
        metavar="N[,N…]", type=types.positive_numbers(_MOST_THREADS),
    ),
    Option(
        "--dtype", "float32, float16, …; each is a contestant",
        metavar="T[,T…]", type=types.dtypes, default=["float32"],
    ),
    *types.settings(RunWorkload, "race", time=DEFAULT_BUDGET_S),
    types.save(
        "write the result as a picture that can be raced again, or record every event so that any "
        "PC can replay it; repeatable",
        ".png", RECORDING, action="append", default=[],
    ),
    Option("--frames", "keep the pictures in the recording as well", action="store_true"),
)  # fmt: skip
def _race(options: argparse.Namespace, log_path: Path) -> int:
    """Let the CPU and your card draw the same picture, in turns, and see which is faster.

    Without a card, one CPU thread races all of them.
    """
    picture = next(one for one in PICTURES if one.name == options.picture)
    assert picture.race is not None
    if options.photo is not None and picture.name != LEARN.name:
        raise WrongUseError(f"{picture.name} learns no picture: choose {LEARN.name}.")
    photo = _opened(options.photo).picture if options.photo is not None else None
    saved = types.by_ending(options.save)
    if options.frames and RECORDING not in saved:
        raise WrongUseError(f"--frames is for a recording: name it, as --save race{RECORDING}.")
    engine = engine_for(options.device, log_path, is_json=options.json)
    with SleepBlock("A race"), engine as (work, described):
        contestants = _contestants(options, picture, described)
        recorder = Recorder(log_path, as_json=options.json, path=saved.get(RECORDING))
        recorder.begin(described, {picture.name}, {one.device for one in contestants})
        shows = ".png" in saved or options.frames
        requests = race_requests(
            picture,
            options.size or picture.race.default_size,
            contestants,
            options.time,
            photo=photo.identity if photo is not None else "",
            showing=Showing(frames=shows, photo=photo) if shows or photo is not None else None,
        )
        printer = _Printer(picture.size_text, len(requests))
        work.run([printer.begin(requests)], printer)
    sides, runs = printer.sides, printer.runs
    verdict = judge(picture, runs)
    for side in sides:
        side.label = contestant_name(side.run, runs)
    recorder.save(runs, kept_frames(sides) if options.frames else None)
    if (path := saved.get(".png")) is not None:
        race = Moment(picture, sides, [run.request.device for run in runs], verdict=verdict)
        order = picture_order(race, now(), processor_name(log_path), described.torch_version)
        save(path, painted(_PAINTER, order.encode()))
    _conclude(picture, runs, verdict, as_json=options.json)
    is_done = all(run.state is not RunState.FAILED for run in runs)
    return work.exit_status(is_done=is_done, in_doubt=verdict.trust.tone is not Tone.GOOD)


def _contestants(
    options: argparse.Namespace, picture: WorkloadDescription, described: EngineDescribed
) -> list[Contestant]:
    """Return the contestants in the order in which they were named."""
    for dtype in options.dtype:
        if refusal := dtype_refusal(picture, dtype):
            raise WrongUseError(refusal)
    pairs: list[tuple[str, int | None]] = [
        (address_at(described.pc, address_there(one.device)), one.threads)
        for one in usual_contestants(usable_cards(described), described.cpu_threads)
    ]
    if described.adapters:
        pairs = [(CPU, None), (usual_adapters(described.adapters)[0].address, None)]
    if options.device is not None or options.threads is not None:
        named = options.device or tuple(dict.fromkeys(device for device, _ in pairs))
        if options.threads and not any(map(is_cpu, named)):
            raise WrongUseError("A number of threads is only for the CPU: add cpu to --device.")
        counts = options.threads or (None,)
        pairs = [(one, count) for one in named for count in (counts if is_cpu(one) else (None,))]
    for device, _ in pairs:
        check_device(device, described)
    contestants = [
        Contestant(device=device, threads=threads, dtype=dtype)
        for device, threads in pairs
        for dtype in options.dtype
    ]
    if len(contestants) > MOST_CONTESTANTS:
        raise WrongUseError(
            f"A race has at most {MOST_CONTESTANTS} contestants, and these options make "
            f"{len(contestants)}: leave some out."
        )
    return contestants


class _Printer(RunPrinter):
    """The contestants of a race on their way.

    Args:
        size_text: how a size is written.
        count: of the contestants; many of them keep fewer frames each.
    """

    def __init__(self, size_text: str, count: int) -> None:
        super().__init__()
        self._size_text = size_text
        self._most_bytes = min(MOST_BYTES, _MOST_FRAME_BYTES // count)
        self.sides: list[RaceSide] = []

    def on_begun(self, run: Run) -> None:
        run.size_text = self._size_text
        self.sides.append(RaceSide("", run, RaceTrack(most_bytes=self._most_bytes)))

    def apply(self, event: Event) -> str:
        line = ""
        for number, side in enumerate(self.sides, 1):
            run = side.run
            if run.apply(event):
                side.track.add(event)
                phase, share = run.phase or "starting", format_percent(run.progress)
                line = f"{number}  {contestant_name(run)}: {phase} {share}"
        return line

    def as_json(self, event: Event) -> Event | None:
        return None if isinstance(event, (FramesOpened, FrameReady, RunsEnded)) else event

    def complaint(self, event: Event) -> str:
        return ""

    def end(self, last: Event) -> None:
        for run in self.runs:
            if run.failure is not None:
                complain(f"{contestant_name(run)}: {run.failure.message}")


def _conclude(
    picture: WorkloadDescription, runs: Sequence[Run], verdict: Verdict, *, as_json: bool
) -> None:
    if as_json:
        print_event(verdict.finished)
        return
    print_line(f"{picture.title}, {format_size(verdict.finished.size, picture.size_text)}")
    names = [contestant_name(run, runs) for run in runs]
    table = TerminalTable(
        (("contestant", max(len("contestant"), *map(len, names))), *_COLUMNS),
        ("per step", "a second"),
    )
    print_line(table.heading, style="dim")
    for name, run in zip(names, runs, strict=True):
        one = contestant_result(run)
        line = format_count(one.steps)
        if one.finish_steps is not None:
            line += f" of {format_count(one.finish_steps)}"
        pace = three_digits(one.steps / one.seconds) if one.seconds else "–"
        median = "–" if one.step_median_s is None else format_duration(one.step_median_s)
        table.print_row([name, line, format_duration(one.seconds), pace, median])
    if verdict.trust.tone is not Tone.GOOD:
        for doubt in verdict.trust.detail.splitlines():
            print_line(f"  {IN_DOUBT}{doubt}")
    for sentence in filter(None, (verdict.finished.sentence, verdict.reason)):
        print_line()
        print_line(sentence, style="bold")


def _opened(path: Path) -> Photo:
    photo = open_picture(path, ChildCall(DECODER, memory_bytes=MEMORY_BYTES, log_path=NO_LOG))
    if not isinstance(photo, Photo):
        raise refused(path, "it is the result of a race. Drop it on the window to race against it")
    return photo


COMMANDS = {"race": _race}
