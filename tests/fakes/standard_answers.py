"""What an engine says of the runs of a standard run."""

from collections.abc import Iterator
from typing import Any

from gpu_studio.core.benchmark.standard import STANDARD_1
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import OtherLoad, RunHeat, RunWorkload
from tests.fakes.run_answers import finished, run_events, samples_of

ITEMS = {(one.workload, one.dtype, *sorted(one.options.items())): one for one in STANDARD_1}


def measured(request: RunWorkload) -> Iterator[Event]:
    """Yield a run of an item, whose throughput is that of its median."""
    item = ITEMS[(request.workload, request.dtype, *sorted(request.options.items()))]
    result = finished(request, samples_of(request))
    changes: dict[str, Any] = {
        "throughput": item.work / result.median_s,
        "throughput_unit": item.unit,
        "other_load": OtherLoad(percent=30.0, program="alices-game.exe"),
        "verification": "see /home/alice/proof",
        "heat": RunHeat(first_clock_mhz=1700.0, highest_temperature_c=71.0)
        if request.load
        else None,
    }
    yield from run_events(request, **changes)
