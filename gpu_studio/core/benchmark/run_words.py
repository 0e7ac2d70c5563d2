"""What one run says in words: for its tool tip, and for the sentence under the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.runs import RunState
from gpu_studio.core.statistics import outlier_bound
from gpu_studio.core.units import format_duration, format_percent

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.runs import Run


def state_text(run: Run) -> str:
    """Return a run's state, with the reason where it failed."""
    if run.failure is not None:
        return f"{run.state.value}: {run.failure.message}"
    return run.state.value


def mode_words(run: Run) -> str:
    """Return what is not as usual about how a run is measured; empty where nothing is."""
    request = run.request
    words = [f"{name} {value}" for name, value in sorted(request.options.items())]
    words += ["cold cache"] if request.cache == "cold" else []
    words += ["with transfers"] if request.transfers else []
    return ", ".join(words)


def sign_of(run: Run) -> str:
    """Return a run's state or stamp in short, with a sign that needs no colour."""
    stamp = run.stamp
    if stamp is not None:
        return stamp.sign
    if run.state is RunState.STOPPED:
        return "■ stopped" + ", recording" * bool(run.recording)
    if run.state is RunState.FAILED:
        return f"✖ {state_text(run)}"
    return f"… {run.phase or run.state.value}" + ", recording" * bool(run.recording)


def spread_text(iqr_s: float, median_s: float, samples: int) -> str:
    """Return the IQR as a share of the median: ``1.2 %``; one sample has none: ``–``."""
    return format_percent(iqr_s / median_s) if samples > 1 and median_s else "–"


def describe_run(run: Run, device_label: str) -> list[str]:
    """Return all that is known of a run, a sentence a line.

    Args:
        run: at any stage.
        device_label: what its device is called in the table.
    """
    request = run.request
    said = (request.workload, run.size_label, request.dtype, mode_words(run))
    what = [part for part in said if part]
    name = run.result.device_name if run.result else device_label
    lines = [f"{' · '.join(what)} · {_device(name, device_label)}: {_median(run)}"]
    lines += _samples(run)
    stamp = run.stamp
    if stamp is not None:
        if stamp.doubts:
            lines.append(f"▲ {_capitalized('; '.join(stamp.doubts))}.")
        sign = "✔" if run.result is not None and run.result.verified else "·"
        lines.append(f"{sign} {_capitalized('; '.join(stamp.facts))}.")
    elif run.state.is_over:
        lines.append(f"{sign_of(run).rstrip('.')}.")
    if run.recording:
        lines.append(f"Recording: {run.recording}.")
    return lines


def _device(name: str, label: str) -> str:
    return name if label in name else f"{label} ({name})"


def _median(run: Run) -> str:
    summary = run.summary
    if summary is None:
        return "nothing was measured." if run.state.is_over else "nothing is measured yet."
    if summary.samples == 1:
        return f"{format_duration(summary.median_s)} a call, by one sample."
    text = f"{format_duration(summary.median_s)} a call in the median"
    if run.interval_s is None:
        return f"{text} so far."
    low, high = (format_duration(end) for end in run.interval_s)
    return f"{text}, 95\u202f% interval {low} to {high}."


def _samples(run: Run) -> list[str]:
    summary = run.summary
    if summary is None:
        return []
    count, calls = len(run.series), run.calls_per_sample
    text = f"{count} {_plural('sample', count)} of {calls} {_plural('call', calls)}"
    if count == 1:
        return [f"{text}."]
    text += (
        f"; half of them lie within {format_duration(summary.iqr_s)} "
        f"({format_percent(summary.relative_iqr)}), 99 of 100 under "
        f"{format_duration(summary.p99_s)}."
    )
    outliers = run.outliers
    if not outliers:
        return [text]
    bound = format_duration(outlier_bound(summary))
    verb = "lies" if outliers == 1 else "lie"
    return [
        f"{text} {outliers} {_plural('outlier', outliers)} {verb} over {bound} (three IQR above "
        "the median), counted like all others."
    ]


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
