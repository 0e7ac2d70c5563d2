"""Benchmark › History: kept runs, recordings and other PCs' files in one list, to compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QInputDialog

from gpu_studio.core.benchmark.comparison import TABLE_HEAD
from gpu_studio.core.benchmark.reference import HEAD
from gpu_studio.model.benchmark.recording import AT_ONCE, OWN_PACE
from gpu_studio.ui.eliding import RoomText
from gpu_studio.ui.page import Box, Columns, Flow, Fold, Own, Page
from gpu_studio.ui.page_controls import ChosenRows, Pick
from gpu_studio.ui.page_parts import Press, Rows, Words
from gpu_studio.ui.saving import ask_open_paths, ask_save_path
from gpu_studio.ui.standard_page import ShareDialog
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.benchmark.history_model import HistoryModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_KINDS = "Results (*.png *.jsonl *.json);;All files (*)"
_HEAD = ("When", "What", "Device", "Result", "Trust")
_PACES = (
    ("Original speed", OWN_PACE),
    ("10 × faster", 10 * OWN_PACE),
    ("Skip to the end", AT_ONCE),
)
_OPEN_TIP = (
    "A picture, a recording, a standard run or results from another PC; nothing in it is executed. "
    "You can drop files as well."
)
_NO_TABLE = "The published table is missing from this installation."
_NOTE = (
    "The experiment times each size for 2\u202fs on this PC. “≈” is the median of a call times the "
    "published iterations."
)


class HistoryPage(Page):
    """Earlier results of this PC and of others."""

    model: HistoryModel

    def __init__(self, model: HistoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("benchmark", model, theme, parent)
        self.setObjectName("benchmark.history")
        self.setAccessibleName("History")

    def head_parts(self) -> Sequence[Part]:
        """Offer files in and out."""
        m = self.model
        return (
            Press("Open file…", self.ask_files, name="history.open", icon="file", tip=_OPEN_TIP),
            Press(
                "Export…", self._export, name="history.export", icon="export", key="save",
                enabled=lambda: bool(m.compared.works),
                tip="Save or copy what is selected, for another PC or a forum",
            ),
        )  # fmt: skip

    def parts(self) -> Sequence[Part]:
        """Describe the answer, the list, and what is behind it."""
        m = self.model
        return (
            Columns(
                Own(lambda: RoomText(role="title", lines=2),
                    lambda shown: shown.setText(m.heading), name="history.heading", stretch=1),
                Own(lambda: TrustChip(name="benchmark.history.trust"),
                    lambda chip: chip.show_notice(m.compared.trust),
                    shown=lambda: m.compared.trust.sentence),
                presented=True,
            ),
            Box(
                ChosenRows(
                    of="selected", title="Results, newest first", name="history.table", head=_HEAD,
                    rows=lambda: {key: row.texts for key, row in m.rows.items()}, numbers=(3,),
                    wide=1, deleted=m.delete,
                ),
                Flow(
                    Press("Show in Run", m.overlay, name="history.overlay",
                          enabled=lambda: m.one_entry is not None,
                          tip="Show its samples in Run's plot behind those of the same work"),
                    Press("Rename…", self._rename, name="history.rename",
                          enabled=lambda: m.one_entry is not None),
                    Press(lambda: m.delete_words, m.delete, name="history.delete", icon="trash",
                          enabled=lambda: m.can_delete,
                          tip="Delete the selected runs after asking again, or close files"),
                    Press("Play", m.play, name="recording.play", icon="play",
                          shown=lambda: m.recording, enabled=lambda: m.can_play,
                          tip="Play all its runs in Run's plot"),
                    Pick(of="pace", title="Playback speed", name="recording.pace", items=_PACES,
                         least_letters=12, shown=lambda: m.recording),
                    Press("Keep the results", m.keep_results, name="recording.keep",
                          shown=lambda: m.recording, tip="Add them to the kept runs, labeled"),
                    Press(lambda: f"Show {m.unread_count:,} older", m.show_more,
                          name="history.more", shown=lambda: m.unread_count),
                ),
                Words(lambda: m.notice, name="history.outcome", keeps_room=True),
                Words(lambda: m.refused, "muted", name="history.refused"),
            ),
            Box(
                Words(lambda: m.compared.sentence, "lead", name="history.sentence"),
                Rows("The selected results side by side", TABLE_HEAD, lambda: m.compared.table,
                     (2, 3), name="history.compared", shown=lambda: m.compared.table),
                shown=lambda: m.compared.sides, presented=True,
            ),
            Fold(Words(lambda: m.compared.facts, "muted", name="history.facts"), label="Details",
                 name="history.details", shown=lambda: m.compared.facts),
            Fold(*self._published(), label="Repeat a published test", name="published"),
        )  # fmt: skip

    def _published(self) -> Sequence[Part]:
        m, table = self.model, self.model.published
        source = f"{table.source}. {table.about} {table.method}" if table else _NO_TABLE
        return (
            Words(source, "muted", name="published.source"),
            Press("Run the GT 1030 experiment", m.repeat_published, name="preset.gt_1030",
                  icon="play", enabled=lambda: m.can_repeat,
                  tip="Run the published work on this PC, in about half a minute"),
            Rows("Published times and this PC's times", HEAD, lambda: m.published_rows,
                 tuple(range(6)), name="published.table"),
            Words(_NOTE, "muted", name="published.note"),
        )  # fmt: skip

    def ask_files(self) -> None:
        """Ask for files and open them."""
        paths = ask_open_paths(self.window(), "Open results", _KINDS)
        self.model.open_files(map(Path, paths))

    def _rename(self) -> None:
        entry = self.model.one_entry
        assert entry is not None
        name, is_given = QInputDialog.getText(
            self.window(), "Rename", "Name of this run:", text=entry.header.name
        )
        if is_given:
            self.model.rename(name)

    def _export(self) -> None:
        """Share a comparison, or save a kept run with its samples."""
        if self.model.one_entry is None:
            ShareDialog(self.model.compared.sides, self.theme, self.window()).exec()
            return
        kind = "GPU Studio result (*.json)"
        if path := ask_save_path(self.window(), "Export a result", "result.json", kind):
            self.model.export_file(Path(path))
