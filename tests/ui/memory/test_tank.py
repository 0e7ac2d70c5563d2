"""The tank: a bar whose parts are named, pointed at, and described."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip

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
    words = [line.split(":")[0] for line in said(bar).splitlines()]
    assert words == list(LABELS)
    assert "Other programs: 338 MiB (17 %), explained." in said(bar)
    stretches = bar.places.stretches
    assert stretches[0].left() >= 0
    assert stretches[-1].right() <= bar.width()
    assert all(a.right() < b.left() for a, b in pairwise(stretches))
    assert stretches[0].width() > stretches[1].width() > stretches[2].width()


def test_it_shows_what_is_pointed_at(bar, qtbot):
    for part, words in ((1, "Allocated: 100 MiB (5.0 %)"), (3, "Free: 1.50 GiB")):
        place = bar.places.stretches[part].center().toPoint()
        help_event = QHelpEvent(QEvent.Type.ToolTip, place, bar.mapToGlobal(place))
        QApplication.sendEvent(bar, help_event)
        assert plain(QToolTip.text()).startswith(words)
    QToolTip.hideText()


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
