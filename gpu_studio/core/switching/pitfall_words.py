"""The lab's numbers as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import (
    format_bytes,
    format_duration,
    format_percent,
    format_ratio,
    three_digits,
)

if TYPE_CHECKING:
    from gpu_studio.core.messages.pitfall_messages import Figure


def format_figure(figure: Figure) -> str:
    """Return a figure's value with its unit."""
    match figure.unit:
        case "s":
            return format_duration(figure.value)
        case "bytes":
            return format_bytes(figure.value)
        case "share":
            return format_percent(figure.value)
        case "×":
            return format_ratio(figure.value)
        case _:
            whole = figure.value == int(figure.value)
            return str(int(figure.value)) if whole else three_digits(figure.value)
