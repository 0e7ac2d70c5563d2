"""The history: kept runs, recordings and other PCs' files in one list; rows selected are compared.

A `TaskQueue` reads and writes the folder: a slow disk does not block the window.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.comparison import (
    MOST_SIDES,
    Side,
    compared_works,
    difference,
    facts_of,
    headline,
    sides_of,
    table_rows,
    trust_of_sides,
    work_of,
    work_words,
)
from gpu_studio.core.benchmark.history import FOLDER_NAME, History, HistoryList
from gpu_studio.core.benchmark.kept_run import encode_kept, run_of, without_card
from gpu_studio.core.benchmark.recording import Recording, recording_sentences
from gpu_studio.core.benchmark.reference import experiment, experiment_rows, published_table
from gpu_studio.core.benchmark.run import interval_words
from gpu_studio.core.benchmark.standard_record import FOLDER_NAME as STANDARD_FOLDER
from gpu_studio.core.benchmark.standard_record import StandardFolder, StandardRun
from gpu_studio.core.benchmark.trust import trust_sign
from gpu_studio.core.device_name import is_cpu, name_at, pc_of
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.core.failure import Failure, FailureKind, StudioError, failure_from
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.texts import file_name
from gpu_studio.core.units import counted, format_duration, local_now, moment_order, shown_moment
from gpu_studio.core.user_file import write_atomically
from gpu_studio.model.benchmark.recording import OWN_PACE, RecordingPlayer
from gpu_studio.model.latest import Latest, opening
from gpu_studio.model.page_model import PageModel
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gpu_studio.core.benchmark.history import HistoryEntry
    from gpu_studio.core.benchmark.kept_run import KeptRun
    from gpu_studio.core.benchmark.reference import PublishedTable
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio

    _Found = StandardRun | Recording | list[KeptRun] | Failure
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.comparison import ComparedWork
    from gpu_studio.core.benchmark.kept_run import KeptHeader
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.devices.device_board import DeviceBoard

# The newest runs; each request for more doubles their number.
_PAGE = 20
_MOST_REFUSED = 10
_EMPTY = "No runs yet. Every finished run is kept here."
_HINT = "Select two or more rows to compare them: Ctrl+click adds a row."


class HistoryChoices(msgspec.Struct, frozen=True):
    """``selected`` are the keys of the selected rows, ``pace`` how fast a recording is played."""

    selected: tuple[str, ...] = ()
    pace: float = OWN_PACE


_UNCHECKED = "Its file has no checksum that would show damage."


class HistoryModel(PageModel):
    """The kept runs in a folder, and the opened files.

    Signals:
        begun(): runs begin in Run: those of a recording, or of the published test.
        notified(Notice): what became of an action.
        overlaid((str, Run)): a kept run is to be drawn in Run's plot under this label.

    Attributes:
        rows: the list by the rows' keys: opened files, this PC's last standard run, kept runs.
        notice: what became of the last action.
        player: plays a recording.
        published: the table of the GT 1030 experiment; None if its file is missing.
    """

    begun = Signal()
    notified = Signal(object)
    overlaid = Signal(object)

    def __init__(self, studio: Studio, benchmark: Benchmark, parent: QObject | None = None) -> None:
        super().__init__(HistoryChoices(), parent)
        self._studio, self._benchmark, self._board = studio, benchmark, studio.board
        folder = studio.data_folder
        self._history = History(folder / FOLDER_NAME if folder is not None else None)
        self._standard = StandardFolder(folder / STANDARD_FOLDER if folder is not None else None)
        self._contents = HistoryList((), ())
        self._own: StandardRun | None = None
        self._opened: list[StandardRun | Recording] = []
        self.rows: dict[str, HistoryRow] = {}
        self._compared: Compared | None = None
        self._is_asking = False
        self.notice = Notice()
        self.player = RecordingPlayer(studio, benchmark, self)
        self.published: PublishedTable | None = None
        with contextlib.suppress(MissingResourceError):
            self.published = published_table()
        self._most = _PAGE
        self._files = TaskQueue(self)
        self._files.failed.connect(self._on_failed)
        self._waiting: dict[Path, None] = {}
        self._reading = Latest(self)  # a drive that hangs must not hold the history
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self._on_read)
        self._reading.failed.connect(self._on_failed)
        benchmark.run_ended.connect(self._on_run_ended)
        self.follow(benchmark.plan_changed, studio.board.changed, studio.session.engine_described)
        studio.closing.connect(self._reading.close)
        studio.closing.connect(self._files.close)

    # ── the list ─────────────────────────────────────────────────────────────────────────────

    @property
    def entries(self) -> tuple[HistoryEntry, ...]:
        """The kept runs, newest first; empty until they are read."""
        return self._contents.entries

    @property
    def refused(self) -> str:
        """The unreadable files in the folder, a line each with the reason."""
        refused = self._contents.refused
        lines = [f"{file.file_name}: {file.reason}" for file in refused[:_MOST_REFUSED]]
        if len(refused) > _MOST_REFUSED:
            more = counted(len(refused) - _MOST_REFUSED, "more file")
            lines.append(f"{more} cannot be read.")
        return "\n".join(lines)

    @property
    def unread_count(self) -> int:
        """The number of older files that are not read yet."""
        return self._contents.unread_count

    @property
    def is_busy(self) -> bool:
        """Whether files are being read or written."""
        return self._files.is_busy or self._reading.is_busy

    def on_seen(self) -> None:
        """Save what could not be saved, and read the folder, where others may have written."""
        self._files.add(self._history.save_waiting)
        self.refresh()

    def refresh(self) -> None:
        """Read the shown part of the list again, and this PC's last standard run."""
        most = self._most

        def read() -> tuple[HistoryList, StandardRun | None]:
            contents = self._history.contents(most, lambda: self._files.is_closed)
            return contents, None if self._files.is_closed else self._standard.newest()

        self._files.add(read, self._on_listed, keeps=False)

    def show_more(self) -> None:
        """Read older runs as well, as many as are shown."""
        self._most *= 2
        self.refresh()

    def suited(self, choices: HistoryChoices) -> HistoryChoices:
        """Return choices with the rows that there are, in their order."""
        selected = tuple(key for key in self.rows if key in choices.selected)
        return msgspec.structs.replace(choices, selected=selected)

    def on_chosen(self) -> None:
        """Compare the selected rows; another selection takes the question of Delete back."""
        self._is_asking = False
        self._compared = None

    # ── the selected rows ────────────────────────────────────────────────────────────────────

    @property
    def selected(self) -> list[HistoryRow]:
        """The selected rows."""
        return [self.rows[key] for key in self.choices.selected]

    @property
    def compared(self) -> Compared:
        """The selected rows side by side; without sides if none is selected."""
        if self._compared is None:
            self._compared = compare_rows(self.selected, self._benchmark.titles)
        return self._compared

    @property
    def heading(self) -> str:
        """Who is faster, or what to do."""
        return self.compared.heading or (_HINT if self.rows else _EMPTY)

    @property
    def one_entry(self) -> HistoryEntry | None:
        """The kept run that is selected alone; None otherwise."""
        return self.selected[0].entry if len(self.selected) == 1 else None

    def overlay(self) -> None:
        """Draw the kept run that is selected alone in Run's plot, if its work is the same."""
        entry, results = self.one_entry, self._benchmark.results
        if entry is None:
            return
        reason = difference(results[-1], entry.header.result) if results else ""
        if reason:
            self._show_notice(Notice(reason, Tone.FAILURE))
        else:
            load = partial(self._history.load, entry.key)
            self._files.add(load, self._on_loaded, keeps=False)

    def rename(self, name: str) -> None:
        """Give the run that is selected alone a name; an empty one removes it."""
        if self.one_entry is not None:
            self._files.add(partial(self._history.rename, self.one_entry.key, name), self._on_done)

    @property
    def _chosen_entries(self) -> list[HistoryEntry]:
        return [row.entry for row in self.selected if row.entry is not None]

    @property
    def delete_words(self) -> str:
        """What the button does: close files, or delete runs, after a question."""
        if self._is_asking:
            return "Delete forever?"
        return "Delete" if self._chosen_entries or not self.can_delete else "Close"

    @property
    def can_delete(self) -> bool:
        """Whether a kept run, or an opened file, is selected."""
        return any(row.entry is not None or row.opened is not None for row in self.selected)

    def delete(self) -> None:
        """Close the selected files; delete the selected runs if asked a second time."""
        entries = self._chosen_entries
        if entries and not self._is_asking:
            self._is_asking = True
            self.changed.emit()
            return
        for entry in entries:
            self._files.add(partial(self._history.delete, entry.key), self._on_done)
        closed = {id(row.opened) for row in self.selected}
        self._opened = [one for one in self._opened if id(one) not in closed]
        self.choose(selected=())
        self._list()

    @property
    def recording(self) -> Recording | None:
        """The recording that the selected rows are of; None for another selection."""
        found = {id(row.opened): row.opened for row in self.selected}
        one = next(iter(found.values()), None)
        return one if len(found) == 1 and isinstance(one, Recording) else None

    @property
    def can_play(self) -> bool:
        """Whether a recording is selected and nothing else runs."""
        return self.recording is not None and self.player.can_play

    def play(self) -> None:
        """Play the selected recording in Run's live plot."""
        if self.recording is not None and self.can_play:
            self.begun.emit()
            self.player.play(self.recording, self.choices.pace)

    def keep_results(self) -> None:
        """Add the results of the selected recording to the kept runs, labeled."""
        if self.recording is not None:
            self._files.add(partial(_results_of, self.recording), self._keep)

    # ── the published test ───────────────────────────────────────────────────────────────────

    @property
    def published_rows(self) -> list[tuple[str, ...]]:
        """A row for each published size: times of all its iterations, published and on this PC."""
        if self.published is None:
            return []
        return experiment_rows(self.published, self._benchmark.results, self._published_devices)

    @property
    def can_repeat(self) -> bool:
        """Whether the engine is ready and idle."""
        is_idle = bool(self._studio.session.description) and not self._benchmark.state.is_busy
        return self.published is not None and is_idle

    def repeat_published(self) -> None:
        """Run the published work with a time budget for each size."""
        if self.published is not None and self.can_repeat:
            self.begun.emit()
            self._benchmark.start(experiment(self.published, self._published_devices))

    @property
    def _published_devices(self) -> list[str]:
        """The CPU and the first usable card, as in the published program."""
        return [row.address for row in self._board.usable_here[:2] if row.address is not None]

    # ── files ────────────────────────────────────────────────────────────────────────────────

    def open_files(self, paths: Iterable[Path]) -> None:
        """Open files, whatever they hold; one that is still being read is not forgotten."""
        self._waiting.update(dict.fromkeys(paths))
        waiting = tuple(self._waiting)
        if waiting:
            self._reading.ask(lambda is_over: {path: _read(path, is_over) for path in waiting})

    def export_file(self, path: Path) -> None:
        """Write the kept run that is selected alone to a file that another PC can open."""
        assert self.one_entry is not None
        write = partial(_write_kept, self._history, self.one_entry.key, path)
        self._files.add(write, self._on_exported)

    # ── outcomes ─────────────────────────────────────────────────────────────────────────────

    def _on_run_ended(self, run: Run) -> None:
        if run.result is None:
            return
        if run.recording is None:  # a recording already has a file, and is not from this PC
            self._files.add(partial(self._history.keep, run, local_now()), self._on_done)

    def _on_done(self, _answer: object) -> None:
        self.refresh()

    def _on_listed(self, listed: tuple[HistoryList, StandardRun | None]) -> None:
        self._contents, own = listed
        if own != self._own:  # the same run keeps its rows
            self._own = own
        self._list()

    def _list(self) -> None:
        """List the rows anew; those that are selected stay so."""
        rows: dict[str, HistoryRow] = {}
        for one in reversed(self._opened):
            rows |= recording_rows(one) if isinstance(one, Recording) else run_rows(one)
        titles = self._benchmark.titles
        kept = {one.key: kept_row(one, self._board, titles) for one in self.entries}
        if self._own is not None:
            kept |= run_rows(self._own, is_here=True)
        newest = sorted(kept, key=lambda key: moment_order(kept[key].side.made_at), reverse=True)
        self.rows, self._compared = rows | {key: kept[key] for key in newest}, None
        self.choices = self.suited(self.choices)
        self.changed.emit()

    def _on_read(self, files: dict[Path, _Found]) -> None:
        refused: list[str] = []
        opened: list[StandardRun | Recording] = []
        for path, found in files.items():
            self._waiting.pop(path, None)
            if isinstance(found, Failure):
                refused.append(found.message)
            elif isinstance(found, list):
                self._keep(found)
            elif found == self._own or any(found == one for one in (*self._opened, *opened)):
                refused.append(f"The results in {file_name(path)} are here already.")
            else:
                opened.append(found)
        self._show_notice(
            Notice(" ".join(dict.fromkeys(refused)), Tone.AMBER if refused else Tone.PLAIN)
        )
        if opened:
            self.refresh()  # this PC's own standard run stands beside those in files
            self._files.add(lambda: opened, self._on_opened)

    def _on_opened(self, opened: list[StandardRun | Recording]) -> None:
        """Compare what was opened: a recording's devices; standard runs with this PC's."""
        self._opened += opened
        self._list()
        keys = [key for key, row in self.rows.items() if row.opened in opened]
        if isinstance(opened[0], StandardRun):
            keys += [key for key, row in self.rows.items() if row.side.run is self._own is not None]
            keys = [key for key in keys if not self.rows[key].side.is_spare]
        self.choose(selected=tuple(keys))

    def _keep(self, imported: list[KeptRun]) -> None:
        """Add results from elsewhere to the kept runs."""

        def add() -> list[KeptRun]:
            for kept in imported:
                self._history.add(kept)
            return imported

        self._files.add(add, self._on_imported)

    def _on_imported(self, imported: list[KeptRun]) -> None:
        result = imported[0].result
        what = f"{result.workload} on {result.device_name}"
        if len(imported) > 1:
            what = f"{len(imported)} results, the first is {what}"
        self._show_notice(Notice(f"Kept: {what}. Label: “{result.recording}”."))
        self.refresh()

    def _on_exported(self, path: Path) -> None:
        self._show_notice(Notice(f"Saved as {path}"))

    def _on_loaded(self, kept: KeptRun) -> None:
        recording = kept.result.recording
        when = f"recorded: {recording}" if recording else kept.kept_at[:10]
        self.overlaid.emit((f"{kept.name or kept.result.device_name}, {when}", run_of(kept)))

    def _on_delayed(self) -> None:
        if self._waiting:
            self._show_notice(Notice(opening(next(iter(self._waiting))), Tone.QUIET))

    def _on_failed(self, failure: Failure) -> None:
        self._waiting.clear()
        mistake = failure.message
        if failure.kind is FailureKind.INTERNAL:
            mistake = f"The history failed: {mistake}"
        self._show_notice(Notice(mistake, Tone.FAILURE))

    def _show_notice(self, notice: Notice) -> None:
        self.notice = notice
        self.notified.emit(notice)
        self.changed.emit()


