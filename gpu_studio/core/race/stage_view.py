"""What stands on the stage of a race at a moment, and the orders to paint it in a child."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from gpu_studio.core.packed_frame import PackedFrame  # noqa: TC001  # msgspec reads it
from gpu_studio.core.race.photo import Detail  # noqa: TC001  # msgspec reads it
from gpu_studio.core.race.shared_race import PictureOrder

MOST_MOMENTS = 150
FRAMES_PER_S = 10
LONGEST_RACE_S = 11.0
"""Longer races are shown faster, so that the whole takes at most 15 s."""
RESULT_MS = 3500


class StageSide(NamedTuple):
    """A contestant at a moment, in words and figures, with its picture."""

    name: str
    role: str
    picture: PackedFrame | None = None
    clock: str = ""
    pace: str = ""
    steps: str = ""
    achieved: str = ""
    share: float = 0.0
    is_reached: bool = False


class StageView(NamedTuple):
    """What is on the stage at a moment.

    Attributes:
        headline: who leads, or the result.
        sides: the contestants.
        detail: the words below the headline.
        foot: what was raced.
        trust: how certain the result is, in a few words.
        is_good: whether it can be trusted.
        lens: what a lens shows of each picture; None without one.
    """

    headline: str
    sides: tuple[StageSide, ...]
    detail: str = ""
    foot: str = ""
    trust: str = ""
    is_good: bool = True
    lens: Detail | None = None


class FilmOrder(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """All moments of an animation, each with the time that it is shown, in milliseconds.

    ``size`` is in pixels.
    """

    moments: Annotated[
        tuple[tuple[StageView, int], ...], Meta(min_length=1, max_length=MOST_MOMENTS)
    ]
    size: tuple[int, int] = (960, 540)


def encode_order(order: FilmOrder | PictureOrder) -> bytes:
    """Return an order for the painter's standard input."""
    return msgspec.msgpack.encode(order)


def decode_order(content: bytes) -> FilmOrder | PictureOrder:
    """Return an order of this program's own; raise `ValueError` for anything else."""
    return msgspec.msgpack.decode(content, type=FilmOrder | PictureOrder)


def times_of(last_s: float) -> list[tuple[float, int]]:
    """Return the race's clock at each frame of a race, and how long it is shown, in milliseconds.

    The last frame is the result. A long race is shown faster.
    """
    speed = max(1.0, last_s / LONGEST_RACE_S)
    step_s = speed / FRAMES_PER_S
    frame_ms = round(1000 / FRAMES_PER_S)
    moments = [(number * step_s, frame_ms) for number in range(int(last_s / step_s) + 1)]
    return [*moments[: MOST_MOMENTS - 1], (last_s, RESULT_MS)]
