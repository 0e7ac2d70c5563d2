"""The faults that a check can make on purpose, to show that its detectors work."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.check_messages import STAGE_NAMES, PlantKind, StageName

_ALL = STAGE_NAMES
_TIMED: tuple[StageName, ...] = ("load", "link")


class PlantedFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in words; ``found_by`` are the stages that find it."""

    kind: PlantKind
    title: str
    does: str
    found_by: tuple[StageName, ...]


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        kind="bit",
        title="A flipped bit",
        does="One bit of each result is flipped.",
        found_by=_ALL,
    ),
    PlantedFault(
        kind="stuck",
        title="A stale result",
        does="A result is replaced by the one before it.",
        found_by=_ALL,
    ),
    PlantedFault(
        kind="swap",
        title="Swapped blocks",
        does="Two blocks of each result change places.",
        found_by=_ALL,
    ),
    PlantedFault(
        kind="drop",
        title="A lost write",
        does="A part of each result is not written, so that the old values stay.",
        found_by=_ALL,
    ),
    PlantedFault(
        kind="slow",
        title="A slow step",
        does="One step takes ten times as long, each time.",
        found_by=_TIMED,
    ),
    PlantedFault(
        kind="throttle",
        title="Throttling",
        does="The card's sensors report a hot card that slows itself down.",
        found_by=_ALL,
    ),
    PlantedFault(
        kind="hot",
        title="Heat without a reason",
        does="The card's sensors report 105 °C, and no reason for its clock.",
        found_by=_ALL,
    ),
    PlantedFault(
        kind="late_heat",
        title="Heat that comes late",
        does="From second 13 on, the sensors report a hot card at 300 MHz.",
        found_by=_ALL,
    ),
    PlantedFault(
        kind="edge",
        title="An unstable start",
        does="The first work after a rest has a flipped bit.",
        found_by=("steps",),
    ),
    PlantedFault(
        kind="slow_memory",
        title="Memory that tires",
        does="The memory of a hot card takes a quarter longer for each copy.",
        found_by=("load",),
    ),
)
PLANTED_MARK = "Fault made on purpose: not a real result."
"""Stands with every result of a check with a planted fault."""


def planted_fault(kind: PlantKind) -> PlantedFault:
    """Return the fault of a kind."""
    return next(fault for fault in PLANTED_FAULTS if fault.kind == kind)
