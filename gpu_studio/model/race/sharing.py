"""A race on its way into a file: the order of its picture, and its recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import name_at
from gpu_studio.core.listing import listed
from gpu_studio.core.race.frames import kept_frames
from gpu_studio.core.race.shared_race import picture_order
from gpu_studio.model.benchmark.recording import recording_from

if TYPE_CHECKING:
    from gpu_studio.core.race.shared_race import PictureOrder
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.studio import Studio


def order_of(
    race: Race, studio: Studio, made_at: str, roles: tuple[str, ...] = ()
) -> PictureOrder | None:
    """Return all that stands on the picture of a race; None before its end.

    Args:
        race: a race.
        studio: has the devices and the engine.
        made_at: the present time in ISO 8601.
        roles: the colors of the contestants' devices; empty for those of their numbers.
    """
    if race.verdict is None:
        return None
    pcs = dict.fromkeys(studio.pcs.of(side.run.request.device) for side in race.sides)
    inventories = ((pc.name, pc.sensors.inventory) for pc in pcs)
    cpus = [name_at(name, found.cpu.name) for name, found in inventories if found is not None]
    engine = next(iter(pcs)).session.description
    return picture_order(
        race.raced,
        race.verdict,
        [side.run for side in race.sides],
        [side.track for side in race.sides],
        made_at=made_at,
        cpu_name=listed(cpus),
        torch_version=engine.torch_version if engine is not None else "",
        names=[side.entry.label for side in race.sides],
        roles=roles,
    )


def recorded(race: Race, studio: Studio, recorded_at: str, *, keeps_pictures: bool) -> bytes:
    """Return the runs of this window's race as the contents of a recording.

    Args:
        race: a race that is over.
        studio: has the devices and the engine.
        recorded_at: the present time in ISO 8601.
        keeps_pictures: whether the recording also shows the pictures.

    Raises:
        StudioError: no run of this race was made here.
    """
    sides = [side for side in race.sides if side.run.recording is None]
    runs, tracks = [side.run for side in sides], [side.track for side in sides]
    frames = kept_frames(runs, tracks) if keeps_pictures else None
    return recording_from(studio, runs, recorded_at, frames)
