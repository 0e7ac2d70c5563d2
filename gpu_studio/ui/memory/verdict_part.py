"""A verdict about memory with its bar, for the pages that answer in that form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.page import Box, Own
from gpu_studio.ui.page_parts import Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.answer import FitVerdict
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme


def verdict_part(theme: Theme, verdict: Callable[[], FitVerdict], name: str) -> Part:
    """Return the box of a verdict; its parts are called ``name.verdict``, ``.tank``, ``.told``."""
    return Box(
        Words(lambda: verdict().notice, "title", name=f"{name}.verdict"),
        Own(
            lambda: TankBar(theme, name=f"memory.{name}.tank"),
            lambda bar: bar.show_tank(verdict().tank),
            name=f"{name}.tank",
            shown=lambda: verdict().tank is not None,
        ),
        Words(lambda: verdict().told, "muted", name=f"{name}.told"),
        tone=lambda: verdict().notice.tone,
        shown=lambda: bool(verdict().notice.sentence),
        name=f"{name}.answer",
    )
