"""The findings of a check as lines: the worst first, equal ones in one line with their count."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.notice import Tone
from gpu_studio.core.units import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpu_studio.core.messages.check_messages import CheckFinding, Severity

_WORST_FIRST: tuple[Severity, ...] = ("error", "doubt", "note")
FINDING_TONES: dict[Severity, Tone] = {
    "error": Tone.FAILURE, "doubt": Tone.AMBER, "note": Tone.PLAIN,
}  # fmt: skip


class GroupedFinding(NamedTuple):
    """Findings of one kind in one stage; ``details`` are their sentences, each once."""

    severity: Severity
    sentence: str
    times: int
    details: tuple[str, ...]


def finding_lines(
    findings: Iterable[CheckFinding], quoted: CheckFinding | None = None
) -> tuple[GroupedFinding, ...]:
    """Return findings as lines.

    Args:
        findings: all of a check.
        quoted: the one whose sentence stands elsewhere; a line of its own would repeat it.
    """
    groups: dict[tuple[str, str, str], list[CheckFinding]] = {}
    for one in findings:
        groups.setdefault((one.severity, one.kind, one.stage), []).append(one)
    lines = [_line(group) for group in groups.values() if len(group) > 1 or group[0] is not quoted]
    return tuple(sorted(lines, key=lambda line: _WORST_FIRST.index(line.severity)))


def _line(group: list[CheckFinding]) -> GroupedFinding:
    first = group[0]
    details = tuple(dict.fromkeys(one.sentence for one in group))
    sentence = first.sentence
    if len(details) > 1:
        sentence += f" And {format_count(len(group) - 1)} more like it."
    elif len(group) > 1:
        sentence += f" ({format_count(len(group))} times)"
    return GroupedFinding(first.severity, sentence, len(group), details)
