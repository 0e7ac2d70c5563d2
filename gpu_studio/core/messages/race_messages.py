"""The messages between window and engine about races.

A race is one run for each contestant, all in turns (`RunInTurns`), by the path of every run:
`RunWorkload` asks for it, `RunFinished` ends it. The messages here add the picture that a run
shows while it works, and the end of the whole race.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.messages.message import Amount, Count, Event, Message, PositiveCount, Seconds
from gpu_studio.core.packed_frame import (  # noqa: TC001  # msgspec reads the annotations
    PackedFrame,
    Side,
)

MOST_CONTESTANTS = 64

Fraction = Annotated[float, Meta(ge=0, le=1)]


class RaceParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that only a run of a race has.

    ``threads`` are the CPU threads that PyTorch uses; None leaves its default, one per core.
    ``photo`` identifies the picture to learn: the SHA-256 of its pixels, or empty for the picture
    of this program.
    """

    threads: PositiveCount | None = None
    photo: str = ""


class Showing(msgspec.Struct, frozen=True, kw_only=True):
    """How a run shows its picture while it works; it changes no result.

    ``photo`` is the picture to learn; None for the picture of this program. Without ``frames``, no
    frame is made.
    """

    frames: bool = True
    photo: PackedFrame | None = None


class RaceTraits(msgspec.Struct, frozen=True, kw_only=True):
    """The traits of a workload that draws a picture.

    ``limit`` names the property of the hardware that limits it: ``arithmetic``, ``launch cost`` or
    ``memory bandwidth``. The finish line is a number of steps; ``step_title`` names them in the
    plural (``tiles``). What they achieve may be a quantity of its own: ``measure_title`` names it
    (``sharpness``), in ``unit`` (dB); both are empty if it is only the steps.
    """

    limit: str
    step_title: str
    default_size: int
    measure_title: str = ""
    unit: str = ""


class FramesOpened(Event, frozen=True, kw_only=True):
    """The size of the frames of a run, before the first one."""

    run_id: str
    width: Side
    height: Side


class FrameReady(Event, frozen=True, kw_only=True):
    """A frame of a run.

    ``number`` counts from 0, the picture before the first step. ``elapsed_s`` is the time of the
    race's own clock: it stands while a frame is copied. ``measure`` is in the unit of its picture,
    ``progress`` the share of all steps. ``power_w`` and ``energy_j`` are as in `RaceOutcome`, until
    now. ``picture`` is the frame, packed (`core.packed_frame`); None where it was left out.
    """

    run_id: str
    number: Count
    elapsed_s: Seconds
    steps: Count
    measure: Amount
    progress: Fraction
    power_w: Amount | None = None
    energy_j: Amount | None = None
    picture: bytes | None = None


class RaceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run came.

    ``seconds`` is the time to the finish line, or the whole time if it was not ``reached``.
    ``finish_steps`` is that line; None from older versions, which raced with other pictures.
    ``power_w`` is the card's mean power over the whole race, in which it idles while others have
    their turns; ``energy_j`` is its energy in all these turns. Both are None if the card does not
    report its power.
    """

    reached: bool
    steps: Count
    seconds: Seconds
    measure: Amount
    progress: Fraction
    finish_steps: PositiveCount | None = None
    power_w: Amount | None = None
    energy_j: Amount | None = None


class ContestantResult(msgspec.Struct, frozen=True, kw_only=True):
    """A contestant at the end of a race.

    ``threads`` is null on a card. ``step_median_s`` and ``verified`` are null if the run was
    stopped or failed; ``failure`` then says why.
    """

    device: str
    threads: PositiveCount | None
    dtype: str
    steps: Count
    finish_steps: PositiveCount | None = None
    power_w: Amount | None = None
    seconds: Seconds
    step_median_s: Seconds | None
    reached: bool
    verified: bool | None
    device_name: str = ""
    energy_j: Amount | None = None
    failure: str = ""
    recording: str | None = None


class RaceFinished(Message, frozen=True, kw_only=True):
    """The end of a race.

    ``leader`` is the index of the fastest contestant, null if no winner can be claimed. ``ratio``
    says how many times faster it is than the next one; in a tie it is about 1. ``ratio_low`` and
    ``ratio_high`` are its 95 % interval, null without a ratio and in races of older versions.
    ``undecided`` says that the results allow neither a winner nor a tie.
    """

    picture: str
    size: PositiveCount
    contestants: Annotated[tuple[ContestantResult, ...], Meta(max_length=MOST_CONTESTANTS)]
    leader: Count | None
    ratio: Amount | None
    ratio_low: Amount | None = None
    ratio_high: Amount | None = None
    undecided: bool
    sentence: str
