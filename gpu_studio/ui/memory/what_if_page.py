"""What if: a recorded history of memory on another card, or with other settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QWidget,
)

from gpu_studio.core.memory.allocator.options import checked_configuration
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.replay.history import MOST_LINES
from gpu_studio.core.memory.replay.replay_call import (
    SETTINGS,
    AnsweredSmallest,
    AnsweredWhatIf,
)
from gpu_studio.core.memory.replay.what_if_words import (
    DEFAULT_SETTING,
    RECORDING_SNIPPET,
    card_name,
    failure_moment,
    headline,
    subject,
    trust_notice,
)
from gpu_studio.core.notice import Tone
from gpu_studio.core.units import format_bytes, format_gib, format_percent
from gpu_studio.model.memory.what_if_model import WhatIfChoices, WhatIfModel
from gpu_studio.model.pages import WHAT_IF
from gpu_studio.ui.eliding import ComboBox, ElidedText, RoomText
from gpu_studio.ui.parts import GAP, Card, Text, button, letters, rule, set_property
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.scroll_page import PageColumn

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.memory.replay.replay_call import OpenedHistory
    from gpu_studio.core.memory.replay.what_if import WhatIf
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.studio import Studio

_GIB = 1 << 30
_OPEN = "Open history…"
_CARDS_GIB = (2, 3, 4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 80)
_FIRST_GIB = 8
_LEAST_BYTES, _MOST_BYTES = _GIB // 4, 256 * _GIB
_SIZE = re.compile(r"\s*(\d{1,4}(?:\.\d{0,6})?)\s*(?:Gi?B)?\s*", re.ASCII | re.IGNORECASE)
_BESIDE_LETTERS = 140
_AFTER_TYPING_MS = 200
_INVITATION = "Would your training fit on another card?"
_INVITED = (
    "Open a history of PyTorch's memory from any PC. It is replayed here, without a card, as on a "
    "card of any size and with any setting of the allocator. “Record one” has the lines for your "
    "script, and records an experiment here."
)
_VIEWER = (
    "To see every tensor over time, open pytorch.org/memory_viz in a browser and drop {name} on "
    "it. The file stays on your PC."
)
_SUBJECT_LINES = 2
_ROWS = ("Out of memory", "Asked for", "Peak allocated", "Peak reserved", "Fragmented")


class WhatIfPage(QWidget):
    """The answer on top, and below it the choices, the results, and the lines of code.

    Signals:
        experiment_wanted(): the user wants to record an experiment of the page “Break it”.
    """

    experiment_wanted = Signal()

    def __init__(self, studio: Studio, memory: MemoryModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory.what_if")
        self._studio, self._memory = studio, memory
        self.model = WhatIfModel(self)
        memory.closing.connect(self.model.close)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        page = PageColumn("What if")
        line.addWidget(page)
        page.column.addWidget(self._make_head())
        self._answers = QWidget()
        self._side = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._answers)
        self._side.setContentsMargins(0, 0, 0, 0)
        self._side.setSpacing(GAP)
        self._side.addWidget(_ChoiceCard(self.model), 2)
        self._side.addWidget(_ResultCard(self.model), 3)
        self._side.addWidget(_PeakCard(self.model), 3)
        page.column.addWidget(self._answers)
        page.column.addStretch(1)
        self.model.history_changed.connect(self._show)
        self.model.answers_changed.connect(self._show)
        self._show()

    def _make_head(self) -> Card:
        card = Card(name="memory.what_if.head")
        self._headline = Text(role="hero_words", name="memory.what_if.verdict", wraps=True)
        self._open = button(
            _OPEN, self._ask_file, name="memory.what_if.open", primary=True,
            tip="Open a file of torch.cuda.memory._dump_snapshot; nothing in it is executed",
        )  # fmt: skip
        self._record = QPushButton("Record one…")
        self._record.setObjectName("memory.what_if.record")
        self._record.setAccessibleName("Record a history")
        self._record.setToolTip("Record a history of your own script, or of an experiment here")
        menu = QMenu(self._record)
        menu.setObjectName("memory.what_if.record.menu")
        menu.addAction("Of your own &script: show the lines").triggered.connect(self._show_lines)
        menu.addAction("Of an &experiment here").triggered.connect(self.experiment_wanted)
        self._record.setMenu(menu)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        card.column.addLayout(line)
        line.addWidget(self._headline, 1)
        line.addWidget(self._open)
        line.addWidget(self._record)
        self._subject = RoomText(role="muted", name="memory.what_if.subject", lines=_SUBJECT_LINES)
        self._trust = Text(name="memory.what_if.trust", wraps=True)
        self._notice = RoomText(name="memory.what_if.notice", lines=_SUBJECT_LINES)
        for text in (self._subject, self._trust, self._notice):
            card.column.addWidget(text)
        return card

    # ── opening ──────────────────────────────────────────────────────────────────────────────

    def open_history(self, path: Path) -> None:
        """Open a history from a file, or say why it is refused."""
        self.model.open(path)

    def _ask_file(self) -> None:
        path = ask_open_path(self, "Open a history", "Histories (*.pickle *.pkl);;All files (*)")
        if path:
            self.open_history(Path(path))

    def _show_lines(self) -> None:
        self._studio.snippets.show(RECORDING_SNIPPET, WHAT_IF)
        self._studio.snippets.wanted.emit()

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the results under the choices if there is no room beside them."""
        super().resizeEvent(event)
        has_room = self.width() >= letters(self, _BESIDE_LETTERS)
        directions = QBoxLayout.Direction
        self._side.setDirection(directions.LeftToRight if has_room else directions.TopToBottom)

    def _show(self) -> None:
        model, history = self.model, self.model.history
        self._notice.show_notice(model.notice)
        self._open.setText("Opening…" if model.is_opening else _OPEN)
        set_property(self._open, "primary", history is None)
        # What became of a file takes the place of the subject: the history below stays.
        self._subject.setVisible(history is None or self._notice.isHidden())
        self._answers.setVisible(history is not None)
        if history is None:
            self._headline.setText(_INVITATION)
            self._subject.setText(_INVITED)
            self._trust.hide()
            return
        self._trust.show_notice(trust_notice(history))
        smallest = model.smallest
        if smallest is None or isinstance(smallest, AnsweredSmallest):
            self._headline.setText(headline(smallest))
        else:
            self._headline.setText(smallest.message)
        if model.choices is not None:
            self._subject.setText(subject(history, model.name, model.choices.other_bytes))


