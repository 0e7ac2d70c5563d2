"""Decides which results can be compared, and says why others cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.options import value_words
from gpu_studio.core.benchmark.trust import computed_in_words
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import counted, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.run_messages import RunFinished


class Comparability(msgspec.Struct, frozen=True):
    """``reasons`` rule a comparison out; ``notes`` must be shown with a comparison."""

    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_comparable(self) -> bool:
        """Whether the two results can be compared."""
        return not self.reasons

    @property
    def sentence(self) -> str:
        """Why the two cannot be compared, or what to know; empty if there is nothing to say."""
        if self.reasons:
            return f"Not comparable: {'; '.join(self.reasons)}."
        return f"Note: {'; '.join(self.notes)}." if self.notes else ""


def comparability_of(result: RunFinished, other: RunFinished) -> Comparability:
    """Return whether two results measured the same work in the same way.

    Args:
        result: the result in view.
        other: the result to compare it with, on this device or another one.
    """
    reasons = (*_other_work(result, other), *_other_way(result, other))
    return Comparability(reasons, tuple(_notes(result, other)))


def _other_work(result: RunFinished, other: RunFinished) -> Iterator[str]:
    if other.workload != result.workload:
        yield f"it is {other.workload}, not {result.workload}"
        return  # a size of another workload means something else
    if other.size != result.size:
        sizes = [format_size(one.size, one.size_text) for one in (other, result)]
        yield f"its size is {sizes[0]}, not {sizes[1]}"
    if other.dtype != result.dtype:
        yield f"it computed in {other.dtype}, not in {result.dtype}"
    if (other.race and other.race.photo) != (result.race and result.race.photo):
        yield "it drew another picture"
    for name in sorted(result.options.keys() | other.options.keys()):
        its, own = (_quoted(one.options.get(name)) for one in (other, result))
        if its != own:
            yield f"its option {name.replace('_', ' ')} is {its}, not {own}"


def _quoted(value: str | None) -> str:
    return "unknown" if value is None else f"“{value_words(value)}”"


def _other_way(result: RunFinished, other: RunFinished) -> Iterator[str]:
    on_cpu, other_on_cpu = is_cpu(result.device), is_cpu(other.device)
    if other.cache != result.cache:
        yield f"it was measured with a {other.cache} cache, not with a {result.cache} one"
    # The CPU needs no copies: its runs can be compared with both.
    if not (on_cpu or other_on_cpu) and other.transfers != result.transfers:
        words = ("with", "without") if other.transfers else ("without", "with")
        yield f"it was measured {words[0]} copies, not {words[1]}"
    # A card may compute float32 in TF32. A CPU has no TF32 and can be compared with both.
    own, its = computed_in_words(result), computed_in_words(other)
    if own and its and own != its and on_cpu == other_on_cpu and other.dtype == result.dtype:
        yield f"it was {its} and not {own.removeprefix('computed ')}"
    if other.sustained != result.sustained:
        kinds = ("a sustained run", "a short one")
        its, own = kinds if other.sustained else kinds[::-1]
        yield f"it was {its}, not {own}"
    ours, theirs = result.conditions.torch_version, other.conditions.torch_version
    if ours and theirs and _release(ours)[0] != _release(theirs)[0]:
        yield f"it used PyTorch {theirs}, not {ours}"


def _notes(result: RunFinished, other: RunFinished) -> Iterator[str]:
    ours, theirs = result.conditions.torch_version, other.conditions.torch_version
    if not theirs:
        yield "its PyTorch version is unknown"
    elif ours and _release(ours)[0] == _release(theirs)[0] and _release(ours) != _release(theirs):
        yield f"PyTorch {theirs}"
    if other.device_name != result.device_name:
        yield f"another device, {other.device_name}"
    own, its = result.conditions.cpu_threads, other.conditions.cpu_threads
    if is_cpu(result.device) and result.device == other.device and own != its:
        yield counted(its, "CPU thread") if its else "an unknown number of CPU threads"
    if other.verified is False:
        yield "its result was wrong"
    if other.recording:
        yield f"a recording: {other.recording}"


def _release(version: str) -> list[str]:
    """Return the major and the minor version."""
    return version.split("+")[0].split(".")[:2]
