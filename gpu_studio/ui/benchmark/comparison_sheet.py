"""Standard runs side by side: a chip for each side, and a card for each work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.benchmark.standard_words import (
    NOT_MEASURED,
    are_of_one_run,
    compared_works,
    side_names,
)
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.moments import shown_moment
from gpu_studio.core.units import format_percent
from gpu_studio.ui.benchmark.swatch import SIDE, swatch
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.eliding_combo import ElidingCombo
from gpu_studio.ui.parts import GAP, Card, Text, laid_out_once, letters, set_property
from gpu_studio.ui.result_bars import ResultBar, ResultBars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.benchmark.standard_words import ComparedFigure, ComparedWork, Side
    from gpu_studio.ui.theme import Theme

SIDE_ROLES = ("gpu0", "gpu1", "gpu2", "other", "allocated", "cpu", "compared")
"""The colors of this PC and of the files beside it; a name is always beside a color."""
_CARD_ROLES = tuple(role for role in SIDE_ROLES if role != "cpu")
_CHIP_LETTERS, _WORK_LETTERS = 30, 76
_MOST_CHIPS, _MOST_WORKS = 4, 3  # in a row
_MOST_SHARES = 2


def side_roles(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the colors of sides; the CPU of a run alone has its usual one."""
    if not sides or not are_of_one_run(sides) or not sides[0].device.is_cpu:
        return SIDE_ROLES
    return ("cpu", *_CARD_ROLES)


class SideChip(Card):
    """One side: its color, its device, and where it comes from.

    Signals:
        removed(int): the user removes the side at this place.
        device_chosen(int, int): the user compares another device of the run at this place.
    """

    removed = Signal(int)
    device_chosen = Signal(int, int)

    def __init__(
        self, theme: Theme, place: int, side: Side, name: str, role: str, *, is_still: bool
    ) -> None:
        super().__init__(name=f"benchmark.compare.side.{place}")
        self._place, self._role = place, role
        self._theme = theme
        self._square = QLabel()
        self._square.setFixedSize(QSize(SIDE, SIDE))
        self.setAccessibleName(name)
        head = QHBoxLayout()
        self.column.addLayout(head)
        head.setSpacing(GAP)
        head.addWidget(self._square)
        devices = [short_name(one.name) or "unnamed device" for one in side.run.devices]
        if len(devices) > 1 and not is_still:
            box = ElidingCombo()
            box.setObjectName(f"benchmark.compare.device.{place}")
            box.setAccessibleName("Device of this run")
            box.addItems(devices)
            box.setCurrentIndex(side.number)
            box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            box.activated.connect(self._choose)
            head.addWidget(box, 1)
        else:
            head.addWidget(ElidedText(name, "value"), 1)
        if not side.is_here and not is_still:
            cross = QToolButton()
            cross.setObjectName(f"benchmark.compare.remove.{place}")
            cross.setText("✕")
            cross.setToolTip("Remove this run from the comparison")
            cross.setAccessibleName(f"Remove {name}")
            cross.clicked.connect(self._remove)
            head.addWidget(cross)
        source = ElidedText(side_source(side), "muted", name=f"benchmark.compare.source.{place}")
        self.column.addWidget(source)
        set_property(self, "selected", side.is_here)
        theme.changed.connect(self._paint_square)
        self._paint_square()

    def _paint_square(self) -> None:
        scale = self.devicePixelRatioF()
        self._square.setPixmap(
            swatch(self._theme, self._role, scale).pixmap(QSize(SIDE, SIDE), scale)
        )

    def _choose(self, number: int) -> None:
        self.device_chosen.emit(self._place, number)

    def _remove(self) -> None:
        self.removed.emit(self._place)


def side_source(side: Side) -> str:
    """Return where a side comes from: ``Ana's PC, 2026-11-20 · PyTorch 2.13.0``."""
    pc = "This PC" if side.is_here else side.run.pc_name
    when = ", ".join(filter(None, (pc, shown_moment(side.run.made_at)[:10])))
    build = side.device.build.partition("+")[0]
    return " · ".join(filter(None, (when, build and f"PyTorch {build}")))


class WorkCard(Card):
    """One work: a bar with its interval for each side, and which difference counts."""

    def __init__(self, theme: Theme, key: str) -> None:
        super().__init__(name=f"benchmark.compare.work.{key}")
        self._title = Text("", "value")
        self._unit = Text("", "muted")
        self._note = ElidedText("", "muted")
        self.bars = ResultBars(theme, name=f"benchmark.compare.bars.{key}", is_dense=True)
        line = QHBoxLayout()
        self.column.addLayout(line)
        line.setSpacing(GAP)
        line.addWidget(self._title)
        line.addWidget(self._unit)
        line.addWidget(self._note, 1)
        self._note.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.column.addWidget(self.bars)

    def show_work(self, work: ComparedWork, sides: Sequence[Side], names: Sequence[str]) -> None:
        """Show a work."""
        self._title.setText(work.item.title)
        self._unit.setText(work.unit)
        self._note.setText(work.note or _shares(work, names))
        self.bars.setAccessibleName(f"{work.item.title}, {work.unit}")
        first = "this PC" if sides[0].is_here else "compared with this"
        rows = zip(work.figures, names, side_roles(sides), strict=False)
        self.bars.show_bars(
            [
                _bar(work, figure, name, role, "" if place else first)
                for place, (figure, name, role) in enumerate(rows)
            ]
        )


