"""A race to save as a picture."""

from __future__ import annotations

from typing import Any

import msgspec

from gpu_studio.core.messages.race_messages import ContestantResult, RaceFinished
from gpu_studio.core.packed_frame import PackedFrame, pack_rows
from gpu_studio.core.race.shared_race import (
    PictureOrder,
    RacePoint,
    SharedRace,
    SharedRun,
)


def contestant(device: str = "cpu", seconds: float = 37.0, **changes: Any) -> ContestantResult:
    plain = ContestantResult(
        device=device, threads=4 if device == "cpu" else None, dtype="float32", steps=600,
        seconds=seconds, step_median_s=seconds / 600, reached=True, verified=True, finish_steps=600,
        device_name="Ryzen 5 5600" if device == "cpu" else "NVIDIA GeForce GT 1030",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def shared_race(**changes: Any) -> SharedRace:
    """Return a race that a card has won."""
    ways = tuple(RacePoint(s / 10, s, s / 4, min(s / 120, 1.0)) for s in range(121))
    race = RaceFinished(
        picture="learn", size=128, leader=1, ratio=3.0, undecided=False,
        contestants=(
            contestant(seconds=12.0, steps=200, reached=False), contestant("cuda:0", 12.0),
        ),
        sentence="Your GT 1030 beat all 4 CPU threads: 3.0\u202f× faster, 50.0 against 16.7 steps "
        "a second.",
    )  # fmt: skip
    plain = SharedRace(
        race=race,
        runs=(SharedRun(name="CPU, 4 threads", points=ways), SharedRun(name="GT 1030")),
        made_at="2026-11-22T11:30:00+00:00", cpu_name="Ryzen 5 5600", card_name="GT 1030",
        torch_version="2.13.0+cu126", measure_title="sharpness", unit="dB",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def order(**changes: Any) -> PictureOrder:
    """Return the same with a gray and a white picture."""
    pictures = tuple(PackedFrame(pack_rows(bytes([level]) * 192), 8, 8) for level in (128, 255))
    return PictureOrder(shared=shared_race(**changes), pictures=pictures)
