"""The whole window in small and in large letters, narrow and wide: all of it can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QApplication,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QTabBar,
    QTabWidget,
    QToolButton,
)

from gpu_studio.app import build_window
from gpu_studio.core.protocol import (
    DescribeEngine,
    InspectFile,
    PlaceModel,
    PlaceTensors,
    ReadMemory,
    RunMemoryExperiment,
    RunPitfall,
    RunWorkload,
    UseDevice,
)
from gpu_studio.model.studio import Studio
from gpu_studio.ui import theme
from gpu_studio.ui.benchmark.benchmark_plots import View
from tests.driving.window import find
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.memory_answers import memory_read, oom_finished, segments_read
from tests.fakes.pc import SteadySensors, reading, two_cards
from tests.ui.fitting import misfits
from tests.ui.switcher import answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.ui.main_window import MainWindow

STRETCHES = (85, 100, 125)  # per cent of the letters' own width
POINTS = (9.0, 10.0, 13.0)
FONTS = [(stretch, points) for points in POINTS for stretch in STRETCHES]
SIZES = ((1024, 640), (1280, 800))


class Page(NamedTuple):
    """A page of the window, and how a person comes to it."""

    title: str
    tab: int
    bar: str = ""
    number: int = 0


PAGES = (
    Page("Devices", 0),
    *(Page(title, 1, "switcher.pages", number) for number, title in enumerate(
        ("Choose", "Place", "Pitfalls", "Feeding", "AMP", "Several cards"))),
    *(Page(view.name, 2, f"benchmark.view.{view.name.lower()}") for view in View),
    *(Page(title, 3, "memory.pages", number) for number, title in enumerate(
        ("Curves", "Segment map", "Break it", "Read an error", "Will it fit?"))),
)  # fmt: skip


@pytest.fixture(
    params=[(s, p) for p in POINTS for s in STRETCHES], ids=lambda p: f"{p[0]}-{p[1]:.0f}pt"
)
def letters(request, qapp, monkeypatch) -> Iterator[QFont]:
    """The application's font, stretched, in one of the sizes."""
    stretch, points = request.param
    before, sheet = qapp.font(), qapp.styleSheet()

    def stretched(system: QFont) -> QFont:
        font = QFont(system)
        font.setStretch(stretch)
        font.setPointSizeF(points)
        return font

    monkeypatch.setattr(theme, "application_font", stretched)
    yield stretched
    qapp.setFont(before)
    qapp.setStyleSheet(sheet)


@pytest.fixture(scope="module")
def words():
    """What the real engine says of its workloads, models and pitfalls."""
    from gpu_studio.engine.devices.description import describe_engine

    said = describe_engine()
    return {"workloads": said.workloads, "models": said.models, "pitfalls": said.pitfalls}


@pytest.fixture
def window(letters, words, qtbot, engines, settings) -> Iterator[MainWindow]:
    """The window on a PC with two cards, with a result on every page that has any."""
    engines.scripts |= {
        DescribeEngine: [described_with_cuda(device_count=2, **words)],
        UseDevice: answers.use,
        RunPitfall: answers.fall,
        RunWorkload: _time_it,
        InspectFile: answers.inspect,
        PlaceModel: answers.place_model,
        PlaceTensors: answers.place_tensors,
        ReadMemory: _read,
        RunMemoryExperiment: lambda _engine, _request: [
            memory_read(mark="start"),
            memory_read(allocated=1024, reserved=1024, mark="oom"),
            oom_finished(),
        ],
    }  # fmt: skip
    sensors = SteadySensors(two_cards())
    made = build_window(engine_factory=engines, sensor_source=sensors, settings=settings)
    made.show()
    studio = made.findChild(Studio)
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensors.send(reading(two_cards(), 1.0))
    yield made
    made.close()
    made.deleteLater()


def _time_it(engine, request):
    options = {"feed": "", **request.options}
    return answers.time_it(engine, msgspec.structs.replace(request, options=options))


def _read(_engine, request):
    read = memory_read(request.device, allocated=100, reserved=120)
    return [read, segments_read(read)] if request.device != "cpu" else [read]


