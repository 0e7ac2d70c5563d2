"""How a card of this PC stands among those of other PCs whose runs came with the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.model.task_queue import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.model.studio import Studio


class PublicStanding(QObject):
    """A sentence for each card of this PC's newest standard run; read in a thread.

    Signals:
        changed(): other sentences.
    """

    changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = studio.data_folder
        self._sentences: Mapping[str, str] = {}
        self._files = TaskQueue(self)
        studio.closing.connect(self._files.close)

    def sentence_for(self, device: Device | None) -> str:
        """Return how a card stands among others; empty if no other run has such a card."""
        return "" if device is None else self._sentences.get(device.name, "")

    def refresh(self) -> None:
        """Read this PC's newest run again."""
        folder = self._folder
        if folder is not None and not self._files.is_busy:
            self._files.add(lambda: _sentences(folder), self._show, keeps=False)

    def _show(self, sentences: Mapping[str, str]) -> None:
        if sentences != self._sentences:
            self._sentences = sentences
            self.changed.emit()


def _sentences(data_folder: Path) -> dict[str, str]:
    """Return the sentences by the names of the cards."""
    # Most of the modules are needed by nothing else on Devices.
    from gpu_studio.core.benchmark.public_runs import public_runs, standing_among
    from gpu_studio.core.benchmark.standard_folder import FOLDER_NAME, StandardFolder

    runs = public_runs()
    own = StandardFolder(data_folder / FOLDER_NAME).newest() if runs else None
    devices = own.devices if own is not None else ()
    found = {one.name: standing_among(one, runs) for one in devices if not one.is_cpu}
    return {name: sentence for name, sentence in found.items() if sentence}
