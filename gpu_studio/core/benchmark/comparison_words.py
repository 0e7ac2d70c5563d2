"""What several runs of one workload, which differ in their options, say together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.units import format_bytes, format_duration, format_ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.protocol import RunFinished, WorkloadDescription


def label_of(options: Mapping[str, str], workload: WorkloadDescription) -> str:
    """Return the options of a run as a reader tells them apart: ``AMP on, compiled off``."""
    titles = {option.name: option.title for option in workload.options}
    parts = [
        f"{titles.get(name, name)} {value}" if value in _PLAIN else value
        for name, value in options.items()
    ]
    return ", ".join(parts) or workload.title


# What means nothing without the option's name in front.
_PLAIN = frozenset({"on", "off", "yes", "no", "default", *map(str, range(1025))})


# Nobody would call a smaller difference faster.
_EVEN = 1.02


def compare(results: Mapping[str, RunFinished]) -> str:
    """Return which way is fastest and which takes the least memory; empty for less than two."""
    if len(results) < 2:
        return ""
    fastest = min(results, key=lambda label: results[label].median_s)
    slowest = max(results, key=lambda label: results[label].median_s)
    least_s, most_s = results[fastest].median_s, results[slowest].median_s
    text = f"All ways take about the same time, {format_duration(least_s)} a call."
    if most_s > _EVEN * least_s:
        times = format_ratio(most_s / least_s)
        text = (
            f"The fastest is “{fastest}”, {format_duration(least_s)} a call: "
            f"{times} as fast as “{slowest}”."
        )
    peaks = {
        label: result.peak_allocated_bytes
        for label, result in results.items()
        if result.peak_allocated_bytes is not None
    }
    if len(peaks) == len(results) and min(peaks.values()) < max(peaks.values()):
        least, most = min(peaks, key=peaks.__getitem__), max(peaks, key=peaks.__getitem__)
        text += (
            f" The least memory takes “{least}”, {format_bytes(peaks[least])} at its peak; the "
            f"most “{most}”, {format_bytes(peaks[most])}."
        )
    return f"{text} {_doubts_of(results)}".strip()


def _doubts_of(results: Mapping[str, RunFinished]) -> str:
    """Return the first doubt of each run, once, with those that it is about."""
    told: dict[str, list[str]] = {}
    for label, result in results.items():
        doubts = stamp_of(result).doubts
        if doubts:
            told.setdefault(doubts[0], []).append(label)
    reasons = (
        doubt if len(labels) == len(results) else f"{doubt} ({', '.join(labels)})"
        for doubt, labels in told.items()
    )
    return f"Not all of it is beyond doubt: {'; '.join(reasons)}." if told else ""


def findings_of(results: Mapping[str, RunFinished]) -> Sequence[str]:
    """Return what the runs showed, each sentence with its run's label and once."""
    told: dict[str, list[str]] = {}
    for label, result in results.items():
        for finding in result.findings:
            told.setdefault(finding, []).append(label)
    return [
        finding if len(labels) == len(results) else f"{', '.join(labels)}: {finding}"
        for finding, labels in told.items()
    ]
