"""The list of pitfalls, and how to run one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import PitfallFinished, PitfallStarted, RunPitfall
from gpu_studio.core.pause import SleepAlarm
from gpu_studio.core.switcher.pitfall_words import compare_parts
from gpu_studio.engine.device import accelerator_of, complete, prove_kernels, resolve
from gpu_studio.engine.pitfalls.measured import (
    Float16OnOldCard,
    ModelOnCpu,
    NoSynchronize,
    TinyModel,
)
from gpu_studio.engine.pitfalls.new_processes import (
    FreshResults,
    StarvedGpu,
    StickyError,
    VisibleDevicesTooLate,
)
from gpu_studio.engine.pitfalls.out_of_memory import OutOfMemory
from gpu_studio.engine.pitfalls.pitfall import Bench
from gpu_studio.engine.pitfalls.real_errors import ExceptionKeepsTensors, MixedDevices, OldAmpImport
from gpu_studio.engine.sensor import CpuWatch

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
    from gpu_studio.engine.pitfalls.pitfall import Pitfall

# The six from the book's chapter come first, then the ones that this program adds.
PITFALLS: tuple[Pitfall, ...] = (
    MixedDevices(),
    ModelOnCpu(),
    OutOfMemory(),
    TinyModel(),
    StarvedGpu(),
    NoSynchronize(),
    Float16OnOldCard(),
    VisibleDevicesTooLate(),
    ExceptionKeepsTensors(),
    StickyError(),
    OldAmpImport(),
    FreshResults(),
)
_PARTS = {"broken": ("broken",), "fixed": ("fixed",), "both": ("broken", "fixed")}


def find_pitfall(name: str) -> Pitfall:
    """Return the pitfall of that name; raises `StudioError` with the known names."""
    for pitfall in PITFALLS:
        if pitfall.description.name == name:
            return pitfall
    names = ", ".join(pitfall.description.name for pitfall in PITFALLS)
    raise StudioError(
        FailureKind.BAD_REQUEST, f"“{name[:30]}” is not a pitfall. Choose one of: {names}."
    )


def run_pitfall(request: RunPitfall, stop: threading.Event) -> Iterator[Event]:
    """Run the broken part, the fixed part or both; yield each part as it begins, then the result.

    Raises:
        StudioError: the pitfall, part or device does not exist, or the user stopped it.
    """
    pitfall = find_pitfall(request.name)
    if request.part not in _PARTS:
        raise StudioError(FailureKind.BAD_REQUEST, "The part must be “broken”, “fixed” or “both”.")
    device = resolve(request.device)
    prove_kernels(device)
    bench = Bench(device, stop)
    snippets, for_card = (
        {part: complete(pitfall.snippet(part, there)) for part in ("broken", "fixed")}
        for there in (request.device, "cuda" if is_cpu(request.device) else request.device)
    )
    outcomes, began_s = {}, time.perf_counter()
    with SleepAlarm() as alarm:
        for part in _PARTS[request.part]:
            bench.check_stop()
            yield PitfallStarted(name=request.name, part=part, snippet=snippets[part])
            outcomes[part] = _run_part(pitfall, part, bench)
            alarm.check()
    otherwise = pitfall.description.otherwise
    compared = compare_parts(otherwise, outcomes.get("broken"), outcomes.get("fixed"))
    yield PitfallFinished(
        name=request.name,
        device=request.device,
        broken=outcomes.get("broken"),
        fixed=outcomes.get("fixed"),
        comparison=compared,
        untested=untested_sentence(accelerator_of(device).maker),
        broken_snippet=for_card["broken"],
        fixed_snippet=for_card["fixed"],
        snippet=snippets[_PARTS[request.part][-1]],
        elapsed_s=time.perf_counter() - began_s,
    )


def _run_part(pitfall: Pitfall, part: str, bench: Bench) -> PitfallOutcome:
    """Run one part on its device, then empty PyTorch's cache."""
    card, watch = accelerator_of(bench.device), CpuWatch()
    try:
        watch.begin()
        # Some of PyTorch, an optimizer for example, uses the current card.
        with card.current(bench.device):
            outcome = pitfall.run(part, bench)
        watch.end()
        return msgspec.structs.replace(outcome, is_disturbed=watch.other_processes is True)
    finally:
        if card.is_started():
            card.empty_cache()