def _read(path: Path, is_over: Callable[[], bool]) -> _Found:
    from gpu_studio.core.benchmark.result_import import open_results  # numpy: 80 ms

    try:
        return open_results(path, is_over)
    except StudioError as error:
        return failure_from(error)


def _results_of(recording: Recording) -> list[KeptRun]:
    from gpu_studio.core.benchmark.result_import import results_of

    return results_of(recording, local_now())


def _write_kept(history: History, key: str, path: Path) -> Path:
    try:
        write_atomically(path, encode_kept(without_card(history.load(key))))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        message = f"Could not write {path}: {reason}."
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    return path


# ── the rows ─────────────────────────────────────────────────────────────────────────────────────


_MEASURED = "Measure this PC"


class HistoryRow(NamedTuple):
    """A device with its results.

    Attributes:
        texts: when, what, device, result, trust.
        side: what is compared.
        entry: the kept run; None for others.
        opened: the recording, or the standard run of another PC, in a file; None for others.
    """

    texts: tuple[str, ...]
    side: Side
    entry: HistoryEntry | None = None
    opened: StandardRun | Recording | None = None


class Compared(NamedTuple):
    """Rows side by side.

    ``table`` is as `comparison.table_rows`; ``facts`` is what else there is to know, a line each.
    """

    sides: tuple[Side, ...] = ()
    works: tuple[ComparedWork, ...] = ()
    heading: str = ""
    sentence: str = ""
    trust: Notice = Notice()
    table: Sequence[Sequence[str]] = ()
    facts: str = ""


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


