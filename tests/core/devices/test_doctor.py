from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices.findings import find
from tests.core.devices.doctor_table import (
    Situation,
    action_of,
    engine_of,
    inventory_of,
    situations,
)

if TYPE_CHECKING:
    from gpu_studio.core.devices.finding import Finding

SITUATIONS = situations()


def findings_of(situation: Situation) -> list[Finding]:
    return find(
        inventory_of(situation), engine_of(situation), system=situation.system, machine="x86_64"
    )


def test_the_doctor_says_what_the_sources_say() -> None:
    other = {}
    for one in SITUATIONS:
        listed = [found for found in findings_of(one) if found.code != "mixed_order"]
        codes = tuple(finding.code for finding in listed)
        first = listed[0]
        if (codes, action_of(first.command)) != (one.codes, one.action) or (
            one.words not in first.sentence
        ):
            other[one.title] = (codes, first.sentence, first.command, one.source)
    assert not other


def test_a_card_without_code_is_reported_in_one_line() -> None:
    """The reasons are behind Details: a banner of three lines pushed the page down."""
    first = {
        one.title: findings_of(one)[0] for one in SITUATIONS if one.codes[0] == "no_code_for_card"
    }
    assert len(first) > 30
    assert not [
        title for title, one in first.items() if len(one.sentence) > 140 or not one.evidence
    ]