def go(qtbot, window: MainWindow, page: Page) -> None:
    window.findChild(QTabWidget, "tabs").setCurrentIndex(page.tab)
    if page.bar.endswith(".pages"):
        find(window, page.bar, QTabBar).setCurrentIndex(page.number)
    elif page.bar:
        button = find(window, page.bar, QPushButton)
        if button.isEnabled():
            button.click()
    settle(window)


def settle(window: MainWindow) -> None:
    """Let the layouts and what waits for a turn of the event loop come to rest."""
    for _ in range(10):
        QApplication.processEvents()


def press(qtbot, window: MainWindow, name: str) -> None:
    studio = window.findChild(Studio)
    qtbot.waitUntil(find(window, name, QPushButton).isEnabled)
    find(window, name, QPushButton).click()
    qtbot.waitUntil(lambda: studio.session.is_free)
    settle(window)


def use_everything(qtbot, window: MainWindow) -> None:
    """Bring a result to each page."""
    go(qtbot, window, Page("", 2))
    find(window, "benchmark.sizes", QLineEdit).setText("64, 512, 2048")
    press(qtbot, window, "benchmark.run")
    qtbot.waitUntil(find(window, "benchmark.run", QPushButton).isEnabled)
    go(qtbot, window, PAGES[2])
    press(qtbot, window, "switcher.move")
    go(qtbot, window, PAGES[3])
    press(qtbot, window, "switcher.lab.break")
    press(qtbot, window, "switcher.lab.fix")
    go(qtbot, window, next(page for page in PAGES if page.title == "Break it"))
    press(qtbot, window, "memory.oom.run")
    go(qtbot, window, next(page for page in PAGES if page.title == "Read an error"))
    press(qtbot, window, "memory.error.example")


def test_everything_can_be_read(qtbot, window):
    use_everything(qtbot, window)
    found = []
    for size in SIZES:
        window.resize(*size)
        settle(window)
        for page in PAGES:
            go(qtbot, window, page)
            assert window.size().toTuple() == size, page.title
            found += [f"{page.title} at {size[0]}: {what}" for what in misfits(window)]
        find(window, "code.open", QToolButton).click()
        settle(window)
        found += [f"Code at {size[0]}: {what}" for what in misfits(find(window, "code.drawer"))]
        find(window, "code.open", QToolButton).click()
    assert not found, "\n".join(found)


# Nothing else scrolls inside a tab. A code box is as high as its code, and may be wider than its
# place: a wrapped line of Python means something else. A pasted error may have 200,000 characters.
# The blocks of a segment, and the segments, may be thousands; the readings grow while you look.
_MAY_SCROLL = {
    "switcher.lab.broken.code", "switcher.lab.fixed.code", "memory.error.text", "memory.segments",
    "memory.blocks", "memory.table",
}  # fmt: skip
_SMALL = ((960, 540), (900, 520), (1024, 640))


@pytest.mark.parametrize("letters", [(100, 10.0), (125, 10.0)], indirect=True)
def test_no_page_scrolls_inside_another_and_nothing_is_cut_in_a_small_window(qtbot, window):
    use_everything(qtbot, window)
    window.banner.say("PyTorch cannot use this card.", command="a command", action="Do it")
    found = []
    for size in _SMALL:
        window.resize(*size)
        settle(window)
        for page in PAGES:
            if page.title not in _OF_ONE_AREA:
                continue
            go(qtbot, window, page)
            where = f"{page.title} at {size[0]}"
            found += [f"{where}: {what}" for what in misfits(window)]
            found += [f"{where}: {name} scrolls" for name in scrolling(window)]
    assert not found, "\n".join(found)


_OF_ONE_AREA = {page.title for page in PAGES if page.tab in (1, 3)}


def scrolling(window: MainWindow) -> list[str]:
    """Return what scrolls in the tab in front, apart from the tab itself."""
    tab = window.findChild(QTabWidget, "tabs").currentWidget()
    return [
        f"{type(area).__name__} {area.objectName() or area.accessibleName()}"
        for area in tab.findChildren(QAbstractScrollArea)
        if area.isVisible()
        and area.window() is window
        and (area.verticalScrollBar().maximum() or isinstance(area, QScrollArea))
        and area.objectName() not in _MAY_SCROLL
    ]
