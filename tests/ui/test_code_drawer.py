import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMainWindow, QPlainTextEdit, QPushButton, QTabWidget, QWidget

from gpu_studio.core.benchmark.own_code import EXAMPLES
from gpu_studio.model.pages import BENCHMARK, DEVICES
from gpu_studio.ui.code_drawer import CodeDrawer
from gpu_studio.ui.tabs import tab_of
from tests.driving.window import click, find, open_tab, sees, text


@pytest.fixture
def window(studio, theme, qtbot):
    """Two pages with the drawer over them."""
    window = QMainWindow()
    pages = QTabWidget(window)
    pages.setObjectName("tabs")
    window.setCentralWidget(pages)
    shown = [tab_of(page) for page in (DEVICES, BENCHMARK)]
    for tab in shown:
        page = QWidget()
        page.setObjectName(tab.title)
        page.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        pages.addTab(page, tab.title)
    pages.currentChanged.connect(lambda index: studio.snippets.turn_to(shown[index].page))
    studio.snippets.turn_to(DEVICES)
    CodeDrawer(studio.snippets, theme, pages)
    qtbot.addWidget(window)
    window.resize(900, 520)
    window.show()
    qtbot.waitExposed(window)
    return window


def code(window) -> str:
    return find(window, "code", QPlainTextEdit).toPlainText()


def test_it_is_closed_at_first_and_opens_over_the_page(window, qtbot):
    page = find(window, "Devices")
    before = page.geometry()
    assert not sees(window, "code.drawer")
    click(window, "code.open")
    qtbot.waitUntil(lambda: sees(window, "code.drawer"))
    assert page.geometry() == before
    drawer = find(window, "code.drawer")
    pages = find(window, "tabs", QTabWidget)
    assert drawer.y() >= pages.tabBar().height()
    assert drawer.geometry().bottomRight() == pages.rect().bottomRight()
    window.resize(1280, 700)
    qtbot.waitUntil(lambda: drawer.geometry().bottomRight() == pages.rect().bottomRight())
    assert drawer.width() <= 0.3 * 1280, "the answer of the page is still read"


def test_escape_and_its_button_close_it_and_give_the_keyboard_back(window, qtbot):
    for close in (
        lambda: QTest.keyClick(find(window, "code"), Qt.Key.Key_Escape),
        lambda: click(window, "code.close"),
        lambda: click(window, "code.open"),
    ):
        click(window, "code.open")
        assert sees(window, "code.drawer")
        assert window.focusWidget() is find(window, "code")
        close()
        assert not sees(window, "code.drawer")
        assert window.focusWidget() is find(window, "code.open")


def test_the_code_is_that_of_the_page_in_front(window, studio):
    click(window, "code.open")
    assert code(window) == ""
    assert not find(window, "code.copy").isEnabled()
    studio.snippets.show("# a run\n", BENCHMARK)
    assert code(window) == ""
    open_tab(window, "Benchmark")
    assert code(window) == "# a run\n"
    click(window, "code.copy")
    assert QGuiApplication.clipboard().text() == "# a run\n"
    open_tab(window, "Devices")
    assert code(window) == ""


def test_what_torchrun_has_to_start_is_not_said_to_run_as_it_stands(window, studio):
    click(window, "code.open")
    studio.snippets.show("# Save this as share.py, then: torchrun share.py\n", DEVICES)
    started_by_torchrun = text(window, "code.note")
    assert "processes" in started_by_torchrun
    studio.snippets.show("import torch\n", DEVICES)
    assert text(window, "code.note") not in ("", started_by_torchrun)


def test_own_code_is_pasted_here_and_the_pages_code_comes_back(window, studio, qtbot):
    studio.snippets.show("print(1)\n", DEVICES)
    click(window, "code.open")
    click(window, "code.own")
    assert code(window) == ""
    assert not find(window, "code.own.run").isEnabled()
    find(window, "code", QPlainTextEdit).setPlainText("x = 2")
    studio.snippets.show("print(3)\n", DEVICES)
    assert code(window) == "x = 2"
    drawer = find(window, "code.drawer", CodeDrawer)
    with qtbot.waitSignal(drawer.own_code_entered) as entered:
        click(window, "code.own.run")
    assert entered.args[0].text == "x = 2"
    assert not sees(window, "code.drawer")
    click(window, "code.open")
    assert code(window) == "x = 2"
    click(window, "code.own")
    assert code(window) == "print(3)\n"


def test_each_example_is_ready_to_open(window):
    click(window, "code.open")
    click(window, "code.own")
    menu = find(window, "code.own.examples", QPushButton).menu()
    menu.aboutToShow.emit()
    seen = set()
    for action in menu.actions():
        action.trigger()
        seen.add(code(window))
    assert len(seen) == len(EXAMPLES)
    assert all("torch" in text for text in seen)
