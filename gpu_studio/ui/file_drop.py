"""Files dropped on a widget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent

if TYPE_CHECKING:
    from PySide6.QtCore import QMimeData
    from PySide6.QtWidgets import QWidget


class FileDrop(QObject):
    """Lets a widget accept one dropped local file of some kinds; leaves the rest to its parents.

    Signals:
        dropped(Path): a file was dropped.
        refused(tuple): something else was dropped: the files of this PC in it, if any.

    Args:
        widget: accepts the files and owns this object.
        endings: the files' suffixes in small letters, each with its dot.
        refuses: whether the widget takes everything else as well, to say why it opens none of it.
    """

    dropped = Signal(object)
    refused = Signal(object)

    def __init__(self, widget: QWidget, *endings: str, refuses: bool = False) -> None:
        super().__init__(widget)
        self._endings, self._refuses = endings, refuses
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Accept a dropped file."""
        if isinstance(event, QDragEnterEvent) and self._takes(event.mimeData()):
            event.acceptProposedAction()
            return True
        if isinstance(event, QDropEvent) and event.type() is QEvent.Type.Drop:
            dragged = event.mimeData()
            path = self._file_in(dragged)
            if path is not None:
                event.acceptProposedAction()
                self.dropped.emit(path)
                return True
            if self._takes(dragged):
                event.acceptProposedAction()
                self.refused.emit(_files_in(dragged))
                return True
        return False

    def _takes(self, dragged: QMimeData) -> bool:
        return self._file_in(dragged) is not None or (self._refuses and dragged.hasUrls())

    def _file_in(self, dragged: QMimeData) -> Path | None:
        files = _files_in(dragged)
        if len(files) != 1 or len(dragged.urls()) != 1:
            return None
        return files[0] if files[0].suffix.lower() in self._endings else None


def _files_in(dragged: QMimeData) -> tuple[Path, ...]:
    """Return the files of this PC, and of its network drives, in what is dragged."""
    return tuple(Path(url.toLocalFile()) for url in dragged.urls() if url.isLocalFile())
