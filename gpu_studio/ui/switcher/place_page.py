"""The three steps side by side: identify the device, place tensors, place the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QHeaderView,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.notice import Tone
from gpu_studio.core.tensors import DTYPES
from gpu_studio.model.switcher.placement_model import AFTER, BEFORE, KIND, NAME, SHAPE, TYPE
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.eliding import narrow_combo, show_items
from gpu_studio.ui.page_keys import runs
from gpu_studio.ui.parts import GAP, Card, Text, button, letters, show_whole_rows, table
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.switcher.choose_page import what_is_waited_for
from gpu_studio.ui.switcher.device_card import DeviceInk

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QTableView

    from gpu_studio.core.notice import Notice
    from gpu_studio.model.studio import Studio
    from gpu_studio.model.switcher.device_choice import DeviceChoice
    from gpu_studio.model.switcher.placement_model import PlacementModel, PlacementTable
    from gpu_studio.ui.eliding import ComboBox
    from gpu_studio.ui.theme import Theme

_SIZES = (256, 1000, 2048, 4096)
_USUAL_SIZE = 1000
_AS_IT_IS = "as it is"
_FILE = "\x00file"
_LETTERS, _SPACING = 6, 8
_TYPES = tuple((dtype, dtype) for dtype in DTYPES)
_HOW_MADE = "x is created on the CPU and moved. w is created directly on the device."

_NARROW_LETTERS = 126  # of the page; below it a model's name would be cut off beside its data type
_FEW_COLUMNS = 120  # letters; below it the table shows kind and data type in tool tips
_WIDE = 150  # letters; above it the columns share the width, so that rows are easy to read


class PlacePage(QWidget):
    """The three steps on top; the proof and every tensor's device below."""

    def __init__(
        self,
        studio: Studio,
        theme: Theme,
        choice: DeviceChoice,
        model: PlacementModel,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._choice, self.model = choice, model
        self._pairs: list[QBoxLayout] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        steps = QHBoxLayout()
        steps.setSpacing(GAP)
        column.addLayout(steps)
        for card in (self._make_identify(), self._make_tensors(), self._make_model()):
            steps.addWidget(card, 1)
        self._result = PlacementResult(model.table, theme)
        column.addWidget(self._result, 1)
        choice.rows_changed.connect(self._show_targets)
        choice.chosen_changed.connect(self._show_targets)
        choice.chosen_changed.connect(self._list_models)
        model.changed.connect(self._show_notice)
        model.file_changed.connect(self._show_file)
        studio.session.engine_described.connect(self._list_models)
        studio.pcs.engine_described.connect(self._list_models)
        studio.session.state_changed.connect(self._show_buttons)
        studio.pcs.session_changed.connect(self._show_buttons)
        self._list_models()
        self._show_targets()
        self._show_notice()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_identify(self) -> Card:
        self._targets = _combo("target", "Target device")
        self._targets.activated.connect(self._choose_target)
        self._identity = Text(role="muted", name="switcher.identity", wraps=True)
        return _step("identify", "1  Identify the device", self._targets, self._identity)

    def _make_tensors(self) -> Card:
        sizes = [(f"{size} × {size}", size) for size in _SIZES]
        self._sizes = _combo("tensors.size", "Matrix size", *sizes)
        self._sizes.setCurrentIndex(_SIZES.index(_USUAL_SIZE))
        self._tensor_dtypes = _combo("tensors.dtype", "Matrix data type", *_TYPES)
        self._tensor_dtypes.setCurrentText("float32")
        self._place = button("Place", self._place_tensors, name="switcher.tensors.place")
        how = Text(_HOW_MADE, "muted", wraps=True)
        pair = self._pair(self._sizes, self._tensor_dtypes)
        return _step("tensors", "2  Place tensors", pair, self._place, how)

    def _make_model(self) -> Card:
        self._models = _combo("model", "Model to move")
        self._models.activated.connect(self._choose_model)
        self._dtypes = _combo("dtype", "Convert to", (_AS_IT_IS, ""), *_TYPES)
        self._open = button(
            "Open file…", self._open_file, name="switcher.open",
            tip="Open a state dict or another torch.save file that maps names to tensors",
        )  # fmt: skip
        self._move = button("Move", self._start_move, name="switcher.move", primary=True)
        self._about_model = Text(role="muted", name="switcher.about_model", wraps=True)
        boxes = self._pair(self._models, self._dtypes)
        buttons = self._pair(self._open, self._move, (0, 1))
        return _step("move", "3  Place the model", boxes, buttons, self._about_model)

    def _pair(self, one: QWidget, other: QWidget, shares: tuple[int, int] = (5, 3)) -> QWidget:
        """Return two controls side by side, or stacked in a narrow window."""
        both = QWidget()
        pair = QBoxLayout(QBoxLayout.Direction.LeftToRight, both)
        pair.setContentsMargins(0, 0, 0, 0)
        pair.setSpacing(_SPACING)
        pair.addWidget(one, shares[0])
        pair.addWidget(other, shares[1])
        self._pairs.append(pair)
        return both

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        directions = QBoxLayout.Direction
        is_narrow = self.width() < letters(self, _NARROW_LETTERS)
        for pair in self._pairs:
            pair.setDirection(directions.TopToBottom if is_narrow else directions.LeftToRight)

    # ── the device ───────────────────────────────────────────────────────────────────────────

    def _choose_target(self) -> None:
        self._choice.choose(self._targets.currentData())

    def _show_targets(self) -> None:
        rows = self._choice.rows
        words = {row.identity: self._choice.words_of(row) for row in rows}
        show_items(
            self._targets,
            [(f"{one.number}  {one.name}", identity) for identity, one in words.items()],
        )
        chosen = self._choice.chosen
        if chosen is not None:
            self._targets.setCurrentIndex(self._targets.findData(chosen.identity))
            card_words = words[chosen.identity]
            warning = f" {card_words.warning}" if card_words.warning else ""
            current = " PyTorch creates new tensors here by default." if chosen.is_cpu else ""
            about = f"\n{card_words.about}" if card_words.about else ""
            self._identity.setText(f"{card_words.facts}.{current}{about}{warning}")
        self._targets.setEnabled(bool(rows))
        self._show_buttons()

    # ── the model ────────────────────────────────────────────────────────────────────────────

    def _list_models(self) -> None:
        models = self.model.models
        wanted = [model.name for model in models] + ([_FILE] if self.model.file else [])
        listed = [self._models.itemData(index) for index in range(self._models.count())]
        if listed != wanted:
            chosen = self._models.currentData()
            self._models.clear()
            for model in models:
                self._models.addItem(model.title, model.name)
            if self.model.file is not None:
                self._models.addItem(self.model.file_name, _FILE)
                chosen = _FILE
            if chosen in wanted:
                self._models.setCurrentIndex(wanted.index(chosen))
        elif self.model.file is not None:
            self._models.setItemText(len(wanted) - 1, self.model.file_name)
        self._describe_model()
        self._show_buttons()

    def _choose_model(self) -> None:
        self.model.forget()
        self.model.forget_refusal()
        self._describe_model()

    def _describe_model(self) -> None:
        name, file = self._models.currentData(), self.model.file_notice
        sentence = next((m.sentence for m in self.model.models if m.name == name), "")
        is_about_file = name == _FILE or file.tone is Tone.FAILURE or self.model.is_inspecting
        self._about_model.setText(file.sentence if is_about_file else sentence)
        is_refused = is_about_file and file.tone is Tone.FAILURE
        self._about_model.set_tone(Tone.FAILURE if is_refused else Tone.PLAIN)

    def _open_file(self) -> None:
        path = ask_open_path(
            self, "Open a torch.save file",
            "Tensors (*.pt *.pth *.bin *.ckpt);;All files (*)",
        )  # fmt: skip
        self.open_path(path)

    def open_path(self, path: str) -> None:
        """Read a file's header; does nothing without a file."""
        self.model.inspect(path)

    def _show_file(self) -> None:
        self._list_models()
        if self.model.file is not None:
            self._models.setCurrentIndex(self._models.count() - 1)
        self._describe_model()

    def _start_move(self) -> None:
        dtype = self._dtypes.currentData()
        if self._models.currentData() == _FILE:
            self.model.move_file(dtype)
        else:
            self.model.move(self._models.currentData(), dtype)

    def _place_tensors(self) -> None:
        self.model.place_tensors(self._sizes.currentData(), self._tensor_dtypes.currentData())

    # ── the outcome ──────────────────────────────────────────────────────────────────────────

    def _show_notice(self) -> None:
        self._result.show_notice(self.model.notice)
        self._show_buttons()

    def _show_buttons(self) -> None:
        model, chosen = self.model, self._choice.chosen
        target = chosen.address if chosen is not None else None
        self._move.setText(f"Move to {target}" if target else "Move")
        self._move.setAccessibleName(f"Move the model to {target}" if target else "Move the model")
        if model.is_moving:
            self._move.setText("Moving…")
        self._place.setText(f"Place on {target}" if target else "Place")
        if model.is_placing:
            self._place.setText("Placing…")
        self._place.setAccessibleName(f"Place tensors on {target}" if target else "Place tensors")
        for widget in (self._move, self._place):
            widget.setEnabled(model.can_place)
            widget.setToolTip(plain_tip(chosen.reason) if chosen is not None else "")
        runs(self._move)
        is_free = bool(model.models) and not model.is_moving
        self._models.setEnabled(is_free)
        self._open.setEnabled(is_free)
        self._show_hint()

    def _show_hint(self) -> None:
        waiting = what_is_waited_for(self.model.session)
        self._result.show_hint(
            waiting
            or f"Press “{self._move.text()}” to see each parameter and buffer of the model here, "
            "with its device before and after."
        )


def _combo(name: str, spoken: str, *items: tuple[str, object]) -> ComboBox:
    combo = narrow_combo(f"switcher.{name}", spoken, _LETTERS)
    for text, value in items:
        combo.addItem(text, value)
    return combo


def _step(name: str, title: str, *parts: QWidget) -> Card:
    """Return the card of a step: its title above its parts."""
    card = Card(name=f"switcher.{name}_card")
    card.column.setSpacing(_SPACING)
    for part in (Text(title, "title", wraps=True), *parts):
        card.column.addWidget(part)
    card.column.addStretch(1)
    return card


class PlacementResult(Card):
    """The proof on top and the table under it, or a hint while both are empty."""

    def __init__(self, rows: PlacementTable, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="switcher.result_card")
        self.column.setSpacing(GAP)
        self._proof_card = Card(name="switcher.proof_card")
        self._proof = Text(name="switcher.proof", wraps=True)
        self._proof_card.column.addWidget(self._proof)
        self._rows = rows
        self._table = self._make_table(theme)
        self._hint = Text(role="muted", name="switcher.hint", wraps=True)
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.column.addWidget(self._proof_card)
        self.column.addWidget(self._table)
        self.column.addWidget(self._hint, 100)
        self.column.addStretch(1)

    def _make_table(self, theme: Theme) -> QTableView:
        view = table(
            self._rows,
            name="switcher.placement",
            accessible_name="Tensors with their device before and after",
        )
        view.horizontalScrollBar().rangeChanged.connect(self._fit_table)
        view.setItemDelegate(DeviceInk(theme, view))
        view.horizontalHeader().setStretchLastSection(False)
        view.horizontalHeader().setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        return view

    def show_notice(self, notice: Notice) -> None:
        self._proof.setText(notice.sentence)
        self._proof_card.set_tone(notice.tone)
        self._proof_card.setVisible(bool(notice.sentence))
        self._table.setAccessibleDescription(notice.sentence)

    def show_hint(self, text: str) -> None:
        is_empty = self._rows.rowCount() == 0
        self._hint.setText(text)
        self._hint.setVisible(is_empty)
        self._table.setVisible(not is_empty)
        self._fit_table()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the devices before and after visible in a narrow window."""
        super().resizeEvent(event)
        width, modes = self.width(), QHeaderView.ResizeMode
        for column in (KIND, TYPE):
            self._table.setColumnHidden(column, width < letters(self, _FEW_COLUMNS))
        for column in (SHAPE, BEFORE, AFTER):
            mode = modes.Stretch if width > letters(self, _WIDE) else modes.ResizeToContents
            self._table.horizontalHeader().setSectionResizeMode(column, mode)

    def _fit_table(self) -> None:
        show_whole_rows(self._table)