def kept_row(entry: HistoryEntry, board: DeviceBoard, titles: Mapping[str, str]) -> HistoryRow:
    """Return the row of a kept run."""
    header, result = entry.header, entry.header.result
    device = kept_name(header, board, without_maker(result.device_name))
    side = Side(
        name=result.device_name,
        results=(result,),
        place=header.name or result.recording or "",
        made_at=header.kept_at,
        is_here=not result.recording,
        # A file may claim the turns of a run that was made here.
        origin=hash(result.recording) if result.recording else 0,
        fact=" ".join((result_fact(result), _UNCHECKED if header.is_unchecked else "")).strip(),
    )
    work = work_words(result, titles)
    named = f"{header.name}: {work}" if header.name else work
    median, trust = format_duration(result.median_s), trust_sign(result)
    return HistoryRow((shown_moment(header.kept_at), named, device, median, trust), side, entry)


def run_rows(run: StandardRun, *, is_here: bool = False) -> dict[str, HistoryRow]:
    """Return a row for each device of a standard run."""
    where = "" if is_here else f", {run.pc_name or 'another PC'}"
    opened = None if is_here else run
    return {
        f"{id(run)}:{side.number}": HistoryRow(
            _texts(side, _MEASURED, f"{short_name(side.name)}{where}"), side, opened=opened
        )
        for side in sides_of(run, is_here=is_here)
    }


