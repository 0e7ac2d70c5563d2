"""The picture that a race is saved as."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtGui import QColor, QImage

from gpu_studio.core.failure import StudioError
from gpu_studio.core.packed_frame import PackedFrame, pack_rows
from gpu_studio.core.race.shared_race import (
    CHUNK,
    PictureOrder,
    decode_shared,
    encode_shared,
)
from gpu_studio.ui import card_sheet
from gpu_studio.ui.race import share_card
from gpu_studio.ui.race.share_card import paint_card, png_of_card
from gpu_studio.ui.theme import COLOURS
from tests.ui.race.pictures import contestant, order, shared_race

pytestmark = pytest.mark.usefixtures("qapp")


def colored(image: QImage, role: str, top: int) -> int:
    """Return how many pixels of a row have the color of a role."""
    wanted = QColor(COLOURS[role][True])
    return sum(image.pixelColor(x, top) == wanted for x in range(image.width()))


def test_a_card_has_the_size_for_a_preview_and_the_race_in_its_chunk() -> None:
    image = QImage.fromData(png_of_card(order()))

    assert (image.width(), image.height()) == (1200, 630)
    assert decode_shared(image.text(CHUNK)) == shared_race()


def test_the_bars_are_the_progress_in_the_colors_of_the_devices() -> None:
    image = paint_card(order())

    cpu, card = colored(image, "cpu", 479), colored(image, "gpu0", 527)
    assert card > 500
    assert cpu / card == pytest.approx(1 / 3, abs=0.02)


def test_a_side_that_went_on_beyond_the_finish_has_the_bar_of_its_pace() -> None:
    """The sentence says 3 times faster, from the paces."""
    late = contestant(seconds=24.0, steps=400, reached=False)
    race = msgspec.structs.replace(
        shared_race().race, contestants=(late, contestant("cuda:0", 12.0))
    )
    image = paint_card(order(race=race))

    cpu, card = colored(image, "cpu", 479), colored(image, "gpu0", 527)
    assert cpu / card == pytest.approx(1 / 3, abs=0.02)


def test_a_wide_picture_fills_its_half() -> None:
    wide = PackedFrame(pack_rows(bytes([255]) * 432), 16, 9)
    image = paint_card(PictureOrder(shared=shared_race(), pictures=(wide, wide)))

    row = [image.pixelColor(x, 400) for x in range(image.width())]
    assert row.count(QColor("white")) > 1050


def test_the_bars_are_the_progress_where_nobody_finished() -> None:
    slow = contestant(steps=150, reached=False)
    fast = contestant("cuda:0", steps=450, reached=False)
    race = msgspec.structs.replace(shared_race().race, contestants=(slow, fast))
    image = paint_card(order(race=race))

    cpu, card = colored(image, "cpu", 479), colored(image, "gpu0", 527)
    assert cpu / card == pytest.approx(1 / 3, abs=0.02)
    assert card < 0.8 * colored(paint_card(order()), "gpu0", 527)


def test_a_wrong_result_has_no_bar_to_win_with() -> None:
    wrong = msgspec.structs.replace(contestant("cuda:0", steps=450), verified=False)
    race = msgspec.structs.replace(shared_race().race, contestants=(contestant(), wrong))
    image = paint_card(order(race=race))

    assert colored(image, "gpu0", 527) < 20 < colored(image, "cpu", 479)


def test_both_pictures_stand_beside_each_other() -> None:
    image = paint_card(order())

    assert image.pixelColor(320, 300) == QColor(128, 128, 128)
    assert image.pixelColor(880, 300) == QColor(255, 255, 255)


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

    image = paint_card(order(race=race, runs=runs))

    assert colored(image, "gpu0", 479) == pytest.approx(4 * colored(image, "other", 527), abs=9)


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


def test_the_terminal_gets_its_picture_from_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_sheet, "QGuiApplication", _ApplicationOfTheTests)

    assert QImage.fromData(share_card.answer(msgspec.json.encode(order()))).text(CHUNK)


class _ApplicationOfTheTests(card_sheet.QGuiApplication):
    """The one of the tests, in place of a second one, which Qt does not allow."""

    def __new__(cls, _arguments: object) -> object:
        return cls.instance()

    @staticmethod
    def quit() -> None:
        pass
