"""``gpu-studio bench history`` and ``import``: the kept runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.screen import note, now, print_json, print_line
from gpu_studio.core.benchmark.history import FOLDER_NAME, History, HistoryEntry
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.result_import import import_results
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import StudioError
from gpu_studio.core.units import format_duration, format_size, shown_moment


def history() -> History:
    """Return the history in the user's data folder, which the window shares."""
    return History(data_folder() / FOLDER_NAME)


def keep_run(into: History, run: Run) -> None:
    """Keep a finished run; a folder that refuses it is only worth a note."""
    try:
        into.keep(run, now())
    except StudioError as error:
        note(str(error))


def _list(options: argparse.Namespace, _log_path: Path) -> int:
    """Print the kept runs, newest first; return the exit status."""
    runs = history()
    contents = runs.contents()
    if options.json:
        print_json("history", contents)
        return DONE
    for entry in contents.entries:
        print_line(_entry_line(entry))
    if not contents.entries:
        print_line(f"No runs kept yet in {runs.folder}.")
    for refusal in contents.refused:
        note(f"{refusal.file_name}: {refusal.reason}")
    return DONE


def _import(options: argparse.Namespace, _log_path: Path) -> int:
    """Import the results in a file into the history; return the exit status."""
    imported = import_results(options.file, now())
    runs = history()
    for one in imported:
        runs.add(one)
    noun = "result" if len(imported) == 1 else "results"
    print_line(f"{len(imported)} {noun} kept, labelled “{imported[0].result.recording}”.")
    return DONE


def _entry_line(entry: HistoryEntry) -> str:
    header, result = entry.header, entry.header.result
    what = (
        entry.key,
        shown_moment(header.kept_at),
        result.workload,
        format_size(result.size, result.size_text),
        result.dtype,
        result.device_name,
        *filter(None, [mode_words(result)]),
        format_duration(result.median_s),
        *([f"“{header.name}”"] if header.name else []),
        *([f"recorded: {result.recording}"] if result.recording else []),
    )
    return "  ".join(what)


_FILE = Option("file", "results from another PC, or an export", metavar="FILE", type=Path)
PARTS = {
    "history": Command(
        help="list the kept runs",
        about="List the kept runs, newest first. Each is a file of its own, named by its key.",
        run=_list,
        json=JSON_OBJECT,
    ),
    "import": Command(
        help="add the results in a file to the kept runs",
        about="Add the results in a file to the kept runs, labeled with where they are from.",
        run=_import,
        options=(_FILE,),
        json="",
    ),
}
