"""Standard runs on a picture with the run inside, and the dialog that shares them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from gpu_studio.core.benchmark.standard import STANDARD
from gpu_studio.core.benchmark.standard_record import CHUNK, decode_standard, shared_json
from gpu_studio.core.benchmark.standard_words import (
    compared_works,
    headline,
    masked,
    run_facts,
    sides_of,
    to_csv,
    to_markdown,
    trust_of,
    with_pc_name,
)
from gpu_studio.ui.benchmark.comparison_sheet import SIDE_ROLES, ComparisonSheet
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Text
from gpu_studio.ui.png import painting_theme, picture_of
from gpu_studio.ui.share_dialog import ShareDialog, ShareForm
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.standard_words import Side
    from gpu_studio.ui.theme import Theme

_WIDTH = 1200  # chats and forums show a preview of it without cutting it


def standard_page(sides: Sequence[Side], theme: Theme) -> QWidget:
    """Return what sides say, without controls; of more than there are colors, the first ones."""
    sides = sides[: len(SIDE_ROLES)]
    heading, sentence = headline(sides, compared_works(sides))
    trust = TrustChip(theme, name="standard.trust")
    trust.show_notice(trust_of(sides))
    sheet = ComparisonSheet(theme, is_still=True)
    sheet.show_sides(sides)
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(GAP)
    for part in (
        Text(heading, "hero_words", name="standard.heading", wraps=True),
        Text(sentence, "muted", wraps=True),
        FlowRow(trust),
        sheet,
        *(Text(line, "muted", wraps=True) for line in run_facts(sides)),
        Text(f"GPU Studio · standard run {STANDARD}", "muted"),
    ):
        column.addWidget(part)
    return page


def standard_picture(sides: Sequence[Side], theme: Theme) -> bytes:
    """Return sides as a PNG file with the first one's run inside, without identifiers."""
    sides = masked(sides)
    page = standard_page(sides, theme)
    page.setContentsMargins(2 * MARGIN, 2 * MARGIN, 2 * MARGIN, MARGIN)
    texts = {CHUNK: shared_json(sides[0].run)}
    return picture_of(page, _WIDTH, background=theme.colour("window"), texts=texts)


def standard_dialog(
    sides: Sequence[Side], theme: Theme, parent: QWidget | None = None
) -> ShareDialog:
    """Return the dialog that shares sides; its data are the run of the first one."""
    named = partial(with_pc_name, sides)
    forms = (
        ShareForm("Picture", "standard-run.png", "Picture (*.png)",
                  lambda name: standard_picture(named(name), theme)),
        ShareForm("Text", "standard-run.md", "Markdown (*.md)",
                  lambda name: to_markdown(named(name)).encode()),
        ShareForm("Table", "standard-run.csv", "CSV table (*.csv)",
                  lambda name: to_csv(named(name)).encode()),
        ShareForm("Data", "standard-run.json", "JSON (*.json)",
                  lambda name: shared_json(named(name)[0].run).encode()),
    )  # fmt: skip
    return ShareDialog(forms, parent)


def answer(content: bytes) -> bytes:
    """Return the picture of a standard run in JSON; the whole work of a child process."""
    run = decode_standard(content)
    with painting_theme() as theme:
        return standard_picture(sides_of(run), theme)
