"""A workload's options in words, and which of several options is the fastest.

The words are for the screen; files and flags keep the identifiers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.claim import CANNOT_BE_TOLD, Outcome, claim_of, fixes_sentence
from gpu_studio.core.benchmark.trust import trust_of
from gpu_studio.core.messages.run_messages import RunParameters
from gpu_studio.core.notice import Tone
from gpu_studio.core.parameter import parameters_of
from gpu_studio.core.texts import listed
from gpu_studio.core.units import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpu_studio.core.benchmark.claim import Claim
    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadOption

# Options whose identifier is no word of the field; the others stand as they are.
_NAMES = {
    "amp": "AMP",
    "amp_dtype": "AMP in",
    "cudnn": "cuDNN",
    "form": "",
    "memory": "CPU memory",
    "num_workers": "workers:",
    "threads": "threads per block:",
    "way": "",
}
# Values whose identifier, read as words, is unclear or longer than what people say.
_VALUES = {
    "fused": "few passes over memory",
    "pinned_non_blocking": "pinned without waiting",
    "statements": "ten separate lines",
    "whole_set": "whole data set",
}
_ROWS_BY_COLUMNS = re.compile(r"(\d+)x(\d+)")


def value_words(value: str) -> str:
    """Return an option's value in words: ``batch by batch``, ``10,000 × 100``."""
    shape = _ROWS_BY_COLUMNS.fullmatch(value)
    if shape is not None:
        return f"{int(shape[1]):,} × {int(shape[2]):,}"
    return _VALUES.get(value, value.replace("_", " "))


def explain_option(option: WorkloadOption, write_value: Callable[[str], str] = value_words) -> str:
    """Return an option's sentence and the meanings of its values.

    Args:
        option: of a workload.
        write_value: how to write a value: in words, or as the identifier that a flag needs.
    """
    meanings = (f"{write_value(value)}: {text}" for value, text in option.meanings.items())
    return " ".join((option.sentence, *meanings))


def option_words(options: Mapping[str, str]) -> list[str]:
    """Return each option with its value in words: ``ten separate lines``."""
    return [
        f"{_NAMES.get(name, name.replace('_', ' '))} {value_words(value)}".lstrip()
        for name, value in options.items()
    ]


def mode_words(work: RunParameters, *, with_copies: bool = True) -> str:
    """Return the options and unusual settings of a measurement; empty if there are none.

    Args:
        work: a request or a result.
        with_copies: name the copies as well, unless something beside it does.
    """
    switched = (one for one in parameters_of(RunParameters) if one.is_on(work))
    said = [one.words for one in switched if with_copies or one.field != "transfers"]
    return ", ".join((*option_words(work.options), *said))


# ── several options side by side ─────────────────────────────────────────────────────────────────


def compare_ways(results: Mapping[str, RunFinished]) -> str:
    """Return the fastest option and the one with the least memory; empty for fewer than two.

    Args:
        results: runs of one workload with different options, by their labels.
    """
    if len(results) < 2:
        return ""
    wrong = [label for label, result in results.items() if result.verified is False]
    right = {label: result for label, result in results.items() if result.verified is not False}
    sentences = [f"Don't trust {_named(wrong)}: wrong results."] if wrong else []
    if len(right) > 1:
        sentences += [*_speed(right), *_memory(right)]
    trust = trust_of(right.items())
    sentences += [f"In doubt: {trust.sentence.lower()}."] if trust.tone is Tone.AMBER else []
    return " ".join(sentences)


def are_ways_kept_busy(results: Mapping[str, RunFinished]) -> bool:
    """Return whether no option is named the fastest because of other programs."""
    right = {label: result for label, result in results.items() if result.verified is not False}
    beside = _beside_fastest(right).values()
    return bool(beside) and all(claim.outcome is Outcome.BUSY for claim in beside)


def _beside_fastest(results: Mapping[str, RunFinished]) -> dict[str, Claim]:
    """Return the claim of the fastest option against each other one, the slowest option last."""
    fastest, *others = sorted(results, key=lambda label: results[label].median_s) or [""]
    claims = ((label, claim_of(results[label], results[fastest])) for label in others)
    return {label: claim for label, claim in claims if claim is not None}


def _speed(results: Mapping[str, RunFinished]) -> Iterable[str]:
    claims = _beside_fastest(results)
    beaten = [label for label, claim in claims.items() if claim.outcome is Outcome.FASTER]
    close = {label: claim for label, claim in claims.items() if claim.outcome is not Outcome.FASTER}
    fastest = min(results, key=lambda label: results[label].median_s)
    least = format_duration(results[fastest].median_s)
    if beaten:
        lead = f"{least} per call: {claims[beaten[-1]].words} than “{beaten[-1]}”."
        yield f"“{fastest}” takes {lead}" if close else f"The fastest is “{fastest}”, {lead}"
        if close:
            yield f"Which of {_named([fastest, *close])} is faster {CANNOT_BE_TOLD}."
    elif close and all(claim.outcome is Outcome.EQUAL for claim in close.values()):
        yield f"All options take about the same time, {least} per call."
    elif close:
        nearest = next(iter(close.values()))
        yield f"Which is the fastest {CANNOT_BE_TOLD}: {nearest.why or 'their times overlap'}."
        yield from filter(None, [fixes_sentence(close.values())])


def _memory(results: Mapping[str, RunFinished]) -> Iterable[str]:
    peaks = {
        label: result.details.peak_allocated_bytes
        for label, result in results.items()
        if result.details.peak_allocated_bytes is not None
    }
    if len(peaks) == len(results) and min(peaks.values()) < max(peaks.values()):
        least, most = min(peaks, key=peaks.__getitem__), max(peaks, key=peaks.__getitem__)
        yield (
            f"“{least}” uses least memory, {format_bytes(peaks[least])} at its peak; “{most}” "
            f"uses most, {format_bytes(peaks[most])}."
        )


def findings_of(results: Mapping[str, RunFinished]) -> Sequence[str]:
    """Return the findings of the runs, each sentence once, with its run's label."""
    labels: dict[str, list[str]] = {}
    for label, result in results.items():
        for finding in result.details.findings:
            labels.setdefault(finding, []).append(label)
    return [
        finding if len(found) == len(results) else f"{', '.join(found)}: {finding}"
        for finding, found in labels.items()
    ]


def _named(labels: Sequence[str]) -> str:
    return listed(f"“{label}”" for label in labels)
