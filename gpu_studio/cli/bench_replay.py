"""``gpu-studio bench --replay FILE``: recorded runs, shown as if they were made now."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import Interrupt
from gpu_studio.cli.bench import BenchRuns, export, verdicts
from gpu_studio.cli.screen import Progress, note, say, say_bytes
from gpu_studio.cli.status import DONE, INTERRUPTED
from gpu_studio.core.benchmark.recording import read_recording, recording_sentences
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.protocol import encode_all
from gpu_studio.engine.recorded_engine import RecordedEngine

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.benchmark.recording import Recording


def run_replay(path: Path, *, at_once: bool, as_json: bool, export_to: Path | None) -> int:
    """Replay all runs of a recording, labeled as recorded; return the exit status. Nothing is kept.

    Args:
        path: the recording.
        at_once: do not wait between events.
        as_json: print the events instead of a table.
        export_to: a file for the results; its extension is the format.

    Raises:
        StudioError: the file is refused, or the results cannot be written.
    """
    recording = read_recording(path)
    described = recording.described or EngineDescribed(
        pid=0, torch_version=recording.header.torch_version
    )
    described = msgspec.structs.replace(described, recording=recording.label)
    tell = note if as_json else say
    for sentence in recording_sentences(recording):
        tell(sentence)
    if as_json:
        say_bytes(encode_all([recording.header, described]))
    else:
        say()
    with Interrupt().heard() as interrupt:
        runs = _replayed(recording, interrupt, math.inf if at_once else 1.0, as_json=as_json)
    if export_to is not None:
        export(runs.runs, described, export_to)
    if not as_json:
        for sentence in verdicts(runs.results):
            say()
            say(sentence)
    # A failed run is part of the recording. It does not make the replay fail.
    return INTERRUPTED if interrupt.is_asked else DONE


def _replayed(
    recording: Recording, interrupt: Interrupt, speed: float, *, as_json: bool
) -> BenchRuns:
    progress = Progress()
    engine = RecordedEngine(recording, speed=speed)
    try:
        runs = BenchRuns(engine, interrupt, progress, as_json=as_json)
        runs.size_texts = {run.request.workload: run.size_text for run in recording.runs}
        runs.make_all([run.request for run in recording.runs])
    finally:
        progress.clear()
        engine.close()
    return runs
