"""What a recording is, in words, before anybody watches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.recording import NOT_TOLD
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.recording import Recording

_MOST_SIZES = 6
_NO_PC = "its PC is not told"


def recording_sentences(recording: Recording) -> list[str]:
    """Return where a recording is from, what it has, and what to know of it, a sentence each."""
    sentences = [_origin(recording), _contents(recording)]
    if recording.header.is_simulated:
        sentences.append("The cards were simulated: their times are those of no real card.")
    if recording.is_cut_off:
        sentences.append("Its end is missing: the last run is there as far as it was written.")
    return sentences


def _origin(recording: Recording) -> str:
    header = recording.header
    when = header.recorded_at[:16].replace("T", " at ") or "at a time that is not told"
    named = header.pc.startswith(header.device_name)
    place = header.pc if named else f"{header.device_name} ({header.pc or _NO_PC})"
    torch = header.torch_version or NOT_TOLD
    driver = f", driver {header.driver_version}" if header.driver_version else ""
    return f"Recorded {when} on {place}, PyTorch {torch}{driver}."


def _contents(recording: Recording) -> str:
    count = len(recording.runs)
    runs = f"{count} {'run' if count == 1 else 'runs'}"
    devices = {run.request.device: run.device_name or run.request.device for run in recording.runs}
    works: dict[str, dict[str, None]] = {}
    for run in recording.runs:
        size = format_size(run.request.size, run.size_text)
        works.setdefault(run.request.workload, {})[size] = None
    what = "; ".join(f"{name} at {_sizes(list(sizes))}" for name, sizes in works.items())
    took = format_duration(recording.spent_s)
    return f"{runs} on {', '.join(devices.values())}, {took} at its own pace: {what}."


def _sizes(sizes: list[str]) -> str:
    if len(sizes) > _MOST_SIZES:
        return f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]}"
    return ", ".join(sizes)
