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
    """Lets a widget accept dropped files and addresses, and leaves the rest to its parents.

    Signals:
        dropped(tuple[Path, ...]): the files of this PC, and of its network drives, in what was
            dropped; none if it was only addresses.

    Args:
        widget: accepts the files and owns this object.
    """

    dropped = Signal(object)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Accept dropped files."""
        if isinstance(event, QDragEnterEvent) and event.mimeData().hasUrls():
            event.acceptProposedAction()
            return True
        if (
            isinstance(event, QDropEvent)
            and event.type() is QEvent.Type.Drop
            and event.mimeData().hasUrls()
        ):
            event.acceptProposedAction()
            self.dropped.emit(_files_in(event.mimeData()))
            return True
        return False


def _files_in(dragged: QMimeData) -> tuple[Path, ...]:
    return tuple(Path(url.toLocalFile()) for url in dragged.urls() if url.isLocalFile())
