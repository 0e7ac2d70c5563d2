"""The Check tab over a soft card of 2 GB: a check that is stopped, and a card that is lost in it.

Soft kernels compute nothing, so a check of results fails here, as it has to.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.studio import Studio
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.race.race_lane import RacePicture
from gpu_studio.ui.trust_chip import TrustChip
from tests import random_walk
from tests.driving.window import table
from tests.patience import PATIENCE_S
from tests.soft.window.conftest import SitDownAt
from tests.soft.window.person import Person
from tests.softcards.catalogue import GTX_1650, MODERN_1996_MIB

# The size of a GT 1030; PyTorch's newest build has no code for that card itself. So slow that no
# stage is over before somebody has seen it.
SLOW_CARD_OF_2_GB = replace(MODERN_1996_MIB, kernel_ms=100)
# A new engine starts PyTorch and CUDA, and a step of this card takes a second.
LONGEST_S = 5 * PATIENCE_S


def states(person: Person) -> list[str]:
    return [row[1].split()[1] for row in table(person.window, "check.stages")]


def chip(person: Person) -> tuple[str, str]:
    shown = person.find(TrustChip, "check.chip")
    return shown.notice.tone.value, shown.notice.sentence


def begin(person: Person) -> None:
    """Start a check of a minute, and wait until its first stage has worked."""
    person.open_tab("Check")
    person.choose("check.minutes", "1 minute")
    person.press("check.minutes", Qt.Key.Key_Return)
    person.click("check.run")
    person.until(lambda: "product" in table(person.window, "check.stages")[0][3], LONGEST_S)


def until_over(person: Person) -> None:
    """Wait for the end of the check, and for the program's own engine."""
    person.until(lambda: person.window.findChild(CheckTab).check.record is not None, LONGEST_S)
    session = person.window.findChild(Studio).session
    person.until(lambda: session.state is EngineState.READY, LONGEST_S)


def test_a_card_that_is_lost_in_a_check_is_its_result(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(SLOW_CARD_OF_2_GB)
    begin(person)
    pc.set(0, lost=1)
    until_over(person)

    assert chip(person) == ("failure", "Failed")
    assert states(person)[0] == "Failed"
    assert person.text("check.doing").startswith("The card")
    assert "Load and heat" in person.text("check.doing")
    assert "Restart the PC" in person.text("check.next")
    shown = [one.text() for one in person.window.findChildren(QLabel) if one.isVisible()]
    assert not [text for text in shown if "Traceback" in text or 'File "' in text]
    assert person.sees("check.save")


def test_a_stop_keeps_what_was_seen_of_the_card(sit_down_at: SitDownAt) -> None:
    pc, person = sit_down_at(SLOW_CARD_OF_2_GB)
    pc.set(0, temperature_c=61)
    begin(person)
    person.until(lambda: "Chip, now 61 °C" in person.text("check.words.°C"), LONGEST_S)
    person.click("check.stop")
    until_over(person)

    assert chip(person) == ("failure", "Failed")
    assert states(person)[0] == "Failed"
    assert any("61 °C" in fact for _, fact in table(person.window, "check.facts"))


# Two contestants with their preparation, on a busy machine.
LONGEST_RACE_S = 300.0


def test_a_race_against_a_wrong_card_ends_in_failure_with_both_pictures(
    sit_down_at: SitDownAt,
) -> None:
    _, person = sit_down_at(GTX_1650)
    person.open_tab("Race")
    person.click("race.picture.paint")
    person.until(lambda: "1650" in person.text("race.right.name"))
    person.click("race.run")
    person.until(lambda: person.sees("race.trust"), LONGEST_RACE_S)

    assert "wrong" in person.text("race.sentence")
    assert person.property_of("race.trust", "tone") == "failure"
    for side in ("left", "right"):
        assert person.find(RacePicture, f"race.{side}.picture").image is not None
        assert person.text(f"race.{side}.steps") != "0"
    assert person.sees("race.save")
    assert person.sees("race.replay")


_ROOT = Path(__file__).resolve().parents[3]
_STEPS = 300
_LONGEST_S = 25 * PATIENCE_S


@pytest.mark.timeout(2 * _LONGEST_S)
def test_a_walk_over_cards_that_misbehave_brings_no_trouble() -> None:
    walk = [sys.executable, "-m", random_walk.__name__, "--soft", "--steps", str(_STEPS)]
    ended = subprocess.run(
        walk, cwd=_ROOT, capture_output=True, text=True, encoding="utf-8",
        timeout=_LONGEST_S, check=False,
    )  # fmt: skip
    sentence = f"exit status {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    assert ended.returncode == 0, sentence
    # A soft card computes nothing, and the load compares every product.
    assert "check: failed" in ended.stdout.splitlines(), sentence
    assert ended.stdout.splitlines()[-1] == f"walked {_STEPS} steps, 0 troubles", sentence
