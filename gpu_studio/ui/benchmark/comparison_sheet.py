"""Standard runs side by side: a chip for each side, and a card for each work."""

from __future__ import annotations

from functools import partial
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
from gpu_studio.ui.combo_box import ElidingCombo
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, Card, Text, laid_out_once, set_property
from gpu_studio.ui.result_bars import ResultBar, ResultBars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.standard_words import ComparedFigure, ComparedWork, Side
    from gpu_studio.ui.theme import Theme

_CARD_ROLES = ("gpu0", "gpu1", "gpu2", "other", "allocated", "compared")
SIDE_ROLES = (*_CARD_ROLES[:-1], "cpu", _CARD_ROLES[-1])
"""The colors of this PC and of the files beside it; a name is always beside a color."""
_CHIPS, _WORKS = 4, 2  # in a row
_MOST_SHARES = 2


def side_roles(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the colors of sides; the CPU of a run alone has its usual one."""
    if not sides or not are_of_one_run(sides) or not sides[0].device.is_cpu:
        return SIDE_ROLES
    return ("cpu", *_CARD_ROLES)


class ComparisonSheet(QWidget):
    """A chip for each side, and below them a card for each work.

    Signals:
        removed(int): the user removes the side at this place.
        device_chosen(int, int): the user compares another device of the run at this place.

    Args:
        theme: gives the colors.
        is_still: without controls, for a picture.
    """

    removed = Signal(int)
    device_chosen = Signal(int, int)

    def __init__(self, theme: Theme, *, is_still: bool = False) -> None:
        super().__init__()
        self._theme, self._is_still = theme, is_still
        self._contents = QWidget()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._contents)

    def show_sides(self, sides: Sequence[Side]) -> None:
        """Show these sides."""
        contents = QWidget()
        column = QVBoxLayout(contents)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        names = side_names(sides)
        places = zip(range(len(SIDE_ROLES)), sides, names, side_roles(sides), strict=False)
        _add_grid(column, [self._chip(*place) for place in places], _CHIPS)
        works = [_work_card(self._theme, work, sides, names) for work in compared_works(sides)]
        _add_grid(column, works, _WORKS)
        with laid_out_once(self):
            self._column.replaceWidget(self._contents, contents)
            self._contents.hide()
            self._contents.deleteLater()  # one of its buttons may be what was pressed
            self._contents = contents

    def _chip(self, place: int, side: Side, name: str, role: str) -> QWidget:
        """Return one side: its color, its device, and where it comes from."""
        chip = Card(name=f"benchmark.compare.side.{place}")
        chip.setAccessibleName(name)
        head = QHBoxLayout()
        chip.column.addLayout(head)
        head.setSpacing(GAP)
        head.addWidget(_Square(self._theme, role))
        devices = [short_name(one.name) or "unnamed device" for one in side.run.devices]
        if len(devices) > 1 and not self._is_still:
            box = ElidingCombo()
            box.setObjectName(f"benchmark.compare.device.{place}")
            box.setAccessibleName("Device of this run")
            box.addItems(devices)
            box.setCurrentIndex(side.number)
            box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            box.activated.connect(partial(self.device_chosen.emit, place))
            head.addWidget(box, 1)
        else:
            head.addWidget(ElidedText(name, "value"), 1)
        if not side.is_here and not self._is_still:
            cross = QToolButton()
            cross.setObjectName(f"benchmark.compare.remove.{place}")
            cross.setText("✕")
            cross.setToolTip("Remove this run from the comparison")
            cross.setAccessibleName(f"Remove {name}")
            cross.clicked.connect(lambda: self.removed.emit(place))
            head.addWidget(cross)
        source = ElidedText(side_source(side), "muted", name=f"benchmark.compare.source.{place}")
        chip.column.addWidget(source)
        set_property(chip, "selected", side.is_here)
        return chip


class _Square(QLabel):
    """A square in the color of a side."""

    def __init__(self, theme: Theme, role: str) -> None:
        super().__init__()
        self._theme, self._role = theme, role
        self.setFixedSize(QSize(SIDE, SIDE))
        theme.changed.connect(self._paint)
        self._paint()

    def _paint(self) -> None:
        scale = self.devicePixelRatioF()
        self.setPixmap(swatch(self._theme, self._role, scale).pixmap(QSize(SIDE, SIDE), scale))


def side_source(side: Side) -> str:
    """Return where a side comes from: ``Ana's PC, 2026-11-20 · PyTorch 2.13.0``."""
    pc = side.run.pc_name or ("This PC" if side.is_here else "")
    when = ", ".join(filter(None, (pc, shown_moment(side.run.made_at)[:10])))
    build = side.device.build.partition("+")[0]
    return " · ".join(filter(None, (when, build and f"PyTorch {build}")))


def _work_card(
    theme: Theme, work: ComparedWork, sides: Sequence[Side], names: Sequence[str]
) -> QWidget:
    """Return one work: a bar with its interval for each side, and which difference counts."""
    card = Card(name=f"benchmark.compare.work.{work.item.key}")
    note = ElidedText(work.note or _shares(work, names), "muted")
    note.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    line = QHBoxLayout()
    card.column.addLayout(line)
    line.setSpacing(GAP)
    line.addWidget(Text(work.item.title, "value"))
    line.addWidget(Text(work.unit, "muted"))
    line.addWidget(note, 1)
    bars = ResultBars(theme, name=f"benchmark.compare.bars.{work.item.key}", is_dense=True)
    bars.setAccessibleName(f"{work.item.title}, {work.unit}")
    first = "this PC" if sides[0].is_here else "compared with this" * (len(sides) > 1)
    rows = zip(work.figures, names, side_roles(sides), strict=False)
    bars.show_bars(
        [
            _bar(work, figure, name, role, "" if place else first)
            for place, (figure, name, role) in enumerate(rows)
        ]
    )
    card.column.addWidget(bars)
    return card


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


def _add_grid(below: QVBoxLayout, cards: Sequence[QWidget], columns: int) -> None:
    """Add cards in rows of equal columns."""
    grid = QGridLayout()
    below.addLayout(grid)
    grid.setSpacing(GAP)
    for number, card in enumerate(cards):
        grid.addWidget(card, number // columns, number % columns)
    for column in range(min(columns, len(cards))):
        grid.setColumnStretch(column, 1)