class _ChoiceCard(Card):
    """The card, what others hold of it, and the setting."""

    def __init__(self, model: WhatIfModel) -> None:
        super().__init__(name="memory.what_if.choices")
        self._model = model
        self.column.addWidget(Text("What if", "title"))
        self._make_sizes()
        self._make_setting()
        self._reason = Text(role="failure", name="memory.what_if.reason", wraps=True)
        self._reason.hide()
        grid = QGridLayout()
        grid.setSpacing(GAP)
        self.column.addLayout(grid)
        grid.setColumnStretch(1, 1)
        fields = (("Card", self._card), ("Others hold", self._other), ("Setting", self._conf))
        for row, (words, field) in enumerate(fields):
            label = Text(words, "muted")
            label.setBuddy(field)
            grid.addWidget(label, row, 0)
            grid.addWidget(field, row, 1)
        self.column.addWidget(self._reason)
        self.column.addStretch(1)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(_AFTER_TYPING_MS)
        self._typing.timeout.connect(self._choose)
        model.history_changed.connect(self._show_history)
        self._shown: OpenedHistory | None = None
        self._choose()

    def _make_sizes(self) -> None:
        self._card = ComboBox()
        self._card.setEditable(True)
        self._card.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self._card.setObjectName("memory.what_if.card")
        self._card.addItems([card_name(size * _GIB) for size in _CARDS_GIB])
        self._card.setCurrentText(card_name(_FIRST_GIB * _GIB))
        _name(self._card, "Memory of the card", "A card's memory in GiB, such as 8 or 7.5")
        self._card.editTextChanged.connect(self._wait)
        self._other = QLineEdit(format_gib(card_at(f"model:{_FIRST_GIB << 10}").context_bytes))
        self._other.setObjectName("memory.what_if.other")
        self._other.setAccessibleName("Memory that others hold")
        self._other.setToolTip(
            "What CUDA itself and other programs hold of the card, in GiB. It begins with what is "
            "assumed for CUDA itself."
        )
        self._other.textChanged.connect(self._wait)

    def _make_setting(self) -> None:
        self._conf = ComboBox()
        self._conf.setEditable(True)
        self._conf.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self._conf.setObjectName("memory.what_if.conf")
        self._conf.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._conf.setMinimumContentsLength(12)
        for conf in SETTINGS:
            self._conf.addItem(conf or DEFAULT_SETTING, conf)
        _name(self._conf, "Setting of the allocator", "As in PYTORCH_CUDA_ALLOC_CONF")
        self._conf.editTextChanged.connect(self._wait)

    # ── choosing ─────────────────────────────────────────────────────────────────────────────

    def _wait(self) -> None:
        self._typing.start()

    def _choose(self) -> None:
        """Use the choices, or say what is wrong with them and keep the last ones."""
        card_bytes, reason = _gib_bytes(self._card.currentText()), ""
        conf = self._conf.currentText().strip()
        known = self._conf.findText(conf)
        conf = conf if known < 0 else self._conf.itemData(known)
        other_bytes = _gib_bytes(self._other.text())
        if card_bytes is None or not _LEAST_BYTES <= card_bytes <= _MOST_BYTES:
            ends = f"{card_name(_LEAST_BYTES)} to {card_name(_MOST_BYTES)}"
            reason = f"Enter the card's memory, from {ends}."
        elif other_bytes is None:
            reason = "Enter what others hold, such as 0.5 GiB."
        elif other_bytes >= card_bytes:
            reason = "Others cannot hold the whole card."
        else:
            try:
                checked_configuration(conf)
            except ValueError as error:
                reason = f"PyTorch would refuse this setting: {error}."
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))
        if not reason and card_bytes and other_bytes is not None:
            self._model.choose(
                WhatIfChoices(card_bytes=card_bytes, other_bytes=other_bytes, conf=conf)
            )

    def _show_history(self) -> None:
        """Begin with the recorded setting."""
        history = self._model.history
        if history is None or history is self._shown:
            return
        self._shown = history
        if self._conf.findData(history.conf) < 0:
            self._conf.addItem(history.conf, history.conf)
        self._conf.setCurrentIndex(self._conf.findData(history.conf))
        self._choose()


