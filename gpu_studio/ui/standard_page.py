"""Standard runs side by side: on Devices, on Compare, and on the picture that is shared."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.core.benchmark.comparison import (
    compared_works,
    headline,
    to_csv,
    to_markdown,
)
from gpu_studio.core.benchmark.side import (
    facts_of,
    masked,
    side_names,
    sides_of,
    trust_of_sides,
    with_pc_name,
)
from gpu_studio.core.benchmark.standard import STANDARD
from gpu_studio.core.benchmark.standard_record import CHUNK, decode_standard, shared_json
from gpu_studio.core.units import format_percent
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text
from gpu_studio.ui.result_bars import ResultBar, ResultBars
from gpu_studio.ui.saving import painting_theme, picture_of
from gpu_studio.ui.share_dialog import ShareDialog, ShareForm
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.comparison import ComparedFigure, ComparedWork
    from gpu_studio.core.benchmark.side import Side
    from gpu_studio.ui.theme import Theme

_CARD_ROLES = ("gpu0", "gpu1", "gpu2", "other", "allocated", "compared")
SIDE_ROLES = (*_CARD_ROLES[:-1], "cpu", _CARD_ROLES[-1])
"""The colors of this PC and of the files beside it; a name is always beside a color."""
_COLUMNS = 2
_MOST_SHARES = 2
_WIDTH = 1200  # of a picture: chats and forums show a preview of it without cutting it


class StandardPage(QWidget):
    """What sides say: a sentence, a card for each work, and the facts.

    Of more sides than there are colors, it shows the first ones.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._contents = QWidget()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._contents)

    def show_sides(self, sides: Sequence[Side]) -> None:
        """Show these sides."""
        contents = QWidget()
        if sides:
            self._fill(contents, sides[: len(SIDE_ROLES)])
        self._column.replaceWidget(self._contents, contents)
        self._contents.hide()
        self._contents.deleteLater()  # one of its buttons may be what was pressed
        self._contents = contents

    def _fill(self, contents: QWidget, sides: Sequence[Side]) -> None:
        works, names = compared_works(sides), side_names(sides)
        heading, sentence = headline(sides, works)
        trust = TrustChip(self._theme, name="standard.trust")
        trust.show_notice(trust_of_sides(sides))
        column = QVBoxLayout(contents)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(Text(heading, "hero_words", name="standard.heading", wraps=True))
        column.addWidget(Text(sentence, "muted", name="standard.sentence", wraps=True))
        column.addWidget(FlowRow(trust))
        grid = QGridLayout()
        column.addLayout(grid)
        grid.setSpacing(GAP)
        for number, work in enumerate(works):
            card = _work_card(self._theme, work, sides, names)
            grid.addWidget(card, *divmod(number, _COLUMNS))
            grid.setColumnStretch(number % _COLUMNS, 1)
        for line in (*facts_of(sides), f"GPU Studio · standard run {STANDARD}"):
            column.addWidget(Text(line, "muted", wraps=True))


def _side_roles(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the colors of sides; the CPU of a run alone has its usual one."""
    device = sides[0].device
    if len({side.origin for side in sides}) > 1 or device is None or not device.is_cpu:
        return SIDE_ROLES
    return ("cpu", *_CARD_ROLES)


def _work_card(
    theme: Theme, work: ComparedWork, sides: Sequence[Side], names: Sequence[str]
) -> QWidget:
    """Return one work: a bar with its interval for each side, and which difference counts."""
    card = Card(name=f"standard.work.{work.key}")
    note = ElidedText(work.note or _shares(work, names), "muted")
    note.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    line = QHBoxLayout()
    card.column.addLayout(line)
    line.setSpacing(GAP)
    line.addWidget(Text(work.title, "value"))
    line.addWidget(Text(work.unit, "muted"))
    line.addWidget(note, 1)
    bars = ResultBars(theme, name=f"standard.bars.{work.key}", is_dense=True)
    bars.setAccessibleName(f"{work.title}, {work.unit}")
    first = "this PC" if sides[0].is_here else "compared with this" * (len(sides) > 1)
    rows = zip(work.figures, names, _side_roles(sides), strict=False)
    bars.show_bars(
        [
            _bar(work, figure, name, role, "" if place else first)
            for place, (figure, name, role) in enumerate(rows)
        ]
    )
    card.column.addWidget(bars)
    return card


def _share_words(figure: ComparedFigure) -> str:
    return "" if figure.share is None else f"{format_percent(figure.share)} of its ceiling"


def _shares(work: ComparedWork, names: Sequence[str]) -> str:
    """Return how near two devices come to their own ceilings; more have it in their tips."""
    if len(names) > _MOST_SHARES:
        return ""
    shares = zip(names, map(_share_words, work.figures), strict=True)
    return ", ".join(f"{name}: {words}" for name, words in shares if words)


def _bar(work: ComparedWork, figure: ComparedFigure, name: str, role: str, first: str) -> ResultBar:
    if figure.rate is None or figure.interval is None:
        verdict = figure.words or figure.skipped
        return ResultBar(name, role, text="–", verdict=verdict, tip=f"{name}: {verdict}")
    low, high = map(work.shown, figure.interval)
    why = figure.claim.why if figure.claim is not None else ""
    reason = f" It cannot be told which is faster: {why}." if why else ""
    shown = f"{work.shown(figure.rate)} {work.unit}, 95 % interval {low} to {high}"
    parts = ", ".join(filter(None, (shown, _share_words(figure))))
    return ResultBar(
        name, role, figure.rate, work.shown(figure.rate),
        interval=figure.interval,
        verdict=first or figure.words,
        counts=bool(figure.sign),
        tip=f"{name}: {parts}.{reason}",
    )  # fmt: skip


# ── to share ─────────────────────────────────────────────────────────────────────────────────────


def standard_picture(sides: Sequence[Side], theme: Theme) -> bytes:
    """Return sides as a PNG file with the first one's standard run inside, without identifiers."""
    sides = masked(sides)
    run = sides[0].run
    assert run is not None
    page = StandardPage(theme)
    page.show_sides(sides)
    page.setContentsMargins(2 * MARGIN, 2 * MARGIN, 2 * MARGIN, MARGIN)
    texts = {CHUNK: shared_json(run)}
    return picture_of(page, _WIDTH, background=theme.colour("window"), texts=texts)


def standard_dialog(
    sides: Sequence[Side], theme: Theme, parent: QWidget | None = None
) -> ShareDialog:
    """Return the dialog that shares sides; of a standard run, with its picture and its data."""
    named = partial(with_pc_name, sides)
    forms = [
        ShareForm("Text", "comparison.md", "Markdown (*.md)",
                  lambda name: to_markdown(named(name)).encode()),
        ShareForm("Table", "comparison.csv", "CSV table (*.csv)",
                  lambda name: to_csv(named(name)).encode()),
    ]  # fmt: skip
    if all(side.run is not None for side in sides):
        picture = ShareForm("Picture", "standard-run.png", "Picture (*.png)",
                            lambda name: standard_picture(named(name), theme))  # fmt: skip
        data = ShareForm("Data", "standard-run.json", "JSON (*.json)",
                         lambda name: _data(named(name)))  # fmt: skip
        forms = [picture, *forms, data]
    return ShareDialog(forms, parent)


def _data(sides: Sequence[Side]) -> bytes:
    run = sides[0].run
    assert run is not None
    return shared_json(run).encode()


def answer(content: bytes) -> bytes:
    """Return the picture of a standard run in JSON; the whole work of a child process."""
    run = decode_standard(content)
    with painting_theme() as theme:
        return standard_picture(sides_of(run), theme)
