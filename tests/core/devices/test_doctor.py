from __future__ import annotations

import pytest

from gpu_studio.core.devices.findings import find
from tests.core.devices.doctor_table import (
    Situation,
    action_of,
    engine_of,
    inventory_of,
    situations,
)

SITUATIONS = situations()


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.title)
def test_the_doctor_says_what_the_sources_say(situation: Situation) -> None:
    findings = find(
        inventory_of(situation), engine_of(situation), system=situation.system, machine="x86_64"
    )
    listed = [f for f in findings if f.code != "mixed_order"]
    assert tuple(finding.code for finding in listed) == situation.codes, situation.source
    assert situation.words in listed[0].sentence, situation.source
    assert action_of(listed[0].command) == situation.action, situation.source


@pytest.mark.parametrize(
    "situation",
    [one for one in SITUATIONS if one.codes[0] == "no_code_for_card"],
    ids=lambda situation: situation.title,
)
def test_a_card_without_code_is_told_in_one_line(situation: Situation) -> None:
    """The reasons are behind Details: a banner of three lines pushed the page down."""
    result, *_ = find(
        inventory_of(situation), engine_of(situation), system=situation.system, machine="x86_64"
    )
    assert len(result.sentence) <= 140
    assert result.evidence


def test_the_table_is_as_wide_as_promised() -> None:
    assert len(SITUATIONS) >= 110
    assert len({situation.title for situation in SITUATIONS}) == len(SITUATIONS)
    assert all(situation.source for situation in SITUATIONS)
    branches = {situation.driver.split(".")[0] for situation in SITUATIONS}
    assert {"470", "600"} <= branches
    tags = {situation.wheel.partition("+")[2] for situation in SITUATIONS}
    assert tags == {
        "cpu", "cu118", "cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "cu132", "cu134",
        "rocm7.1", "xpu",
    }  # fmt: skip