class _ResultCard(Card):
    """The history as it was recorded, and on the chosen card."""

    def __init__(self, model: WhatIfModel) -> None:
        super().__init__(name="memory.what_if.results")
        self._model = model
        grid = QGridLayout()
        grid.setHorizontalSpacing(2 * GAP)
        self.column.addLayout(grid)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(2, 1)
        grid.addWidget(Text("Result", "title"), 0, 0)
        grid.addWidget(Text("Recorded", "value"), 0, 1)
        self._card = Text(role="value", name="memory.what_if.chosen")
        grid.addWidget(self._card, 0, 2)
        grid.addWidget(rule(), 1, 0, 1, 3)
        self._cells: list[tuple[Text, Text]] = []
        for number, words in enumerate(_ROWS):
            key = words.lower().replace(" ", "_")
            cells = (
                Text(name=f"memory.what_if.recorded.{key}"),
                Text(name=f"memory.what_if.result.{key}"),
            )
            grid.addWidget(Text(words, "muted"), number + 2, 0)
            for column, cell in enumerate(cells):
                grid.addWidget(cell, number + 2, column + 1)
            self._cells.append(cells)
        self._failing = Card(name="memory.what_if.failing")
        self._failing.set_tone(Tone.FAILURE)
        self._failing.column.addWidget(Text("First line that fails", "muted"))
        self._line = Text(name="memory.what_if.line", wraps=True)
        self._failing.column.addWidget(self._line)
        self.column.addWidget(self._failing)
        self.column.addStretch(1)
        model.history_changed.connect(self._show)
        model.answers_changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        history, choices, found = self._model.history, self._model.choices, self._model.on_card
        if history is None or choices is None:
            return
        recorded = (
            f"{history.ooms} ×" if history.ooms else "✔ none",
            "",
            format_gib(history.modelled.peak_allocated_bytes),
            format_gib(history.peak_reserved_bytes),
            _share(history.modelled.unused_at_peak_bytes, history.modelled.peak_reserved_bytes),
        )
        self._card.setText(card_name(choices.card_bytes))
        for cells, text in zip(self._cells, recorded, strict=True):
            cells[0].setText(text)
        if isinstance(found, AnsweredWhatIf):
            self._show_found(found.found)
        else:
            self._show_none(found)

    def _show_found(self, found: WhatIf) -> None:
        asked = ""
        if found.tried_bytes is not None:
            free = "" if found.free_bytes is None else f", {format_bytes(found.free_bytes)} free"
            asked = f"{format_bytes(found.tried_bytes)}{free}"
        texts = (
            "✔ none" if found.fits else f"✖ {failure_moment(found)}",
            asked,
            format_gib(found.peak_allocated_bytes),
            format_gib(found.peak_reserved_bytes),
            _share(found.unused_at_peak_bytes, found.peak_reserved_bytes),
        )
        for cells, text in zip(self._cells, texts, strict=True):
            cells[1].setText(text)
        self._cells[0][1].set_tone(Tone.GOOD if found.fits else Tone.FAILURE)
        self._failing.setVisible(not found.fits)
        self._line.setText(found.failed_line or "The history has no lines of code.")

    def _show_none(self, failure: Failure | None) -> None:
        for cells in self._cells:
            cells[1].setText("")
        self._cells[0][1].setText("Replaying…" if failure is None else "No answer")
        self._cells[0][1].set_tone(Tone.QUIET)
        self._failing.setVisible(failure is not None)
        self._line.setText("" if failure is None else failure.message)


