"""The Switcher's pages over workloads: feeding, mixed precision and cuDNN, several cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.switcher.usable_cards import usable_cards
from gpu_studio.model.benchmark.comparison import ComparisonModel
from gpu_studio.ui.parts import Text
from gpu_studio.ui.scroll_page import ScrollPage
from gpu_studio.ui.switcher.comparison_card import ComparisonCard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_FEEDING = (
    "A data set is in the PC's memory, a card computes elsewhere. Each way of bringing it there "
    "costs time and memory: see where one batch's time goes, and how much memory each way takes."
)
_AMP = (
    "Automatic mixed precision multiplies in 16 bits and keeps the weights in 32. It pays where "
    "the device has units for it; the loss must go the same way."
)
_CUDNN = (
    "cuDNN knows several ways to compute a convolution. “benchmark” measures them first and takes "
    "the fastest; “deterministic” takes only those that give the same bits again."
)
_CARDS = (
    "One batch is split over several workers, and their gradients are put together. It pays where "
    "the computing takes longer than the putting together."
)


def feeding_page(studio: Studio, theme: Theme) -> QWidget:
    """Return the page over the workload ``dataloader``."""
    return _page(studio, theme, "Feeding the device", (("dataloader", _FEEDING),))


def amp_page(studio: Studio, theme: Theme) -> QWidget:
    """Return the page over the workloads ``train_step`` and ``conv2d``."""
    return _page(
        studio, theme, "Mixed precision, speed and the same bits again",
        (("train_step", _AMP), ("conv2d", _CUDNN)),
    )  # fmt: skip


def cards_page(studio: Studio, theme: Theme) -> QWidget:
    """Return the page over the workload ``data_parallel``."""
    description = studio.session.description
    cards = len(usable_cards(description)) if description else 0
    # With a single card there is nothing to share; the CPU shares among processes.
    checked = {} if cards == 1 else {"processes": ("1", "2")}
    parts = (("data_parallel", _CARDS),)
    return _page(studio, theme, "Several cards at one model", parts, checked)


def _page(
    studio: Studio,
    theme: Theme,
    title: str,
    parts: tuple[tuple[str, str], ...],
    checked: Mapping[str, Sequence[str]] | None = None,
) -> QWidget:
    page = ScrollPage(title)
    page.column.addWidget(Text(title, "title"))
    for workload, sentence in parts:
        model = ComparisonModel(studio, workload, page)
        page.column.addWidget(ComparisonCard(studio, theme, model, sentence, checked))
    page.column.addStretch(1)
    return page
