from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget
from shiboken6 import delete

from gpu_studio.ui.parts import Text
from gpu_studio.ui.scroll_page import IdleWork, LazyPage, TabScroll


class Page(QWidget):
    def __init__(self):
        super().__init__()
        self.widths = []
        self.line = Text("A line. " * 40, wraps=True)
        QVBoxLayout(self).addWidget(self.line)

    def resizeEvent(self, event):
        self.widths.append(event.size().width())


def test_a_scroll_bar_that_comes_or_goes_does_not_lay_out_the_page_again(qtbot, theme):
    """A verdict that was hidden at a run's start did, and every column of its table was fitted."""
    page = Page()
    place = TabScroll(page)
    qtbot.addWidget(place)
    place.resize(400, 300)
    with qtbot.waitExposed(place):
        place.show()
    page.widths.clear()
    for times in (400, 40):
        page.line.setText("A line. " * times)
        is_long = times > 40
        qtbot.waitUntil(lambda is_long=is_long: place.verticalScrollBar().isVisible() is is_long)
    assert len(page.widths) > 1
    assert len(set(page.widths)) == 1
    assert page.width() <= place.viewport().width()


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
