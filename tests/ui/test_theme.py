"""The font that the window takes, and what follows it."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from gpu_studio.ui import theme as themes
from gpu_studio.ui.theme import Theme, application_font

_DEPTH = 8


@pytest.fixture(autouse=True)
def look_is_restored(qapp):
    font, sheet = qapp.font(), qapp.styleSheet()
    yield
    qapp.setFont(font)
    qapp.setStyleSheet(sheet)


@pytest.mark.parametrize(("system", "taken"), [(9.0, 9.5), (11.0, 9.5), (12.0, 12.0), (18.0, 18.0)])
def test_a_font_that_someone_made_large_stays_large(qapp, system, taken):
    font = QFont("Some Family")
    font.setPointSizeF(system)
    chosen = application_font(font)
    assert chosen.pointSizeF() == taken
    assert chosen.families()[-1] == "Some Family"  # the last resort


def test_headings_grow_with_the_font(qapp, settings, monkeypatch):
    def headline_points(points: float) -> float:
        font = QFont()
        font.setPointSizeF(points)
        monkeypatch.setattr(themes, "application_font", lambda _system: font)
        Theme(settings).apply()
        found = re.search(r'role="headline"\] { font-size: ([\d.]+)pt', qapp.styleSheet())
        assert found is not None
        return float(found[1])

    assert headline_points(20.0) == pytest.approx(2 * headline_points(10.0))
    assert "@" not in qapp.styleSheet()


class StyleChanges(QObject):
    """Counts how often a widget is told that its style is another."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        self.count += event.type() is QEvent.Type.StyleChange
        return False


def test_a_change_of_theme_reaches_a_widget_once_and_not_once_for_each_of_its_parents(
    qtbot, qapp, settings
):
    settings.change(theme="light")
    theme = Theme(settings)
    theme.apply()
    outer = inner = QWidget()
    for _ in range(_DEPTH):
        inner = QWidget(inner)
    qtbot.addWidget(outer)
    with qtbot.waitExposed(outer):
        outer.show()
    changes = StyleChanges(inner)
    settings.change(theme="dark")
    assert theme.colour("window") in qapp.styleSheet()
    assert changes.count <= 2  # the sheet that goes and the one that comes