def recording_rows(recording: Recording) -> dict[str, HistoryRow]:
    """Return a row for each device of a recording, with its last result of each work."""
    by_device: dict[str, dict[object, RunFinished]] = {}
    for run in recording.runs:
        own = by_device.setdefault(run.device_name or run.request.device, {})
        if run.result is not None:
            labeled = msgspec.structs.replace(run.result, recording=recording.label)
            own[work_of(run.result)] = labeled
    rows = {}
    for number, (name, results) in enumerate(by_device.items()):
        side = Side(
            name=name,
            results=tuple(results.values()),
            place=recording.label,
            made_at=recording.header.recorded_at,
            origin=id(recording),
            fact=" ".join(recording_sentences(recording)),
        )
        texts = _texts(side, "Recording", f"{short_name(name)}, recorded")
        rows[f"{id(recording)}:{number}"] = HistoryRow(texts, side, opened=recording)
    return rows


def _texts(side: Side, what: str, device: str) -> tuple[str, ...]:
    notice = trust_of_sides([side])
    trust = f"▲ {notice.sentence[:1].lower()}{notice.sentence[1:]}"
    if notice.tone is Tone.GOOD:
        trust = "✔ checked"
    count = counted(len(side.results), "result")
    return shown_moment(side.made_at), what, device, count, trust


