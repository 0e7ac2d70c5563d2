"""``gpu-studio bench replay FILE``: recorded runs, shown as if they were made now."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import at_work
from gpu_studio.cli.bench_runs import BenchRuns, add_export, export, verdicts
from gpu_studio.cli.command import Command
from gpu_studio.cli.screen import note, print_bytes, print_line
from gpu_studio.core.benchmark.recording import read_recording, recording_sentences
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.protocol import encode_all
from gpu_studio.engine.recorded_engine import RecordedEngine

if TYPE_CHECKING:
    import argparse


def _run(options: argparse.Namespace, _log_path: Path) -> int:
    """Replay all runs of a recording, labeled as recorded; return the exit status."""
    recording = read_recording(options.file)
    described = recording.described or EngineDescribed(
        pid=0, torch_version=recording.header.torch_version
    )
    described = msgspec.structs.replace(described, recording=recording.label)
    write_line = note if options.json else print_line
    for sentence in recording_sentences(recording):
        write_line(sentence)
    if options.json:
        print_bytes(encode_all([recording.header, described]))
    else:
        print_line()
    engine = RecordedEngine(recording, speed=math.inf if options.at_once else 1.0)
    with at_work(engine) as work:
        runs = BenchRuns(work, as_json=options.json)
        runs.size_texts = {run.request.workload: run.size_text for run in recording.runs}
        runs.cards = {card.address: card for card in described.cards}
        runs.make_all([run.request for run in recording.runs])
    if options.export is not None:
        export(runs.runs, described, options.export)
    if not options.json:
        for sentence in verdicts(runs.results):
            print_line()
            print_line(sentence)
    # A failed run is part of the recording. It does not make the replay fail.
    return work.exit_status(is_done=True)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="a recording, or saved --json output"
    )
    parser.add_argument("--at-once", action="store_true", help="do not wait between events")
    add_export(parser)


PART = Command(
    help="replay recorded runs",
    about="Replay the runs in a recording as if they were made now, labeled as recorded. Nothing "
    "is kept.",
    run=_run,
    add_arguments=_add_arguments,
)
