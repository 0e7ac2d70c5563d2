"""Notes on the hot spot and on the memory's temperature; neither ever fails a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.check.hot_spot import (
    HOT_MEMORY_C,
    WIDE_GAP_C,
    gap_sentence,
    largest_steady_gap_c,
    memory_sentence,
)

if TYPE_CHECKING:
    from gpu_studio.core.messages.check_messages import FindingKind
    from gpu_studio.engine.check.stage import StageBench


def report_hot_spot(bench: StageBench, noted: set[FindingKind]) -> None:
    """Note a wide gap of the hot spot, and hot memory, each once.

    Args:
        bench: with the readings of the stage.
        noted: the kinds that were noted before; those noted now are added.
    """
    gap_c = largest_steady_gap_c(bench.readings)
    if gap_c is not None and gap_c > WIDE_GAP_C and "hotspot_gap" not in noted:
        noted.add("hotspot_gap")
        bench.report("hotspot_gap", "note", gap_sentence(gap_c))
    degrees = [one.vitals.memory_temperature_c for one in bench.readings]
    memory_c = max((one for one in degrees if one is not None), default=None)
    if memory_c is not None and memory_c >= HOT_MEMORY_C and "hot_memory" not in noted:
        noted.add("hot_memory")
        bench.report("hot_memory", "note", memory_sentence(memory_c))
