"""A tensor as the header of a file of weights describes it, and the refusals of such headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.plain_text import plain_text
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_TENSORS = 300_000  # the largest published mixtures of experts have half of that
MOST_PARAMETERS = 10**14
_LONGEST_SHOWN = 60


class FileTensor(NamedTuple):
    """A tensor: its numbers, its bytes in the file, and its type's name there."""

    name: str
    parameters: int
    size_bytes: int
    type_name: str


class Place(NamedTuple):
    """Where a tensor's bytes are, counted from the first tensor's possible place."""

    begin: int
    end: int
    name: str


def refuse(sentence: str) -> NoReturn:
    """Refuse a file with a sentence; raises `StudioError`."""
    raise StudioError(FailureKind.BAD_REQUEST, sentence)


def quoted(name: str) -> str:
    """Return a name from a file for a sentence."""
    return f"“{plain_text(name[:_LONGEST_SHOWN])}”"


def check_places(places: Iterable[Place], room_bytes: int, shown: str, *, has_gaps: bool) -> None:
    """Refuse tensors that overlap, leave gaps where none may be, or go past the end of the file.

    Args:
        places: of all tensors.
        room_bytes: the file's bytes behind its header.
        shown: the file's name.
        has_gaps: whether the format pads its tensors.
    """
    end, last = 0, ""
    for place in sorted(places):
        if place.begin < end:
            refuse(
                f"{shown} is damaged or forged: its tensors {quoted(last)} and "
                f"{quoted(place.name)} overlap."
            )
        if place.begin > end and not has_gaps:
            refuse(f"{shown} is damaged or forged: nothing says what is before its tensor "
                   f"{quoted(place.name)}.")  # fmt: skip
        end, last = max(end, place.end), place.name
    if end > room_bytes:
        refuse(
            f"{shown} is cut off: its tensors take {format_bytes(end)}, and it has only "
            f"{format_bytes(max(0, room_bytes))} of them. Copy or download it again."
        )
