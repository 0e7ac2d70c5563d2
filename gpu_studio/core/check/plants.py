"""The faults that a check can make on purpose, to show that its detectors work."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.check_messages import STAGE_NAMES, PlantKind, StageName


class PlantedFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in words; ``found_by`` are the stages that find it."""

    kind: PlantKind
    title: str
    does: str
    found_by: tuple[StageName, ...]


_ROWS: tuple[tuple[PlantKind, str, str, tuple[StageName, ...]], ...] = (
    ("bit", "A flipped bit", "One bit of each result is flipped.", STAGE_NAMES),
    ("stuck", "A stale result", "A result is replaced by the one before it.", STAGE_NAMES),
    ("swap", "Swapped blocks", "Two blocks of each result change places.", STAGE_NAMES),
    ("drop", "A lost write",
     "A part of each result is not written, so that the old values stay.", STAGE_NAMES),
    ("slow", "A slow step", "One step takes ten times as long, each time.", ("load", "link")),
    ("throttle", "Throttling",
     "The card's sensors report a hot card that slows itself down.", STAGE_NAMES),
    ("hot", "Heat without a reason",
     "The card's sensors report 105 °C, and no reason for its clock.", STAGE_NAMES),
    ("late_heat", "Heat that comes late",
     "From second 13 on, the sensors report a hot card at 300 MHz.", STAGE_NAMES),
    ("edge", "An unstable start", "The first work after a rest has a flipped bit.", ("load",)),
    ("slow_memory", "Memory that tires",
     "The memory of a hot card takes a quarter longer for each copy.", ("load",)),
)  # fmt: skip
PLANTED_FAULTS: tuple[PlantedFault, ...] = tuple(
    PlantedFault(kind=kind, title=title, does=does, found_by=found_by)
    for kind, title, does, found_by in _ROWS
)
PLANTED_MARK = "Fault made on purpose: not a real result."
"""Stands with every result of a check with a planted fault."""


def planted_fault(kind: PlantKind) -> PlantedFault:
    """Return the fault of a kind."""
    return next(fault for fault in PLANTED_FAULTS if fault.kind == kind)
