"""The way to the devices that compute without PyTorch, for each page that can use them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from gpu_studio.ui.page_parts import Press, Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.adapters_here import AdaptersHere

_TIP = (
    "Without PyTorch: by Vulkan, DirectX 12 or OpenGL, also on cards that PyTorch cannot use. It "
    "asks the graphics drivers, which wakes a sleeping card."
)


class AdapterPage(Protocol):
    """What a page's model has for it."""

    adapters: AdaptersHere

    def choose_adapters(self) -> None:
        """Choose what was found."""


def ask_press(model: AdapterPage, shown: Callable[[], bool] = lambda: True) -> Press:
    """Return the button that asks the graphics drivers; it goes once they have answered.

    Args:
        model: the page's.
        shown: whether there is room for it now.
    """
    adapters = model.adapters
    return Press(
        "By Vulkan…", partial(adapters.ask, model.choose_adapters), link=True, name="adapters",
        tip=_TIP, shown=lambda: adapters.can_ask and shown(),
    )  # fmt: skip


def ask_words(model: AdapterPage) -> Words:
    """Return what is missing, or that the drivers are asked."""
    return Words(lambda: model.adapters.said, name="adapters.note")
