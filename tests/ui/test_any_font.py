from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QScrollArea,
    QTabWidget,
    QToolButton,
)

from gpu_studio.app import build_window
from gpu_studio.core.notice import Action
from gpu_studio.model.headline import Headline
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from tests.driving.pages import PAGES, go, scripts_of_all_pages, settle, use_everything
from tests.driving.window import find
from tests.fakes.pc import SteadySensors, reading, two_cards
from tests.ui.fitting import misfits_at_rest


@pytest.fixture(scope="module")
def scripts():
    """The answers for every page: what the engine says of itself takes a second to find out."""
    return scripts_of_all_pages()


@pytest.fixture
def window(letters, scripts, qtbot, engines, settings) -> Iterator[MainWindow]:
    """The window on a PC with two cards, with a result on every page that has any."""
    engines.scripts |= scripts
    sensors = SteadySensors(two_cards())
    created = build_window(engine_factory=engines, sensor_source=sensors, settings=settings)
    created.show()
    studio = created.findChild(Studio)
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensors.send(reading(two_cards(), 1.0))
    yield created
    created.close()
    created.deleteLater()


@pytest.mark.parametrize(
    ("letters", "sizes"),
    [((125, 13.0), [(1024, 640)]), ((100, 10.0), [(900, 520), (1280, 800)])],
    indirect=["letters"],
)
def test_everything_can_be_read_and_no_page_scrolls_inside_another(window, sizes):
    use_everything(window)
    window.banner.show_headline(
        Headline(
            code="program",
            sentence="PyTorch cannot use this card.",
            command="a command",
            action=Action.SHOW_LOG,
        )
    )
    found = []
    for size in sizes:
        window.resize(*size)
        settle()
        for page in PAGES:
            go(window, page)
            assert window.size().toTuple() == size, page.title
            found += [f"{page.title}: {what}" for what in misfits_at_rest(window)]
            if page.tab != "Race":
                found += [f"{page.title}: {name} scrolls" for name in scrolling(window)]
    find(window, "code.open", QToolButton).click()
    settle()
    found += [f"Code: {what}" for what in misfits_at_rest(find(window, "code.drawer"))]
    assert not found, "\n".join(found)


# Nothing else scrolls inside a tab. A pasted error may have 200,000 characters.
# The segments may be thousands; the runs grow while you look.
_MAY_SCROLL = {
    "memory.error.text", "memory.segments_area", "benchmark.results",
    "benchmark.history.table",
}  # fmt: skip


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
