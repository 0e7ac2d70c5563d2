"""What the painter of a race's animation needs: every moment in words and pictures."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.packed_frame import PackedFrame  # noqa: TC001  # msgspec reads it

MOST_MOMENTS = 150
FRAMES_PER_S = 10
LONGEST_RACE_S = 11.0
"""Longer races are shown faster, so that the whole takes at most 15 s."""
RESULT_MS = 3500


class AnimatedSide(msgspec.Struct, frozen=True, kw_only=True):
    """A contestant at a moment, in the words of the stage."""

    name: str
    role: str
    picture: PackedFrame | None = None
    clock: str = ""
    pace: str = ""
    steps: str = ""
    achieved: str = ""
    share: float = 0.0
    is_reached: bool = False


class AnimatedMoment(msgspec.Struct, frozen=True, kw_only=True):
    """A frame, and how long it is shown."""

    headline: str
    sides: tuple[AnimatedSide, ...]
    shown_ms: Annotated[int, Meta(ge=1, le=10_000)]
    detail: str = ""
    trust: str = ""


class AnimationOrder(msgspec.Struct, frozen=True, kw_only=True):
    """All frames of an animation.

    ``lens`` is the detail that a lens shows: its middle and its side as shares. ``size`` is in
    pixels; None for the usual one.
    """

    moments: Annotated[tuple[AnimatedMoment, ...], Meta(min_length=1, max_length=MOST_MOMENTS)]
    foot: str = ""
    is_good: bool = True
    lens: tuple[float, float, float] | None = None
    size: tuple[int, int] | None = None


def times_of(last_s: float) -> list[tuple[float, int]]:
    """Return the race's clock at each frame of a race, and how long it is shown, in milliseconds.

    The last frame is the result. A long race is shown faster.
    """
    speed = max(1.0, last_s / LONGEST_RACE_S)
    step_s = speed / FRAMES_PER_S
    frame_ms = round(1000 / FRAMES_PER_S)
    moments = [(number * step_s, frame_ms) for number in range(int(last_s / step_s) + 1)]
    return [*moments[: MOST_MOMENTS - 1], (last_s, RESULT_MS)]


def encode_animation(order: AnimationOrder) -> bytes:
    """Return an order for the painter's standard input."""
    return msgspec.msgpack.encode(order)


def decode_animation(content: bytes) -> AnimationOrder:
    """Return an order of this program's own.

    Raises:
        ValueError: it is none.
    """
    return msgspec.msgpack.decode(content, type=AnimationOrder)


def with_picture(side: AnimatedSide, picture: PackedFrame | None) -> AnimatedSide:
    """Return a contestant at the same moment, with its picture."""
    return msgspec.structs.replace(side, picture=picture)
