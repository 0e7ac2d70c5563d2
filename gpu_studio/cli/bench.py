"""``gpu-studio bench``: the window's benchmark in a terminal, by the same engine and verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.answers import Interrupt, describe
from gpu_studio.cli.bench_recording import Recorder, check_place
from gpu_studio.cli.bench_request import plans
from gpu_studio.cli.bench_runs import BenchRuns
from gpu_studio.cli.screen import Progress, note, now, say
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WrongUseError
from gpu_studio.core.benchmark.export import to_csv, to_json, to_markdown, to_text
from gpu_studio.core.benchmark.verdict import crossover_sentences, same_kind, verdict
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.client import ProcessEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from gpu_studio.cli.bench_request import BenchRequest
    from gpu_studio.core.benchmark.history import History
    from gpu_studio.core.benchmark.runs import Run
    from gpu_studio.core.protocol import EngineDescribed, RunFinished

EXPORTS = (".csv", ".json", ".md", ".txt")
_ONE_DEVICE = "There is no crossover to look for: only one device was measured."


def run_bench(
    request: BenchRequest,
    log_path: Path,
    *,
    as_json: bool,
    kept: History | None = None,
    export_to: Path | None = None,
    record_to: Path | None = None,
) -> int:
    """Run everything that was asked for; return the exit status.

    Args:
        request: what was asked for.
        log_path: where the engine writes its log.
        as_json: print every event instead of a table.
        kept: where finished runs are kept; None for nowhere.
        export_to: a file for the results, whose ending says the format.
        record_to: a file for all events, to be replayed.

    Raises:
        WrongUseError: there is no such workload, or it does not run so.
        StudioError: no such device, no engine, or a file that cannot be written.
    """
    recorder = Recorder(log_path, as_json=as_json, path=record_to)

    def work(runs: BenchRuns, description: EngineDescribed) -> None:
        made = plans(request, description)
        first = [run for plan in made for run in plan.requests()]
        devices = {run.device for run in first}
        recorder.begin(description, {request.workload}, devices)
        runs.may_skip = request.devices is None and len(devices) > 1
        for plan in made:
            runs.make(plan)
        if export_to is not None:
            export(runs.runs, description, export_to)
        recorder.save(runs.runs)

    runs, interrupted = with_engine(work, log_path, as_json=as_json, kept=kept)
    _conclude(runs.results, request.is_sweep, as_json=as_json)
    return exit_status(runs, interrupted=interrupted)


def exit_status(runs: BenchRuns, *, interrupted: bool) -> int:
    """Return how all runs together went."""
    if interrupted:
        return INTERRUPTED
    return FAILED if runs.has_failed else DONE


def with_engine(
    work: Callable[[BenchRuns, EngineDescribed], None],
    log_path: Path,
    *,
    as_json: bool,
    kept: History | None = None,
) -> tuple[BenchRuns, bool]:
    """Do something with an engine of its own; return its runs, and whether Ctrl-C ended them.

    Raises:
        StudioError: the engine does not start; or what the work raises.
    """
    progress = Progress()
    engine = ProcessEngine(EngineEnvironment(), log_path=log_path)

    def keep(run: Run) -> None:
        if kept is not None:
            try:
                kept.keep(run, now())
            except StudioError as error:
                note(str(error))

    try:
        with Interrupt().heard() as interrupt:
            progress.show("Starting PyTorch …")
            description = describe(engine, interrupt)
            progress.clear()
            runs = BenchRuns(engine, interrupt, progress, as_json=as_json, finished=keep)
            runs.size_texts = {one.name: one.size_text for one in description.workloads}
            work(runs, description)
    finally:
        progress.clear()
        engine.close()
    return runs, interrupt.is_asked


def verdicts(results: Sequence[RunFinished]) -> Iterator[str]:
    """Yield the sentence about each kind of work."""
    for kind in _kinds(results):
        yield verdict(kind)


def export(runs: Sequence[Run], description: EngineDescribed, path: Path) -> None:
    """Write runs to a file in the format of its ending.

    Raises:
        StudioError: the file cannot be written.
    """
    made = {
        ".csv": lambda: to_csv(runs),
        ".json": lambda: to_json(runs, description, now()),
        ".md": lambda: to_markdown(runs),
        ".txt": lambda: to_text(runs),
    }
    try:
        # CSV brings its own ends of lines.
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(made[path.suffix.lower()]())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StudioError(
            FailureKind.NOT_SAVED, f"The results cannot be written to {path}: {reason}."
        ) from error


def check_export(path: Path) -> Path:
    """Return a path whose ending names a format, and to which a file can be written.

    Raises:
        WrongUseError: it names none; its folder is not there, or it is a folder itself.
    """
    if path.suffix.lower() not in EXPORTS:
        raise WrongUseError(
            f"“{path.name[:40]}” does not say a format: let it end in {', '.join(EXPORTS)}."
        )
    return check_place(path)


def _conclude(results: Sequence[RunFinished], is_sweep: bool, *, as_json: bool) -> None:
    """Say what the results come to; beside JSON only what the events do not say."""
    places: list[str] = []
    if is_sweep:
        for kind in _kinds(results):
            places += crossover_sentences(kind) or [_ONE_DEVICE]
    if as_json:
        for sentence in places:
            note(sentence)
        return
    for sentence in (*places, *verdicts(results)):
        say()
        say(sentence)


def _kinds(results: Sequence[RunFinished]) -> list[list[RunFinished]]:
    kinds: list[list[RunFinished]] = []
    for result in results:
        alike = next((kind for kind in kinds if same_kind(kind[0], result)), None)
        if alike is None:
            kinds.append([result])
        else:
            alike.append(result)
    return kinds
