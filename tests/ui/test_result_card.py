"""The painted picture of a result."""

from __future__ import annotations

import io

import msgspec
import pytest
from PySide6.QtGui import QColor, QImage

from gpu_studio.core.benchmark.standard_card import standard_card
from gpu_studio.core.benchmark.standard_record import CHUNK, decode_standard
from gpu_studio.core.png_chunks import png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.shared_card import encode_card
from gpu_studio.ui import card_sheet, result_card
from gpu_studio.ui.result_card import paint_result, png_of_result
from gpu_studio.ui.theme import COLOURS
from tests.core.benchmark.standard_runs import standard_device, standard_run

pytestmark = pytest.mark.usefixtures("qapp")


def test_a_picture_has_the_run_inside() -> None:
    run = standard_run()
    file = png_of_result(standard_card(run))

    text = png_text(io.BytesIO(file), CHUNK.encode(), LARGEST_RECORD_BYTES)
    image = QImage.fromData(file)
    assert (image.width(), image.height()) == (1200, 630)
    assert text is not None
    assert decode_standard(text) == run


@pytest.mark.parametrize("is_dark", [True, False])
def test_a_picture_has_the_colors_of_its_theme_and_its_devices(is_dark: bool) -> None:
    image = paint_result(standard_card(standard_run(), is_dark=is_dark))
    colors = {image.pixelColor(x, y).name() for x in range(0, 1200, 2) for y in range(280, 530, 4)}

    assert image.pixelColor(3, 3) == QColor(COLOURS["window"][is_dark])
    for role in ("cpu", "gpu0", "track"):
        assert QColor(COLOURS[role][is_dark]).name() in colors


def test_what_was_not_measured_has_no_bar() -> None:
    card = standard_card(standard_run())
    bars = tuple(msgspec.structs.replace(bar, share=0.0) for bar in card.rows[0].bars)
    rows = tuple(msgspec.structs.replace(row, bars=bars) for row in card.rows)
    image = paint_result(msgspec.structs.replace(card, rows=rows, keys=()))
    colors = {image.pixelColor(x, y).name() for x in range(1200) for y in range(280, 530, 4)}

    assert QColor(COLOURS["track"][True]).name() in colors
    for role in ("cpu", "gpu0"):
        assert QColor(COLOURS[role][True]).name() not in colors


def test_long_names_stay_inside_the_margins() -> None:
    run = standard_run(
        standard_device(name="W" * 100), standard_device("cuda:0", name="Card " * 20),
        pc_name="W" * 60, system="S" * 100,
    )  # fmt: skip
    image = paint_result(standard_card(run))
    background = QColor(COLOURS["window"][True])

    for x in (*range(60), *range(1142, 1200)):
        assert all(image.pixelColor(x, y) == background for y in range(0, 630, 3))


def test_the_terminal_gets_its_picture_from_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    class OfTheTests(card_sheet.QGuiApplication):
        def __new__(cls, _arguments: object) -> object:
            return cls.instance()

        @staticmethod
        def quit() -> None:
            pass

    monkeypatch.setattr(card_sheet, "QGuiApplication", OfTheTests)
    order = encode_card(standard_card(standard_run()))

    assert QImage.fromData(result_card.answer(order)).text(CHUNK)
    assert msgspec.json.decode(order)["keyword"] == CHUNK
