"""Standard runs side by side: on Devices and on a picture, and the dialog that shares that one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QPixmap
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.benchmark.comparison import (
    compared_works,
    facts_of,
    headline,
    side_names,
    sides_of,
    trust_of_sides,
    with_pc_name,
)
from gpu_studio.core.benchmark.standard import STANDARD
from gpu_studio.core.benchmark.standard_record import CHUNK, decode_standard, shared_json
from gpu_studio.core.notice import Notice
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.units import format_percent
from gpu_studio.model.page_model import Bar
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, resize_on_screen
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.saving import painting_theme, picture_of, save_as
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.comparison import ComparedFigure, ComparedWork, Side
    from gpu_studio.ui.theme import Theme

_CARD_ROLES = ("gpu0", "gpu1", "gpu2", "other", "allocated", "compared")
SIDE_ROLES = (*_CARD_ROLES[:-1], "cpu", _CARD_ROLES[-1])
"""The colors of this PC and of the files beside it; a name is always beside a color."""
_COLUMNS = 2
_MOST_SHARES = 2
_WIDTH = 1200  # of a picture: chats and forums show a preview of it without cutting it
_DIALOG_SIZE = (820, 640)
_LONGEST_NAME = 60
_PREVIEW_WIDTH = 760
_MASKED = "Names of the user and this PC, UUIDs, serial numbers and folders are not in it."
_STRIPPED = (
    "The picture has the data inside, from which GPU Studio opens it again. Chat programs may take "
    "the data out: send the data as well."
)


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
        trust = TrustChip(name="standard.trust")
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
        roles = _side_roles(sides)
        for number, work in enumerate(works):
            grid.addWidget(_work_card(self._theme, work, names, roles), *divmod(number, _COLUMNS))
            grid.setColumnStretch(number % _COLUMNS, 1)
        facts = Card(name="standard.facts")
        lines = [f"Each is compared with {names[0]}."] if len(sides) > 1 else []
        source = "GPU Studio" if sides[0].run is None else f"GPU Studio · standard run {STANDARD}"
        lines += [*facts_of(sides), source]
        for line in lines:
            facts.column.addWidget(Text(line, "muted", wraps=True))
        facts.column.addStretch(1)
        row, first = divmod(len(works), _COLUMNS)
        grid.addWidget(facts, row, first, 1, _COLUMNS - first)


def _side_roles(sides: Sequence[Side]) -> tuple[str, ...]:
    """Return the colors of sides; the CPU of a run alone has its usual one."""
    device = sides[0].device
    if len({side.origin for side in sides}) > 1 or device is None or not device.is_cpu:
        return SIDE_ROLES
    return ("cpu", *_CARD_ROLES)


def _work_card(
    theme: Theme, work: ComparedWork, names: Sequence[str], roles: Sequence[str]
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
    bars = ResultBars(theme, name=f"standard.bars.{work.key}")
    bars.setAccessibleName(f"{work.title}, {work.unit}")
    rows = zip(work.figures, names, roles, strict=False)
    bars.show_bars([_bar(work, *row) for row in rows])
    card.column.addWidget(bars)
    card.column.addStretch(1)  # the card beside it may be higher
    return card


def _share_words(figure: ComparedFigure) -> str:
    return "" if figure.share is None else f"{format_percent(figure.share)} of its ceiling"


def _shares(work: ComparedWork, names: Sequence[str]) -> str:
    """Return how near two devices come to their own ceilings; more have it in their tips."""
    if len(names) > _MOST_SHARES:
        return ""
    shares = zip(names, map(_share_words, work.figures), strict=True)
    return ", ".join(f"{name}: {words}" for name, words in shares if words)


def _bar(work: ComparedWork, figure: ComparedFigure, name: str, role: str) -> Bar:
    if figure.rate is None or figure.interval is None:
        words = figure.words
        return Bar(name=name, role=role, text="–", verdict=words, tip=f"{name}: {words}")
    low, high = map(work.shown, figure.interval)
    why = figure.claim.why if figure.claim is not None else ""
    reason = f" It cannot be told which is faster: {why}." if why else ""
    shown = f"{work.shown(figure.rate)} {work.unit}, 95 % interval {low} to {high}"
    parts = ", ".join(filter(None, (shown, _share_words(figure))))
    return Bar(
        name=name, role=role, value=figure.rate, text=work.shown(figure.rate),
        interval=figure.interval,
        verdict=figure.words,
        counts=bool(figure.sign),
        tip=f"{name}: {parts}.{reason}",
    )  # fmt: skip


# ── to share ─────────────────────────────────────────────────────────────────────────────────────


def standard_picture(sides: Sequence[Side], theme: Theme) -> bytes:
    """Return sides as a PNG file without identifiers, with the first one's standard run inside."""
    page = StandardPage(theme)
    page.show_sides([without_identifiers(side) for side in sides])
    page.setContentsMargins(2 * MARGIN, 2 * MARGIN, 2 * MARGIN, MARGIN)
    run = sides[0].run
    texts = {CHUNK: shared_json(run)} if run is not None else {}
    return picture_of(page, _WIDTH, background=theme.colour("window"), texts=texts)


