"""The history: keeps, lists, names, deletes and imports runs, and overlays one on the plot.

A `TaskQueue` reads and writes the files: a slow disk does not block the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.comparability import Comparability, comparability_of
from gpu_studio.core.benchmark.history import FOLDER_NAME, History
from gpu_studio.core.benchmark.kept_run import encode_kept, run_of, without_card
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import counted, local_now
from gpu_studio.core.user_file import write_atomically
from gpu_studio.model.file_reading import FileReading, opening
from gpu_studio.model.kept_device import kept_card, kept_name
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.benchmark.history import HistoryEntry, HistoryList
    from gpu_studio.core.benchmark.kept_run import KeptRun
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio


# The newest runs: as many as the page shows in full. Each request for more doubles their number.
_PAGE = 20
_MOST_REFUSED = 10


class BenchmarkHistory(QObject):
    """The history in a folder, and the ghost: the kept run that overlays the live plot.

    Signals:
        contents_changed(): the list or the set of unsaved runs changed.
        ghost_changed(): the overlay changed or was removed.
        notified(Notice): the outcome of an action.

    Attributes:
        ghost: the kept run that overlays the live plot, and its label.
    """

    contents_changed = Signal()
    ghost_changed = Signal()
    notified = Signal(object)

    def __init__(self, studio: Studio, benchmark: Benchmark, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder, self._board = studio.data_folder, studio.board
        self._opened: History | None = None
        self._contents: HistoryList | None = None
        self._trouble = ""
        self.ghost: tuple[Run, str] | None = None
        self._kept: set[str] = set()
        self._most = _PAGE
        self._files = TaskQueue(self)
        self._files.failed.connect(self._fail)
        self._reading = FileReading(self)  # a drive that hangs must not hold the history
        self._reading.succeeded.connect(self._add_imported)
        self._reading.failed.connect(self._fail)
        benchmark.run_changed.connect(self._run_changed)
        studio.closing.connect(self._reading.close)
        studio.closing.connect(self._files.close)

    @property
    def _history(self) -> History:
        """The folder's history; created on first use, not with the window."""
        if self._opened is None:
            self._opened = History(self._folder / FOLDER_NAME if self._folder else None)
        return self._opened

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """The kept runs, newest first; empty until they are read."""
        return self._contents.entries if self._contents else ()

    def device_name(self, entry: HistoryEntry) -> str:
        """Return the name of a kept run's device, as this PC knows it now."""
        return kept_name(entry.header, self._board, without_maker(entry.header.result.device_name))

    @property
    def refused(self) -> list[str]:
        """The unreadable files in the folder, each with the reason."""
        refused = self._contents.refused if self._contents else ()
        sentences = [f"{file.file_name}: {file.reason}" for file in refused[:_MOST_REFUSED]]
        if len(refused) > _MOST_REFUSED:
            sentences.append(
                f"{counted(len(refused) - _MOST_REFUSED, 'more file')} cannot be read."
            )
        return sentences

    @property
    def unread_count(self) -> int:
        """The number of older files that are not read yet."""
        return self._contents.unread_count if self._contents else 0

    @property
    def trouble(self) -> str:
        """Why runs are only in memory; empty if all are saved."""
        count = len(self._history.pending) if self._opened else 0
        if not count or not self._trouble:
            return ""
        waiting = "1 run is" if count == 1 else f"{count} runs are"
        return f"{self._trouble} {waiting} only in memory and lost if you close this window."

    @property
    def is_busy(self) -> bool:
        """Whether files are being read or written."""
        return self._files.is_busy or self._reading.is_reading

    def refresh(self) -> None:
        """Read the shown part of the list again."""
        most = self._most
        self._files.add(
            lambda: self._history.contents(most, lambda: self._files.is_closed),
            self._show_contents,
            keeps=False,
        )

    def show_more(self) -> None:
        """Read older runs as well, as many as are shown."""
        self._most *= 2
        self.refresh()

    def rename(self, key: str, name: str) -> None:
        """Give a kept run a name."""
        self._files.add(lambda: self._history.rename(key, name), self._changed)

    def delete(self, key: str) -> None:
        """Delete a kept run."""
        self._files.add(lambda: self._history.delete(key), self._changed)

    def import_file(self, path: Path) -> None:
        """Import the results in a file from elsewhere, as the terminal command does."""
        from gpu_studio.core.benchmark.result_import import import_results  # numpy: 80 ms

        self.notified.emit(Notice(opening(path)))
        self._reading.read(lambda is_over: import_results(path, local_now(), is_over))

    def export_file(self, key: str, path: Path) -> None:
        """Write a kept run to a file that another PC can import."""

        def write() -> Path:
            kept = self._history.load(key)
            try:
                write_atomically(path, encode_kept(without_card(kept)))
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise StudioError(
                    FailureKind.NOT_SAVED, f"Could not write {path}: {reason}."
                ) from error
            return path

        self._files.add(write, self._exported)

    def save_again(self) -> None:
        """Try to save the runs that are only in memory."""
        self._files.add(self._history.save_pending, self._saved)

    def race(self, entry: HistoryEntry, result: RunFinished | None) -> None:
        """Overlay a kept run on the live plot, unless it is not comparable.

        Args:
            entry: the kept run.
            result: the shown result; None before the first run has finished.
        """
        found = self.comparability(entry, result)
        if found.is_comparable:
            self._files.add(lambda: self._history.load(entry.key), self._loaded, keeps=False)
        else:
            self.notified.emit(Notice(found.sentence, Tone.FAILURE))

    def comparability(self, entry: HistoryEntry, result: RunFinished | None) -> Comparability:
        """Return whether a kept run is comparable with a result; without a result it is."""
        return comparability_of(result, entry.header.result) if result else Comparability()

    def end_race(self) -> None:
        """Remove the overlay."""
        if self.ghost is not None:
            self.ghost = None
            self.ghost_changed.emit()

    # ── outcomes ─────────────────────────────────────────────────────────────────────────────

    def _run_changed(self, run: Run) -> None:
        run_id = run.request.run_id
        if run.result is None or run_id in self._kept:
            return
        self._kept.add(run_id)
        if run.recording is None:  # a recording already has a file, and is not from this PC
            now = local_now()
            self._files.add(lambda: self._history.keep(run, now), self._changed)
        self._look_at_ghost(run.result)

    def _look_at_ghost(self, result: RunFinished) -> None:
        """Remove the overlay if the new result did other work, and say why."""
        if self.ghost is None or self.ghost[0].result is None:
            return
        found = comparability_of(result, self.ghost[0].result)
        if not found.is_comparable:
            self.notified.emit(Notice(f"Overlay removed. {found.sentence}"))
            self.end_race()

    def _changed(self, _answer: object) -> None:
        self.refresh()

    def _show_contents(self, contents: HistoryList) -> None:
        self._contents = contents
        self.contents_changed.emit()

    def _add_imported(self, imported: list[KeptRun]) -> None:
        def add() -> list[KeptRun]:
            for kept in imported:
                self._history.add(kept)
            return imported

        self._files.add(add, self._imported)

    def _imported(self, imported: list[KeptRun]) -> None:
        result = imported[0].result
        what = f"{result.workload} on {result.device_name}"
        if len(imported) > 1:
            what = f"{len(imported)} results, the first is {what}"
        self.notified.emit(Notice(f"Imported: {what}. Label: “{result.recording}”."))
        self.refresh()

    def _exported(self, path: Path) -> None:
        self.notified.emit(Notice(f"Saved as {path}"))

    def _saved(self, count: int) -> None:
        self._trouble = ""
        self.notified.emit(Notice(f"{count} {'run' if count == 1 else 'runs'} saved."))
        self.refresh()

    def _loaded(self, kept: KeptRun) -> None:
        run = run_of(kept)
        run.card = kept_card(kept, self._board)
        self.ghost = (run, _ghost_label(kept))
        self.ghost_changed.emit()
        self.notified.emit(Notice("Shown on the live plot."))

    def _fail(self, failure: Failure) -> None:
        mistake = failure.message
        if failure.kind is FailureKind.INTERNAL:
            mistake = f"The history failed: {mistake}"
        if self._history.pending:
            self._trouble = mistake
        self.notified.emit(Notice(mistake, Tone.FAILURE))
        if self._contents is None or self._history.pending:
            self.refresh()


def _ghost_label(kept: KeptRun) -> str:
    name, recording = kept.result.device_name, kept.result.recording
    if not recording:
        return kept.name or f"{name}, {kept.kept_at[:10]}"
    if kept.name or short_name(name) not in recording:
        return f"{kept.name or name}, recorded: {recording}"
    return f"recorded: {recording}"
