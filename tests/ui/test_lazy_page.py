"""What is made after the first paint: in order, and never two pieces in one turn."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QLabel
from shiboken6 import delete

from gpu_studio.ui.plots import plot_canvas
from gpu_studio.ui.scroll_page import IdleWork, LazyPage

_TURN = QEvent.Type.User


class Diary(QObject):
    """Notes what is done, and the turns of the event loop between."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        self.lines.append(line)
        QCoreApplication.postEvent(self, QEvent(_TURN))

    def event(self, event: QEvent) -> bool:
        if event.type() is _TURN:
            self.lines.append("turn")
        return super().event(event)


def test_each_piece_has_a_turn_and_one_that_raises_stops_no_other(qtbot):
    diary, line = Diary(), IdleWork()

    def fail() -> None:
        diary.note("failed")
        raise ValueError

    with qtbot.captureExceptions() as errors:
        line.add(diary, fail, lambda: diary.note("second"))
        assert diary.lines == []
        qtbot.waitUntil(lambda: len(diary.lines) == 4)
    assert diary.lines == ["failed", "turn", "second", "turn"]
    assert len(errors) == 1
    assert line.is_done


def test_no_piece_is_done_after_the_end_of_its_owner(qtbot):
    diary, owner, line = Diary(), QObject(), IdleWork()
    line.add(owner, lambda: diary.note("of the owner"))
    line.add(diary, lambda: diary.note("of another"))
    delete(owner)
    qtbot.waitUntil(lambda: line.is_done)
    assert "of the owner" not in diary.lines


def test_a_page_is_made_once(qtbot, qapp):
    made = []
    lazy = LazyPage("PySide6.QtWidgets:QLabel", "A page", parent=qapp)
    lazy.created.connect(made.append)
    page = lazy.make()
    qtbot.addWidget(page)
    assert isinstance(page, QLabel)
    assert lazy.make() is page
    assert made == [page]


def test_plots_of_one_page_are_built_in_turn(qtbot, page_of_plots, monkeypatch):
    """Three plots are painted at once: their canvases take as long as a tab."""
    diary, make = Diary(), plot_canvas.PlotCanvas

    def make_and_note(style, parent):
        diary.note("canvas")
        return make(style, parent)

    monkeypatch.setattr(plot_canvas, "PlotCanvas", make_and_note)
    page, plots = page_of_plots
    page.show()
    qtbot.waitUntil(lambda: len(diary.lines) == 6)
    assert all(plot.plot is not None for plot in plots)
    assert diary.lines == ["canvas", "turn"] * 3