def _shares(work: ComparedWork, names: Sequence[str]) -> str:
    """Return how near two devices come to their own ceilings; more have it in their tips."""
    shares = [
        f"{name}: {format_percent(figure.share)} of its ceiling"
        for name, figure in zip(names, work.figures, strict=True)
        if figure.share is not None and len(names) <= _MOST_SHARES
    ]
    return ", ".join(shares)


def _bar(work: ComparedWork, figure: ComparedFigure, name: str, role: str, first: str) -> ResultBar:
    if figure.rate is None:
        verdict = figure.words or NOT_MEASURED
        return ResultBar(name, role, text="–", verdict=verdict,
                         tip=f"{name}: {figure.skipped or verdict}")  # fmt: skip
    low, high = map(work.shown, (figure.low, figure.high))
    why = figure.claim.why if figure.claim is not None else ""
    reason = f" It cannot be told which is faster: {why}." if why else ""
    shown = f"{work.shown(figure.rate)} {work.unit}, 95 % interval {low} to {high}"
    share = f", {format_percent(figure.share)} of its ceiling" if figure.share is not None else ""
    return ResultBar(
        name, role, figure.rate, work.shown(figure.rate),
        interval=(figure.low, figure.high),
        verdict=first or figure.words,
        counts=bool(figure.sign),
        tip=f"{name}: {shown}{share}.{reason}",
    )  # fmt: skip


class ComparisonSheet(QWidget):
    """The chips of the sides, and below them the cards of the works.

    Signals:
        removed(int): see `SideChip`.
        device_chosen(int, int): see `SideChip`.

    Args:
        theme: gives the colors.
        is_still: without controls, for a picture.
    """

    removed = Signal(int)
    device_chosen = Signal(int, int)

    def __init__(
        self, theme: Theme, *, is_still: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme, self._is_still = theme, is_still
        self._chips: list[SideChip] = []
        self._cards: dict[str, WorkCard] = {}
        self._shown: list[WorkCard] = []
        self._columns = (0, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        self._top, self._grid = QGridLayout(), QGridLayout()
        column.addLayout(self._top)
        column.addLayout(self._grid)
        self._top.setSpacing(GAP)
        self._grid.setSpacing(GAP)
        column.addStretch(1)

    def show_sides(self, sides: Sequence[Side]) -> None:
        """Show these sides."""
        names = side_names(sides)
        with laid_out_once(self):
            for chip in self._chips:
                chip.setParent(None)
                chip.deleteLater()  # one of its buttons may be what was pressed
            self._chips = [
                SideChip(self._theme, place, side, name, role, is_still=self._is_still)
                for place, (side, name, role) in enumerate(
                    zip(sides, names, side_roles(sides), strict=False)
                )
            ]
            for chip in self._chips:
                chip.removed.connect(self.removed)
                chip.device_chosen.connect(self.device_chosen)
            self._show_works(sides, names)
            self._columns = (0, 0)
            self._arrange(self.width())

    def _show_works(self, sides: Sequence[Side], names: Sequence[str]) -> None:
        works = compared_works(sides)
        for card in self._shown:
            card.hide()
        self._shown = []
        for work in works:
            key = work.item.key
            if key not in self._cards:
                self._cards[key] = WorkCard(self._theme, key)
            card = self._cards[key]
            card.show_work(work, sides, names)
            self._shown.append(card)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put as many chips and cards beside each other as fit."""
        super().resizeEvent(event)
        self._arrange(event.size().width())

    def _arrange(self, width: int) -> None:
        columns = (
            _columns(width, letters(self, _CHIP_LETTERS), min(_MOST_CHIPS, len(self._chips))),
            _columns(width, letters(self, _WORK_LETTERS), _MOST_WORKS),
        )
        if columns == self._columns:
            return
        self._columns = columns
        _fill(self._top, self._chips, columns[0])
        _fill(self._grid, self._shown, columns[1])


def _columns(width: int, least: int, most: int) -> int:
    return max(min((width + GAP) // (least + GAP), most), 1)


def _fill(grid: QGridLayout, cards: Sequence[QWidget], columns: int) -> None:
    while grid.count():
        grid.takeAt(0)
    for number, card in enumerate(cards):
        grid.addWidget(card, number // columns, number % columns)
        card.show()
    for column in range(max(grid.columnCount(), columns)):
        grid.setColumnStretch(column, 1 if column < columns else 0)
