"""The Race tab over soft cards, whose kernels compute nothing: the whole flow, and no winner."""

from gpu_studio.ui.race.race_lane import RacePicture
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