class ShareDialog(QDialog):
    """Shows the picture of sides, and saves or copies it; of a standard run, also its data.

    Args:
        sides: at least one.
        theme: gives the colors.
        parent: the window.

    Attributes:
        contents: the picture that is shown, saved or copied, as a PNG file.
    """

    def __init__(self, sides: Sequence[Side], theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("share")
        self.setWindowTitle("Share the result")
        resize_on_screen(self, _DIALOG_SIZE)
        self._sides, self._theme, self.contents = sides, theme, b""
        self._has_data = sides[0].run is not None
        self._name = QLineEdit()
        self._name.setObjectName("share.name")
        self._name.setAccessibleName("Name of this PC")
        self._name.setPlaceholderText("Name of this PC (optional)")
        self._name.setMaxLength(_LONGEST_NAME)
        self._name.editingFinished.connect(self._show)
        self._picture = QLabel()
        self._picture.setAccessibleName("The picture")
        self._picture.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        scrolled = QScrollArea()
        scrolled.setWidgetResizable(True)
        scrolled.setWidget(self._picture)
        words = f"{_MASKED} {_STRIPPED}" if self._has_data else _MASKED
        self._message = Text(words, "muted", name="share.said", wraps=True)
        column = QVBoxLayout(self)
        for part in (self._name, scrolled, self._message, self._buttons()):
            column.addWidget(part)
        column.setStretchFactor(scrolled, 1)
        self._show()

    def _buttons(self) -> QDialogButtonBox:
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        offers = [("Copy", "copy", self._copy), ("Save picture…", "save", self._save_picture)]
        offers += [("Save data…", "data", self._save_data)] if self._has_data else []
        for title, name, act in offers:
            added = buttons.addButton(title, QDialogButtonBox.ButtonRole.ActionRole)
            added.setObjectName(f"share.{name}")
            added.clicked.connect(act)
        for button in buttons.findChildren(QPushButton):
            button.setAutoDefault(False)  # Return in the name must not save
        buttons.rejected.connect(self.reject)
        return buttons

    @property
    def _named(self) -> Sequence[Side]:
        return with_pc_name(self._sides, " ".join(self._name.text().split()))

    def _show(self) -> None:
        self.contents = standard_picture(self._named, self._theme)
        ratio = self.devicePixelRatioF()
        image = QImage.fromData(self.contents).scaledToWidth(
            round(_PREVIEW_WIDTH * ratio), Qt.TransformationMode.SmoothTransformation
        )
        image.setDevicePixelRatio(ratio)
        self._picture.setPixmap(QPixmap.fromImage(image))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setImage(QImage.fromData(self.contents))
        self._message.setText(f"Copied. {_MASKED}")

    def _save_picture(self) -> None:
        self._save("picture", "standard-run.png", "Picture (*.png)", self.contents)

    def _save_data(self) -> None:
        run = self._named[0].run
        assert run is not None
        self._save("data", "standard-run.json", "JSON (*.json)", shared_json(run).encode())

    def _save(self, what: str, name: str, kind: str, contents: bytes) -> None:
        notice = save_as(self, f"Save {what}", name, kind, contents)
        if notice != Notice():
            self._message.setText(notice.sentence)


def answer(content: bytes) -> bytes:
    """Return the picture of a standard run in JSON; the whole work of a child process."""
    run = decode_standard(content)
    with painting_theme() as theme:
        return standard_picture(sides_of(run), theme)
