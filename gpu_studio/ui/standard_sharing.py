"""The ways to share a standard run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.standard_card import standard_card
from gpu_studio.core.benchmark.standard_page import standard_page
from gpu_studio.core.benchmark.standard_text import standard_markdown
from gpu_studio.core.benchmark.standard_words import with_pc_name
from gpu_studio.ui.result_card import png_of_result
from gpu_studio.ui.share_dialog import ShareChoices, ShareDialog, ShareForm

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.standard_record import StandardRun


def standard_dialog(run: StandardRun, parent: QWidget | None = None) -> ShareDialog:
    """Return the dialog that shares a standard run."""

    def named(choices: ShareChoices) -> StandardRun:
        return with_pc_name(run, choices.pc_name)

    forms = (
        ShareForm(
            "Picture", "standard-run.png", "Picture (*.png)",
            lambda chosen: png_of_result(standard_card(named(chosen), is_dark=chosen.is_dark)),
        ),
        ShareForm(
            "Page", "standard-run.html", "Web page (*.html)",
            lambda chosen: standard_page(named(chosen)),
        ),
        ShareForm(
            "Text", "standard-run.md", "Markdown (*.md)",
            lambda chosen: standard_markdown(named(chosen)).encode(),
        ),
    )  # fmt: skip
    return ShareDialog(forms, has_name=True, parent=parent)
