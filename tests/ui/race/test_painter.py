"""The picture that a race is saved as: the moment of the first finish, with the race inside."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtGui import QColor, QImage

from gpu_studio.core.failure import StudioError
from gpu_studio.core.race.shared_race import (
    CHUNK,
    PictureOrder,
    decode_shared,
    encode_shared,
)
from gpu_studio.core.race.stage_view import encode_order
from gpu_studio.process.child_call import ChildCall
from gpu_studio.ui.race.painter import picture_view, png_of
from tests.ui.race.pictures import contestant, order, shared_race

pytestmark = pytest.mark.usefixtures("qapp")


def shares(made: PictureOrder) -> list[float]:
    return [side.share for side in picture_view(made).sides]


def test_a_card_has_the_size_for_a_preview_and_the_race_in_its_chunk() -> None:
    image = QImage.fromData(png_of(order()))

    assert (image.width(), image.height()) == (1200, 630)
    assert decode_shared(image.text(CHUNK)) == shared_race()


def test_its_bars_are_the_progress_in_the_colors_of_the_devices() -> None:
    view = picture_view(order())
    assert [(side.role, side.share) for side in view.sides] == [
        ("cpu", pytest.approx(1 / 3)),
        ("gpu0", 1.0),
    ]
    assert [side.steps for side in view.sides] == ["200 of 600 steps", "600 of 600 steps"]
    assert [side.pace for side in view.sides] == ["16.7 steps/s", "50.0 steps/s"]


def test_a_side_that_went_on_beyond_the_finish_has_the_bar_of_its_pace() -> None:
    """The sentence says 3 times faster, from the paces."""
    late = contestant(seconds=24.0, steps=400, reached=False)
    race = msgspec.structs.replace(
        shared_race().race, contestants=(late, contestant("cuda:0", 12.0))
    )
    assert shares(order(race=race)) == [pytest.approx(1 / 3), 1.0]


def test_the_bars_are_the_progress_where_nobody_finished() -> None:
    slow = contestant(steps=150, reached=False)
    fast = contestant("cuda:0", steps=450, reached=False)
    race = msgspec.structs.replace(shared_race().race, contestants=(slow, fast))
    assert shares(order(race=race)) == [0.25, 0.75]


def test_a_wrong_result_has_no_bar_to_win_with() -> None:
    wrong = msgspec.structs.replace(contestant("cuda:0", steps=450), verified=False)
    race = msgspec.structs.replace(shared_race().race, contestants=(contestant(), wrong))
    made = order(race=race)
    assert shares(made) == [1.0, 0.0]
    assert picture_view(made).sides[1].pace == "wrong result"


def test_both_pictures_stand_beside_each_other() -> None:
    image = QImage.fromData(png_of(order()))

    assert image.pixelColor(320, 300) == QColor(128, 128, 128)
    assert image.pixelColor(880, 300) == QColor(255, 255, 255)


def test_the_first_doubt_stands_on_it_with_the_number_of_the_others() -> None:
    assert picture_view(order()).trust == ""
    view = picture_view(order(doubts=("only 8 samples", "varied by 30 %"), tone="amber"))
    assert (view.trust, view.is_good) == ("▲ only 8 samples · 1 more", False)


def test_a_race_of_many_shows_the_fastest_and_the_slowest() -> None:
    race = msgspec.structs.replace(
        shared_race().race,
        contestants=(
            contestant(steps=300),
            contestant("cuda:0", 37.0),
            contestant(steps=150),
        ),
    )
    runs = (*shared_race().runs, shared_race().runs[0])

    assert shares(order(race=race, runs=runs)) == [1.0, 0.25]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 1}', "x" * (1 << 21), "[" * 100_000], ids=len
)
def test_a_damaged_race_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(StudioError, match=r"cannot be opened: it is"):
        decode_shared(text)


def test_a_race_of_a_newer_version_is_refused() -> None:
    with pytest.raises(StudioError, match="newer version"):
        decode_shared(encode_shared(shared_race(schema=2)))


def test_a_race_with_runs_missing_is_refused() -> None:
    with pytest.raises(StudioError, match="damaged"):
        decode_shared(encode_shared(shared_race(runs=())))


def test_a_child_paints_it_for_the_terminal() -> None:
    call = ChildCall("gpu_studio.ui.race.painter")
    painted = call.run(encode_order(order()), longest_s=60.0, most_bytes=1 << 24)

    assert decode_shared(QImage.fromData(painted.content).text(CHUNK)) == shared_race()