def result_fact(result: RunFinished) -> str:
    """Return what is to be known of a result: its time, how sure that is, and what made it."""
    interval = interval_words(result.ci95_s, result.samples, len(result.rounds_s))
    samples = f", {counted(result.samples, 'sample')}" if result.samples > 1 else ""
    torch = result.conditions.torch_version
    return (
        f"Median {format_duration(result.median_s)} per call{samples}, {interval}"
        f"{f', PyTorch {torch}' if torch else ''}."
        f"{f' Recorded: {result.recording}.' if result.recording else ''}"
    )


# ── side by side ─────────────────────────────────────────────────────────────────────────────────


def compare_rows(rows: Sequence[HistoryRow], titles: Mapping[str, str]) -> Compared:
    """Return rows side by side, this PC's first, its CPU before its cards, the oldest first."""
    if not rows:
        return Compared()
    ordered = sorted((row.side for row in rows), key=_order)
    sides = tuple(_merged(ordered))
    works = compared_works(sides[:MOST_SIDES], titles)
    heading, sentence = headline(sides[:MOST_SIDES], works)
    if len(sides) > MOST_SIDES:
        sentence = f"{sentence} Only the first {MOST_SIDES} of {len(sides)} are compared.".lstrip()
    shown = sides[:MOST_SIDES]
    table, facts = table_rows(shown, works), "\n".join(facts_of(shown))
    return Compared(shown, works, heading, sentence, trust_of_sides(shown), table, facts)


def _order(side: Side) -> tuple[bool, bool, tuple[float, str]]:
    on_cpu = bool(side.results) and is_cpu(side.results[0].device)
    return not side.is_here, not on_cpu, moment_order(side.made_at)


def _merged(sides: Sequence[Side]) -> list[Side]:
    """Return sides in which kept runs of one device are one, unless two are of the same work."""
    merged: list[Side] = []
    for side in sides:
        for number, one in enumerate(merged):
            is_alike = (one.name, one.origin, one.place) == (side.name, side.origin, side.place)
            if is_alike and not side.run and not _share_work(one, side):
                results = (*one.results, *side.results)
                merged[number] = msgspec.structs.replace(one, results=results, fact="")
                break
        else:
            merged.append(side)
    return merged


def _share_work(one: Side, other: Side) -> bool:
    return not {*map(work_of, one.results)}.isdisjoint(map(work_of, other.results))


def kept_name(header: KeptHeader, board: DeviceBoard, name: str) -> str:
    """Return the name of a kept run's device, with its number if another card is called so, too.

    Args:
        header: the kept run.
        board: the devices of this PC.
        name: the name in the usual case.
    """
    result = header.result
    name = name_at(pc_of(result.device), name)
    if result.recording:
        return f"{name}, recorded"
    row = board.row(header.card) if header.card else None
    if row is not None and board.card_named(row.name) != row.identity and not row.is_cpu:
        return row.label
    is_own_card = header.card and not is_cpu(result.device) and not pc_of(result.device)
    is_out = is_own_card and row is None and board.is_complete
    return f"{name}, not in this PC now" if is_out else name
