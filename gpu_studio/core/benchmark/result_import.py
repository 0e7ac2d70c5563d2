"""Opens files with results: a standard run, a recording, a file of the history, or an export.

Nothing in a file is run. A file is accepted or refused as a whole. Its results are labeled as a
recording from then on, because they may come from another PC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import (
    LONGEST_NAME,
    SCHEMA,
    KeptRun,
    KeptTime,
    check_result,
    check_samples,
    clean_name,
    decode_json,
    decode_kept,
    read_results,
    refused,
    without_card,
)
from gpu_studio.core.benchmark.recording import decode_recording, is_recording
from gpu_studio.core.benchmark.standard_record import find_standard
from gpu_studio.core.messages.run_messages import RunFinished  # noqa: TC001  # msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.benchmark.standard_record import StandardRun
    from gpu_studio.core.messages.run_messages import RunWorkload

_MOST_RUNS = 1000


class _Probe(msgspec.Struct):
    """The fields that distinguish the kinds of files."""

    schema: int | None = None
    runs: msgspec.Raw = msgspec.Raw()


class _Run(msgspec.Struct):
    """The imported fields of an `export.ExportedRun`."""

    request: KeptTime
    result: RunFinished | None
    samples_s: tuple[float, ...]


class _Runs(msgspec.Struct):
    """The imported fields of an `export.ExportedRuns`."""

    exported_at: str
    runs: tuple[_Run, ...]


def open_results(
    path: Path, is_over: Callable[[], bool] = lambda: False
) -> StandardRun | Recording | list[KeptRun]:
    """Return what a file of results holds, whatever its name.

    Args:
        path: the user's file.
        is_over: returns whether the results are no longer needed.

    Raises:
        StudioError: the file is refused; the sentence says why.
    """
    standard = find_standard(path, is_over)
    return standard if standard is not None else _opened(path, is_over)


def _opened(path: Path, is_over: Callable[[], bool]) -> Recording | list[KeptRun]:
    content = read_results(path, is_over)
    if is_recording(content):
        return decode_recording(content, is_over)
    return _decoded(content, path.name)


def results_of(recording: Recording, imported_at: str) -> list[KeptRun]:
    """Return the results of a recording, labeled, ready for `history.History.add`."""
    made_at = recording.header.recorded_at or imported_at
    kept = [
        _kept(run.result, _time_of(run.request), run.samples_s, made_at)
        for run in recording.runs
        if run.result is not None
    ]
    if not kept:
        raise refused("it has no finished runs")
    return [_labelled(one, recording.label) for one in kept]


def _time_of(request: RunWorkload) -> KeptTime:
    return msgspec.convert(request, KeptTime, from_attributes=True)


def import_results(path: Path, imported_at: str) -> list[KeptRun]:
    """Return the results in a file, ready for `history.History.add`.

    Args:
        path: the user's file.
        imported_at: the present time in ISO 8601.

    Raises:
        StudioError: the file is refused; the sentence says why.
    """
    opened = _opened(path, lambda: False)
    return opened if isinstance(opened, list) else results_of(opened, imported_at)


def _decoded(content: bytes, file_name: str) -> list[KeptRun]:
    """Return the results in an export or a file of the history, labeled with the file's name."""
    label = clean_name(f"imported from {file_name}")
    probe = decode_json(content, _Probe)
    if bytes(probe.runs):
        kept = _from_export(content)
    elif probe.schema is not None:
        kept = [without_card(decode_kept(content))]
    else:
        raise refused("it has no GPU Studio results")
    if not kept:
        raise refused("it has no finished runs")
    return [_labelled(one, label) for one in kept]


def _labelled(kept: KeptRun, label: str) -> KeptRun:
    if kept.result.recording:
        return kept
    return msgspec.structs.replace(
        kept, result=msgspec.structs.replace(kept.result, recording=label[:LONGEST_NAME])
    )


def _from_export(content: bytes) -> list[KeptRun]:
    exported = decode_json(content, _Runs)
    if len(exported.runs) > _MOST_RUNS:
        raise refused(f"it has more than {_MOST_RUNS} runs")
    return [
        _kept(run.result, run.request, run.samples_s, exported.exported_at)
        for run in exported.runs
        if run.result is not None
    ]


def _kept(result: RunFinished, time: KeptTime, samples_s: Sequence[float], kept_at: str) -> KeptRun:
    import numpy as np  # 80 ms

    samples = np.array(samples_s, "<f8").tobytes()
    checked = check_result(result)
    check_samples(checked, samples)
    time.check_time()
    return KeptRun(
        schema=SCHEMA,
        kept_at=clean_name(kept_at)[:40],
        **msgspec.structs.asdict(time),
        result=checked,
        samples=samples,
    )