class _PeakCard(Card):
    """Which lines of code held most when the most was allocated."""

    def __init__(self, model: WhatIfModel) -> None:
        super().__init__(name="memory.what_if.peak")
        self._model = model
        self.column.addWidget(Text("At the peak, by line of code", "title"))
        self._grid = QGridLayout()
        self._grid.setColumnStretch(0, 1)
        self._grid.setHorizontalSpacing(GAP)
        self.column.addLayout(self._grid)
        self._rows = [(ElidedText(), Text("", "value")) for _ in range(MOST_LINES)]
        for row, (line, size) in enumerate(self._rows):
            self._grid.addWidget(line, row, 0)
            self._grid.addWidget(size, row, 1, Qt.AlignmentFlag.AlignRight)
        self._viewer = Text("", "muted", name="memory.what_if.viewer", wraps=True)
        self.column.addWidget(self._viewer)
        self.column.addStretch(1)
        model.history_changed.connect(self._show)

    def _show(self) -> None:
        history = self._model.history
        if history is None:
            return
        for number, (line, size) in enumerate(self._rows):
            is_shown = number < len(history.at_peak)
            line.setVisible(is_shown)
            size.setVisible(is_shown)
            if is_shown:
                held = history.at_peak[number]
                line.setText(held.line or "Unknown, or from before the history")
                size.setText(format_gib(held.size_bytes))
        self._viewer.setText(_VIEWER.format(name=self._model.name))


def _share(unused_bytes: int, reserved_bytes: int) -> str:
    return format_percent(unused_bytes / reserved_bytes) if reserved_bytes else "n/a"


def _gib_bytes(text: str) -> int | None:
    """Return the bytes in ``8 GiB`` or ``7.5``; None if that is no size."""
    found = _SIZE.fullmatch(text.replace("\u202f", " ").replace(",", "."))
    return round(float(found[1]) * _GIB) if found else None


def _name(box: ComboBox, accessible_name: str, tip: str) -> None:
    box.setAccessibleName(accessible_name)
    box.setToolTip(tip)
    field = box.lineEdit()
    if field is not None:
        field.setAccessibleName(accessible_name)
