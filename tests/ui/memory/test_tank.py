"""The tank: a bar whose parts are pointed at, walked by the keyboard, and named."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt

from gpu_studio.core.memory.tank import Tank, TankPart
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.window import plain

MIB = 1 << 20
SIZES = {"others": 338, "tensors": 100, "holes": 20, "free": 1538}
LABELS = ("Other programs", "Allocated", "Reserved, empty", "Free")
TANK = Tank(
    total_bytes=1996 * MIB,
    parts=tuple(
        TankPart(key=key, label=label, size_bytes=mib * MIB, explanation="explained")
        for (key, mib), label in zip(SIZES.items(), LABELS, strict=True)
    ),
)


@pytest.fixture
def bar(theme, qtbot):
    bar = TankBar(theme, name="tank")
    qtbot.addWidget(bar)
    bar.resize(900, 80)
    bar.show_tank(TANK)
    bar.show()
    qtbot.waitExposed(bar)
    return bar


def said(bar):
    return plain(bar.accessibleDescription())


def test_it_says_what_it_paints_in_proportion(bar):
    assert "Allocated 100 MiB" in said(bar)
    stretches = bar.places.stretches
    assert stretches[0].left() >= 0
    assert stretches[-1].right() <= bar.width()
    assert all(a.right() < b.left() for a, b in pairwise(stretches))
    assert stretches[0].width() > stretches[1].width() > stretches[2].width()


def test_it_is_walked_with_the_keyboard(bar, qtbot):
    bar.setFocus()
    for key, result in (
        (Qt.Key.Key_Home, "Other programs: 338 MiB (17 %)"),
        (Qt.Key.Key_Right, "Allocated: 100 MiB"),
        (Qt.Key.Key_End, "Free: 1.50 GiB"),
        (Qt.Key.Key_Left, "Reserved, empty: 20 MiB"),
    ):
        qtbot.keyClick(bar, key)
        assert said(bar).startswith(result)
    bar.clearFocus()
    assert "in total" in said(bar)


def test_it_reports_what_is_pointed_at(bar, qtbot):
    qtbot.mouseMove(bar, bar.places.stretches[1].center().toPoint())
    qtbot.waitUntil(lambda: said(bar).startswith("Allocated"))
    qtbot.mouseMove(bar, QPoint(bar.width() - 4, 10))
    qtbot.waitUntil(lambda: said(bar).startswith("Free"))


def test_a_narrow_one_takes_more_lines_for_its_names(bar, qtbot):
    wide = bar.height()
    bar.setFixedWidth(260)
    qtbot.waitUntil(lambda: bar.height() > wide)
    places = bar.places.labels
    assert max(place.right() for place in places) <= 260
    assert max(place.bottom() for place in places) <= bar.height()
    assert not any(a.intersects(b) for a, b in pairwise(places))


def test_it_is_painted_again_in_the_other_theme(bar, settings):
    light = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    settings.change(theme="dark")
    dark = bar.grab().toImage().pixelColor(bar.width() - 10, 16)
    assert light.lightness() > 200
    assert dark.lightness() < 60
    settings.change(theme="light")
