"""The letters in which every page must be readable, and windows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import QApplication, QBoxLayout, QGridLayout, QLayout, QWidget
from pytestqt.qtbot import QtBot

from gpu_studio.app import build_window
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui import theme
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.theme import Theme
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.scripted_engine import Engines

# Per cent of the letters' own width, and points: the two extremes, and what is usual.
LETTERS = ((85, 9.0), (100, 10.0), (125, 13.0))


def _is_in_force(applied: Theme) -> bool:
    """Return whether the application has a theme's look already: to give it again takes 20 ms.

    A test that gives it another one by itself has to forget the sheet: Qt keeps colors with it.
    """
    now = QApplication.instance()
    assert isinstance(now, QApplication)
    font = theme.application_font(QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont))
    return (
        now.font() == font
        and now.palette() == applied._palette()
        and now.styleSheet() == applied._style_sheet(font.pointSizeF())
    )


@pytest.fixture(autouse=True)
def fresh_style(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each window of a test a style of its own, as the only window of the program has.

    If one style sheet replaces another, Qt goes through a list of widgets that it kept, and a few
    of a hundred windows' tests ended there in a segmentation fault. The program takes a sheet off
    before it puts on another.

    A look that is in force stays, except where the module's `GIVES_EACH_LOOK` is set.
    """
    apply = theme.Theme.apply
    may_stay = not getattr(request.module, "GIVES_EACH_LOOK", False)

    def apply_afresh(applied: Theme) -> None:
        if may_stay and _is_in_force(applied):
            applied.is_dark = applied._wants_dark()
            return
        QApplication.setStyle("Fusion")
        apply(applied)

    monkeypatch.setattr(theme.Theme, "apply", apply_afresh)


@pytest.fixture(autouse=True)
def layouts_are_empty_when_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySide crashes later otherwise: `docs/development/pyside-layout-wrappers.md`."""

    def only_empty(method: Callable[..., Any]) -> Callable[..., Any]:
        def hand_over(place: object, *given: object, **named: object) -> Any:
            layouts = (one for one in (*given, *named.values()) if isinstance(one, QLayout))
            filled = any(one.count() for one in layouts)
            assert not filled, "fill this layout after it was handed over"
            return method(place, *given, **named)

        return hand_over

    for kind, names in (
        (QBoxLayout, ("addLayout", "insertLayout", "addItem", "insertItem")),
        (QGridLayout, ("addLayout", "addItem")),
        (QWidget, ("setLayout",)),
    ):
        for name in names:
            monkeypatch.setattr(kind, name, only_empty(getattr(kind, name)))


@pytest.fixture(params=LETTERS, ids=lambda letters: f"{letters[0]}-{letters[1]:.0f}pt")
def letters(
    request: pytest.FixtureRequest, qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The application's font, stretched, in one of the sizes."""
    stretch, points = request.param
    before = qapp.font()

    def stretched(system: QFont, _factor: float = 1.0) -> QFont:
        font = QFont(system)
        font.setStretch(stretch)
        font.setPointSizeF(points)
        return font

    monkeypatch.setattr(theme, "application_font", stretched)
    yield
    # A window that is still to be deleted would be styled again.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    qapp.setStyleSheet("")  # not the one before: see `fresh_style`
    qapp.setFont(before)


@pytest.fixture
def make_window(
    qapp: QApplication, engines: Engines, settings: Settings
) -> Iterator[Callable[..., MainWindow]]:
    """Build whole windows over scripted engines and sensors, not yet shown."""
    made = []

    def make(inventory: Inventory | None = None, **options: Any) -> MainWindow:
        usual = {
            "engine_factory": engines,
            "sensor_source": SteadySensors(inventory or cpu_only()),
            "settings": settings,
        }
        made.append(build_window(**(usual | options)))
        return made[-1]

    yield make
    for window in made:
        window.close()
        window.deleteLater()


@pytest.fixture
def pages_on_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a window make the pages that a test turns to: all of them take 0.3 s of CPU."""
    turn_to = MainWindow._turn_to

    def make_and_turn_to(window: MainWindow) -> None:
        window._pages[window.tabs.currentIndex()].make()
        turn_to(window)

    monkeypatch.setattr(MainWindow, "_unmade", lambda _: None)
    monkeypatch.setattr(MainWindow, "_turn_to", make_and_turn_to)


@pytest.fixture
def window(qtbot: QtBot, ready_studio: Studio, theme: Theme) -> Iterator[MainWindow]:
    window = MainWindow(ready_studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    yield window
    window.close()
