"""What the window does bit by bit: never two steps in one turn of the event loop."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtWidgets import QWidget
from shiboken6 import delete

from gpu_studio.ui.lazy_page import LazyPage, PageInSteps
from gpu_studio.ui.plots import plot_canvas
from gpu_studio.ui.steps import Resizes, Steps, follow_ups, steps
from tests.patience import PATIENCE_S

TURN = QEvent.Type.User


class Diary(QObject):
    """Notes its steps, and the turns of the event loop between them."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def first(self) -> None:
        self.note("first")

    def second(self) -> None:
        self.note("second")

    def third(self) -> None:
        self.note("third")

    def note(self, line: str) -> None:
        self.lines.append(line)
        QCoreApplication.postEvent(self, QEvent(TURN))

    def event(self, event: QEvent) -> bool:
        if event.type() is TURN:
            self.lines.append("turn")
        return super().event(event)


def test_the_event_loop_has_its_turn_between_two_steps(qtbot):
    diary, line = Diary(), Steps()
    line.add(diary.first, diary.second)
    line.add(diary.third)
    assert diary.lines == []
    qtbot.waitUntil(lambda: len(diary.lines) == 6)
    assert diary.lines == ["first", "turn", "second", "turn", "third", "turn"]


@pytest.mark.parametrize("is_only_python_gone", [True, False])
def test_a_step_of_an_object_that_is_gone_is_left_out(qtbot, is_only_python_gone):
    diary, gone, line = Diary(), Diary(), Steps()
    lines = gone.lines
    line.add(gone.first, diary.second)
    if is_only_python_gone:
        del gone
    else:
        delete(gone)
    qtbot.waitUntil(lambda: "second" in diary.lines)
    assert lines == []


def test_a_thread_that_imports_finds_all_classes_of_qt_made():
    """PySide makes a class when it is first asked for, and two threads at once crash there."""
    program = """
import sys, threading
from PySide6 import QtCore, QtGui, QtWidgets
from gpu_studio.ui.steps import Steps

def unmade():
    return [name for kit in (QtCore, QtGui, QtWidgets) for name in set(dir(kit)) - set(vars(kit))]

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "an_import_in_a_thread":
            print(len(unmade()), threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Finder())
application = QtWidgets.QApplication([])
print(len(unmade()) > 100)
line = Steps()
line.load("an_import_in_a_thread")
while not line.is_done:
    application.processEvents()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["True", "0", "False"]


def test_a_step_that_adds_a_step_comes_before_it(qtbot):
    diary, line = Diary(), Steps()

    class Adding(QObject):
        def add(self) -> None:
            diary.first()
            line.add(diary.third)

    adding = Adding()
    line.add(adding.add, diary.second)
    qtbot.waitUntil(lambda: "third" in diary.lines)
    assert [entry for entry in diary.lines if entry != "turn"] == ["first", "second", "third"]


def test_an_import_is_made_in_a_thread_and_the_next_step_waits_for_it(qtbot, tmp_path, monkeypatch):
    # Not syspath_prepend: what it calls in importlib fails in Python 3.11 on Windows.
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "slow_module.py").write_text(
        "import threading\nTHREAD = threading.get_ident()\n", encoding="utf-8"
    )
    line, threads = Steps(), []

    class Using(QObject):
        def use(self) -> None:
            threads.append(sys.modules["slow_module"].THREAD)

    using = Using()
    line.load("slow_module")
    line.add(using.use)
    qtbot.waitUntil(lambda: bool(threads))
    monkeypatch.delitem(sys.modules, "slow_module")
    assert threads[0] != threading.get_ident()
    assert line.is_done


def test_a_failed_import_holds_up_no_step(qtbot, monkeypatch):
    diary, line = Diary(), Steps()
    line.load("a_module_that_is_not_there")
    line.add(diary.first)
    qtbot.waitUntil(lambda: "first" in diary.lines)


class ThreeParts(PageInSteps):
    """A page of three parts."""

    def build(self, diary):
        for part in ("one", "two"):
            diary.note(part)
            yield
        diary.note("three")


@pytest.fixture
def in_parts(qtbot):
    diary = Diary()
    lazy = LazyPage(f"{__name__}:ThreeParts", diary, parent=diary)
    lazy.created.connect(lambda page: (qtbot.addWidget(page), diary.note("seen")))
    return lazy, diary


def test_a_page_is_made_a_part_in_a_turn_and_shown_when_all_are_there(qtbot, in_parts):
    lazy, diary = in_parts
    lazy.make_soon()
    qtbot.waitUntil(lambda: lazy.page is not None and steps().is_done)
    qtbot.waitUntil(lambda: diary.lines[-1] == "turn")
    assert diary.lines == ["one", "turn", "two", "turn", "three", "turn", "seen", "turn"]


def test_a_page_that_is_wanted_at_once_gets_the_rest_of_its_parts(qtbot, in_parts):
    lazy, diary = in_parts
    lazy.make_soon()
    while "one" not in diary.lines:
        QCoreApplication.processEvents()  # a turn at a time
    assert lazy.page is None
    assert lazy.make() is lazy.page
    assert [line for line in diary.lines if line != "turn"] == ["one", "two", "three", "seen"]
    qtbot.waitUntil(lambda: steps().is_done)
    assert diary.lines.count("one") == 1


def test_the_whole_application_has_one_line_of_steps(qapp):
    assert steps() is steps()


def test_plots_of_one_page_are_built_in_turn(qtbot, page_of_plots, monkeypatch):
    """Three plots are painted at once: their canvases take as long as a tab."""
    diary, make = Diary(), plot_canvas.PlotCanvas

    def make_and_note(style, parent):
        diary.note("canvas")
        return make(style, parent)

    monkeypatch.setattr(plot_canvas, "PlotCanvas", make_and_note)
    page, plots = page_of_plots
    page.show()
    qtbot.waitUntil(lambda: all(plot.plot is not None for plot in plots))
    assert diary.lines == ["canvas", "turn"] * 3


def test_what_follows_a_resize_waits_for_no_page_and_no_import(qtbot, monkeypatch):
    """A page that became narrow kept the look of a wide one until all other pages were made."""
    diary, goes_on = Diary(), threading.Event()
    monkeypatch.setattr("gpu_studio.ui.steps.import_module", lambda _: goes_on.wait(PATIENCE_S))
    steps().load("a_module_that_takes_long")
    steps().add(diary.second)
    follow_ups().add(diary.first)
    qtbot.waitUntil(lambda: "first" in diary.lines)
    assert "second" not in diary.lines
    goes_on.set()
    qtbot.waitUntil(lambda: "second" in diary.lines)


def test_only_a_widget_that_is_seen_follows_a_resize_later(qtbot):
    """It is seen from its paint until it is hidden."""
    widget, diary = QWidget(), Diary()
    qtbot.addWidget(widget)
    resizes = Resizes(widget)
    widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    resizes.follow(diary.first)
    assert diary.lines == ["first"]
    widget.show()
    widget.repaint()
    resizes.follow(diary.second)
    assert "second" not in diary.lines
    qtbot.waitUntil(lambda: "second" in diary.lines)
    widget.hide()
    resizes.follow(diary.third)
    assert diary.lines[-1] == "third"
