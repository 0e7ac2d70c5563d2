"""The lists of ``gpu-studio bench``: the workloads, and the history of kept runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import describe_alone
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.screen import note, now, say, say_bytes
from gpu_studio.cli.status import DONE, WrongUseError
from gpu_studio.core.benchmark.history import FOLDER_NAME, History
from gpu_studio.core.benchmark.result_import import import_results
from gpu_studio.core.moments import shown_moment
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpu_studio.core.benchmark.history import HistoryEntry
    from gpu_studio.core.messages.run_messages import WorkloadDescription

_NAME_WIDTH = 16


def history() -> History:
    """Return the history in the user's data folder, which the window shares."""
    return History(data_folder() / FOLDER_NAME)


def list_workloads(log_path: Path, *, as_json: bool) -> int:
    """Print the workloads, and why some cannot run here; return the exit status."""
    workloads = describe_alone(log_path).workloads
    if as_json:
        say_bytes(msgspec.json.encode({"workloads": workloads}) + b"\n")
        return DONE
    for workload in workloads:
        for line in workload_lines(workload):
            say(line)
    return DONE


def workload_lines(workload: WorkloadDescription) -> Iterator[str]:
    """Yield the lines that describe a workload."""
    indent = " " * _NAME_WIDTH
    yield f"{workload.name:<{_NAME_WIDTH}}{workload.title}: {workload.sentence}"
    if workload.skipped:
        yield f"{indent}cannot run here: {workload.skipped}"
    sizes = ", ".join(format_size(size, workload.size_text) for size in workload.sizes)
    yield f"{indent}{workload.size_title}: {sizes}"
    yield f"{indent}{', '.join(workload.dtypes)}"
    for option in workload.options:
        yield f"{indent}--option {option.name}={'|'.join(option.values)}  {option.sentence}"


def list_history(kept: History, *, as_json: bool) -> int:
    """Print the kept runs, newest first; return the exit status.

    Raises:
        StudioError: the folder cannot be read.
    """
    contents = kept.contents()
    if as_json:
        say_bytes(msgspec.json.encode(contents) + b"\n")
        return DONE
    for entry in contents.entries:
        say(_entry_line(entry))
    if not contents.entries:
        say(f"No runs kept yet in {kept.folder}.")
    for refusal in contents.refused:
        note(f"{refusal.file_name}: {refusal.reason}")
    return DONE


def import_file(kept: History, path: Path) -> int:
    """Import the results in a file into the history; return the exit status.

    Raises:
        StudioError: the file is refused, or the results cannot be saved.
    """
    imported = import_results(path, now())
    for one in imported:
        kept.add(one)
    noun = "result" if len(imported) == 1 else "results"
    say(f"{len(imported)} {noun} kept, labelled “{imported[0].result.recording}”.")
    return DONE


def rename(kept: History, key: str, name: str) -> int:
    """Name a kept run, or remove its name if `name` is empty; return the exit status.

    Raises:
        WrongUseError: the key matches no kept run, or several.
        StudioError: the name cannot be saved.
    """
    entry = _find(kept, key)
    kept.rename(entry.key, name)
    say(_entry_line(_find(kept, entry.key)))
    return DONE


def delete(kept: History, keys: Sequence[str]) -> int:
    """Delete kept runs, all or none; return the exit status.

    Raises:
        WrongUseError: a key matches no kept run, or several.
        StudioError: a file cannot be deleted.
    """
    entries = [_find(kept, key) for key in keys]
    for entry in entries:
        kept.delete(entry.key)
        say(f"deleted: {_entry_line(entry)}")
    return DONE


def _find(kept: History, key: str) -> HistoryEntry:
    """Return the run with this key; the end of a key is enough if it is unique."""
    found = [entry for entry in kept.contents().entries if key and entry.key.endswith(key)]
    if len(found) == 1:
        return found[0]
    shown = key[:40]
    if found:
        raise WrongUseError(f"“{shown}” matches {len(found)} runs: give more of the key.")
    raise WrongUseError(f"No kept run has the key “{shown}”; “bench --history” shows the keys.")


def _entry_line(entry: HistoryEntry) -> str:
    header, result = entry.header, entry.header.result
    what = (
        entry.key,
        shown_moment(header.kept_at),
        result.workload,
        format_size(result.size, result.size_text),
        result.dtype,
        result.device_name,
        *(f"{name}={value}" for name, value in result.options.items()),
        *(["cold cache"] if result.cache == "cold" else []),
        *(["with copies"] if result.transfers else []),
        *(["sustained"] if result.sustained else []),
        format_duration(result.median_s),
        *([f"“{header.name}”"] if header.name else []),
        *([f"recorded: {result.recording}"] if result.recording else []),
    )
    return "  ".join(what)
