from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QLabel

from gpu_studio.ui.main_window import MainWindow
from tests.driving.pages import PAGES, go
from tests.driving.window import text, wait_until
from tests.hostile_corpus import addresses, write_small


def drop(window: MainWindow, urls: Sequence[QUrl]) -> None:
    dragged = QMimeData()
    dragged.setUrls(list(urls))
    how = (Qt.DropAction.CopyAction, dragged, Qt.MouseButton.LeftButton)
    place, plain = window.rect().center(), Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(place, *how, plain)
    enter.ignore()
    QApplication.sendEvent(window, enter)
    assert enter.isAccepted()  # otherwise nothing can be said
    QApplication.sendEvent(window, QDropEvent(QPointF(place), *how, plain))


def test_whatever_is_dropped_is_answered(window: MainWindow, tmp_path: Path) -> None:
    paths = write_small(tmp_path)
    assert len(paths) >= 50
    for path in paths:
        seen = sentences(window)
        drop(window, [QUrl.fromLocalFile(str(path))])
        wait_until(lambda seen=seen: bool(sentences(window) - seen))
        for sentence in sentences(window):
            assert "Traceback" not in sentence
    assert not (tmp_path / "fired").exists(), "a pickle was executed"
    for number, page in enumerate({one.tab: one for one in PAGES}.values()):
        go(window, page)
        drop(window, [QUrl.fromLocalFile(str(tmp_path / f"{number}.zip"))])
        refused = f"GPU Studio cannot open {number}.zip here."
        wait_until(lambda refused=refused: text(window, "banner.sentence") == refused)
    drop(window, [QUrl.fromLocalFile(str(tmp_path / name)) for name in ("a.png", "b.png")])
    wait_until(lambda: "one file at a time, not 2." in text(window, "banner.sentence"))
    for address in addresses():
        drop(window, [address])
        assert text(window, "banner.sentence") == "GPU Studio opens files, not addresses."


def sentences(window: MainWindow) -> set[str]:
    return {one.text() for one in window.findChildren(QLabel) if one.isVisible()}
