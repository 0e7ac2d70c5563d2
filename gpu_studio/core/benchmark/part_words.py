"""Where the time of a call goes, in words: for the bar's sentence and for its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import format_duration, format_percent

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished

# What each part is to somebody who never heard of it; other names explain themselves.
_MEANINGS = {
    "copy in": "bringing the operands onto the card",
    "launch": "asking the card",
    "compute": "computing",
    "copy out": "bringing the result back",
    "loading": "reading and preparing the data",
    "copy": "copying",
    "copying": "bringing the data onto the device",
    "computing": "computing",
}


def part_rows(result: RunFinished) -> list[tuple[str, str, str]]:
    """Return each part of a call with its time and its share of their sum."""
    total_s = sum(result.parts_s.values())
    return [
        (name, format_duration(part_s), format_percent(part_s / total_s) if total_s else "–")
        for name, part_s in result.parts_s.items()
    ]


def parts_sentence(result: RunFinished, device: str) -> str:
    """Return what takes the most time of a call; empty where it was not split.

    Args:
        result: with its ``parts_s``.
        device: what its device is called.
    """
    total_s = sum(result.parts_s.values())
    if not total_s:
        return ""
    name, longest_s = max(result.parts_s.items(), key=lambda part: part[1])
    if len(result.parts_s) == 1:
        return f"{device}: all of {format_duration(total_s)} is {_MEANINGS.get(name, name)}."
    return (
        f"{device}: {format_percent(longest_s / total_s)} of {format_duration(total_s)} is "
        f"{_MEANINGS.get(name, name)}."
    )
