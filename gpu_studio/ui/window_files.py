"""What is dropped on the window, or chosen from its menu: which page opens it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.texts import file_name
from gpu_studio.model.latest import Latest, opening
from gpu_studio.model.pages import HISTORY, Destination
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.tabs import TABS, page_for_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QMimeData
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.failure import Failure
    from gpu_studio.model.pages import PageId
    from gpu_studio.model.studio import Studio


_MOST_DROPPED = 20  # more are no choice of files but a folder's contents


class WindowFiles(QObject):
    """Finds the page for files that come from outside.

    Signals:
        destination_found(Destination): the page that opens them.
        delayed(str): the sentence for what is being looked at for so long that a person wonders;
            empty once that has ended.

    Args:
        window: owns this object.
        studio: says why a file is not opened.
        front: returns the page in front, which goes first where several open such a file.
    """

    destination_found = Signal(object)
    delayed = Signal(str)

    def __init__(self, window: QWidget, studio: Studio, front: Callable[[], PageId]) -> None:
        super().__init__(window)
        self._window, self._headlines, self._front = window, studio.headlines, front
        self._paths: tuple[Path, ...] = ()
        self._recognizing = Latest(self)
        self._recognizing.delayed.connect(self._on_delayed)
        self._recognizing.idled.connect(self._on_idled)
        self._recognizing.succeeded.connect(self._on_recognized)
        self._recognizing.failed.connect(self._on_failed)
        studio.closing.connect(self._recognizing.close)

    def ask(self) -> None:
        """Ask for a file, and open it."""
        kinds = " ".join(f"*{ending}" for tab in TABS for ending in tab.opens)
        chosen = ask_open_path(
            self._window, "Open a file", f"Pictures, code, recordings, records, histories ({kinds})"
        )
        if chosen:
            self._open((Path(chosen),))

    def drop(self, dragged: QMimeData) -> None:
        """Open the files of this PC, and of its network drives, in what was dropped."""
        self._open(tuple(Path(url.toLocalFile()) for url in dragged.urls() if url.isLocalFile()))

    def _open(self, paths: tuple[Path, ...]) -> None:
        if not paths:
            self._refuse(paths)
            return
        self._paths, front = paths, self._front()
        self._recognizing.ask(lambda is_over: _destination(paths, front, is_over))

    def _on_delayed(self) -> None:
        self.delayed.emit(opening(self._paths[0]))

    def _on_idled(self) -> None:
        self.delayed.emit("")

    def _on_recognized(self, destination: Destination | None) -> None:
        if destination is not None:
            self.destination_found.emit(destination)
        else:
            self._refuse(self._paths)

    def _on_failed(self, failure: Failure) -> None:
        self._headlines.notify(failure.message)

    def _refuse(self, paths: tuple[Path, ...]) -> None:
        """Say why nothing of what was dropped or chosen is opened."""
        detail = (
            "It opens pictures and recordings for a race, your own code (.py), standard runs, "
            "records of checks, and histories of memory, and looks for PyTorch in a folder."
        )
        if len(paths) == 1:
            sentence = f"GPU Studio cannot open {file_name(paths[0])} here."
        elif paths:
            sentence = f"GPU Studio opens one file at a time, not {len(paths)}."
        else:
            sentence = "GPU Studio opens files, not addresses."
            detail = "Save it as a file first, then drop the file here."
        self._headlines.notify(sentence, detail)


def _destination(
    paths: tuple[Path, ...], front: PageId, is_over: Callable[[], bool]
) -> Destination | None:
    """Return where to open files; None if they cannot be opened, or not together."""
    if len(paths) > _MOST_DROPPED:
        return None
    found = {page_for_file(path, front, is_over) for path in paths}
    page = found.pop()
    if page is None or found or (len(paths) > 1 and page != HISTORY):
        return None
    return Destination(page=page, paths=paths)
