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
    """Lets a widget accept one dropped local file of some kinds; ignores anything else.

    Signals:
        dropped(Path): a file was dropped.

    Args:
        widget: accepts the files and owns this object.
        endings: the files' suffixes in small letters, each with its dot.
    """

    dropped = Signal(object)

    def __init__(self, widget: QWidget, *endings: str) -> None:
        super().__init__(widget)
        self._endings = endings
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Accept a dropped file."""
        if isinstance(event, QDragEnterEvent) and self._file_in(event.mimeData()):
            event.acceptProposedAction()
            return True
        if isinstance(event, QDropEvent) and event.type() is QEvent.Type.Drop:
            path = self._file_in(event.mimeData())
            if path is not None:
                event.acceptProposedAction()
                self.dropped.emit(path)
                return True
        return False

    def _file_in(self, dragged: QMimeData) -> Path | None:
        urls = dragged.urls()
        if len(urls) != 1 or not urls[0].isLocalFile():
            return None
        path = Path(urls[0].toLocalFile())
        return path if path.suffix.lower() in self._endings else None
