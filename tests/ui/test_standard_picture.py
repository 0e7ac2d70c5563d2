from pathlib import Path

import msgspec
import pytest
from PySide6.QtGui import QColor, QImage

from gpu_studio.core.benchmark.side import sides_of
from gpu_studio.core.benchmark.standard_file import read_standard
from gpu_studio.core.benchmark.standard_record import StandardDevice, StandardRun
from gpu_studio.ui.standard_page import SIDE_ROLES, standard_picture
from gpu_studio.ui.theme import COLOURS, Theme
from tests.core.benchmark.standard_runs import CARD_NAME, standard_device, standard_run


def shown(run: StandardRun, theme: Theme) -> tuple[QImage, set[str]]:
    image = QImage.fromData(standard_picture(sides_of(run), theme))
    places = ((x, y) for x in range(0, image.width(), 2) for y in range(0, image.height(), 4))
    return image, {image.pixelColor(x, y).name() for x, y in places}


def color(role: str, *, is_dark: bool) -> str:
    return QColor(COLOURS[role][is_dark]).name()


def wrong(device: StandardDevice) -> StandardDevice:
    figures = tuple(
        msgspec.structs.replace(one, result=msgspec.structs.replace(one.result, verified=False))
        for one in device.figures
        if one.result is not None
    )
    return msgspec.structs.replace(device, figures=figures)


@pytest.mark.parametrize("is_dark", [True, False])
def test_a_picture_has_the_run_inside_and_the_colors_of_the_window(
    theme: Theme, tmp_path: Path, is_dark: bool
) -> None:
    theme._settings.change(theme="dark" if is_dark else "light")
    image, colors = shown(standard_run(), theme)
    path = tmp_path / "picture.png"
    image.save(str(path))
    assert read_standard(path) == standard_run()
    assert image.width() == 1200
    assert 630 < image.height() < 1200
    assert image.pixelColor(3, 3).name() == color("window", is_dark=is_dark)
    assert {color(role, is_dark=is_dark) for role in ("cpu", "gpu0", "track")} <= colors


def test_what_is_wrong_has_no_bar(theme: Theme) -> None:
    blue = color("gpu0", is_dark=theme.is_dark)
    card = standard_device("cuda:0")
    has_bar = [
        blue in shown(standard_run(standard_device(), one), theme)[1] for one in (card, wrong(card))
    ]
    assert has_bar == [True, False]


def test_long_names_stay_inside_the_margins(theme: Theme) -> None:
    run = standard_run(
        standard_device(name="W" * 100), standard_device("cuda:0", name="Card " * 20),
        pc_name="W" * 60, system="S" * 100,
    )  # fmt: skip
    image, _ = shown(run, theme)
    ground = color("window", is_dark=theme.is_dark)
    for x in (*range(20), *range(1180, 1200)):
        assert all(image.pixelColor(x, y).name() == ground for y in range(0, image.height(), 3))


def test_a_pc_with_more_cards_than_colors_has_a_picture(theme: Theme, tmp_path: Path) -> None:
    cards = [standard_device(f"cuda:{number}", name=CARD_NAME) for number in range(12)]
    image, colors = shown(standard_run(standard_device(), *cards), theme)
    assert {color(role, is_dark=theme.is_dark) for role in SIDE_ROLES} <= colors
    path = tmp_path / "many.png"
    image.save(str(path))
    assert len(read_standard(path).devices) == 13
