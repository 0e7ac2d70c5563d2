"""The Race tab over soft cards, whose kernels compute nothing: the whole flow, and no winner."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_studio.ui.race.race_lane import RacePicture
from tests import random_walk
from tests.patience import PATIENCE_S
from tests.soft.window.conftest import SitDownAt
from tests.softcards.catalogue import GTX_1650

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
