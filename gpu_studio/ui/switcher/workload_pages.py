"""The Switcher's workload pages: feeding, mixed precision and cuDNN, several cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.benchmark.comparison_model import ComparisonModel
from gpu_studio.model.pages import AMP, FEEDING, SEVERAL_CARDS
from gpu_studio.ui.parts import Text
from gpu_studio.ui.scroll_page import PageColumn
from gpu_studio.ui.switcher.comparison_card import ComparisonCard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.pages import Page
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_FEEDING = (
    "Your data is in the PC's memory, but a card computes in its own memory. Compare the time and "
    "memory that each way of copying a batch takes."
)
_AMP = (
    "Automatic mixed precision multiplies in 16 bits and keeps the weights in 32 bits. It helps on "
    "cards with hardware support. The loss should take the same course."
)
_CUDNN = (
    "cuDNN has several algorithms for a convolution. “benchmark” times them first and uses the "
    "fastest. “deterministic” uses only algorithms with bit-for-bit reproducible results."
)
_CARDS = (
    "One batch is split over several workers, and their gradients are combined. It helps if "
    "computing takes longer than combining the results."
)


def feeding_page(studio: Studio, theme: Theme) -> QWidget:
    """Return the page of the workload ``dataloader``."""
    return _page(studio, theme, FEEDING, "Data loading", (("dataloader", _FEEDING),))


def amp_page(studio: Studio, theme: Theme) -> QWidget:
    """Return the page of the workloads ``train_step`` and ``conv2d``."""
    return _page(
        studio, theme, AMP, "Mixed precision, speed and reproducibility",
        (("train_step", _AMP), ("conv2d", _CUDNN)),
    )  # fmt: skip


def cards_page(studio: Studio, theme: Theme) -> QWidget:
    """Return the page of the workload ``data_parallel``."""
    cards = len(studio.board.usable_cards)
    # A single card has nothing to split the work with; the CPU splits it among processes.
    checked = {} if cards == 1 else {"processes": ("1", "2")}
    parts = (("data_parallel", _CARDS),)
    return _page(studio, theme, SEVERAL_CARDS, "One model on several cards", parts, checked)


def _page(
    studio: Studio,
    theme: Theme,
    shown_on: Page,
    title: str,
    parts: tuple[tuple[str, str], ...],
    checked: Mapping[str, Sequence[str]] | None = None,
) -> QWidget:
    page = PageColumn(title)
    page.column.addWidget(Text(title, "title"))
    for place, (workload, sentence) in enumerate(parts):
        model = ComparisonModel(studio, workload, shown_on, page)
        page.column.addWidget(
            ComparisonCard(studio, theme, model, sentence, checked, is_primary=place == 0)
        )
    page.column.addStretch(1)
    return page
