"""A race on its way into a picture file, and a ghost on its way out of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import KeptRun, run_of
from gpu_studio.core.device_name import name_at
from gpu_studio.core.listing import listed
from gpu_studio.core.moments import shown_moment
from gpu_studio.core.race.contestant import Contestant, is_raceable
from gpu_studio.core.race.frames import RaceFrame, RaceTrack
from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S
from gpu_studio.core.race.shared_race import picture_order
from gpu_studio.model.race.race_entries import RaceEntry
from gpu_studio.model.race.race_side import RaceSide

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.core.race.shared_race import PictureOrder, SharedRace
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


def ghost_of(shared: SharedRace) -> RaceSide | None:
    """Return the fastest contestant of a saved race as a ghost; None if none can be raced.

    Older versions drew other pictures, to another finish line.
    """
    leader = shared.race.leader
    order = sorted(
        range(len(shared.runs)),
        key=lambda index: (index != leader, shared.race.contestants[index].seconds),
    )
    index = next((one for one in order if is_raceable(shared.runs[one].result)), None)
    if index is None:
        return None
    run, result = shared.runs[index], shared.runs[index].result
    assert result is not None
    track = RaceTrack(
        tuple(
            RaceFrame(point.elapsed_s, point.steps, point.measure, point.progress)
            for point in run.points
        )
    )
    return ghost_side(result, run.name, f"saved {shown_moment(shared.made_at)[:10]}", track)


def ghost_side(result: RunFinished, name: str, origin: str, track: RaceTrack) -> RaceSide:
    """Return a finished run from elsewhere as a side of a race.

    Args:
        result: its result.
        name: the contestant's name.
        origin: where it comes from, in words: ``saved 2026-11-22``.
        track: its way to the finish line.
    """
    # Whatever this PC claims of it says that it comes from elsewhere.
    labeled = msgspec.structs.replace(result, recording=result.recording or origin)
    finished = run_of(KeptRun(kept_at="", budget_s=DEFAULT_BUDGET_S, result=labeled))
    race = result.race
    contestant = Contestant(
        device=result.device,
        threads=race.threads if race is not None else None,
        dtype=result.dtype,
        own_kernel=result.has_own_kernel,
    )
    entry = RaceEntry(contestant, f"{name}, {origin}")
    return RaceSide(entry, finished, track, origin=origin)
