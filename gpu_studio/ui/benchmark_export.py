"""The Export button: runs into a file or onto the clipboard."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from PySide6.QtCore import QSaveFile, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QPushButton, QWidget

from gpu_studio.core.export import to_csv, to_json, to_markdown, to_text
from gpu_studio.ui.icons import icon

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.benchmark import Benchmark
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


class ExportButton(QPushButton):
    """Opens a menu; what came of it is a sentence.

    Signals:
        told(str, bool): what was done, and whether it went wrong.
    """

    told = Signal(str, bool)

    def __init__(
        self, studio: Studio, benchmark: Benchmark, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("Export", parent)
        self.setObjectName("benchmark.export")
        self.setAccessibleName("Export the results")
        self.setIcon(icon("export", theme))
        self._studio, self._benchmark = studio, benchmark
        menu = QMenu(self)
        menu.setObjectName("benchmark.export.menu")
        for name, text, act in (
            ("csv", "Results as &CSV…", self._save_csv),
            ("json", "Results and samples as &JSON…", self._save_json),
            ("markdown", "Copy as &Markdown", self._copy_markdown),
            ("text", "Copy as &text", self._copy_text),
        ):
            if name == "markdown":
                menu.addSeparator()
            action = menu.addAction(text, act)
            action.setObjectName(f"benchmark.export.{name}")
        self.setMenu(menu)

    def _save_csv(self) -> None:
        self._save("CSV table (*.csv)", ".csv", lambda: to_csv(self._benchmark.runs))

    def _save_json(self) -> None:
        self._save("JSON (*.json)", ".json", self._json)

    def _json(self) -> str:
        now = datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds")
        return to_json(self._benchmark.runs, self._studio.session.description, now)

    def _copy_markdown(self) -> None:
        self._copy(to_markdown(self._benchmark.runs))

    def _copy_text(self) -> None:
        self._copy(to_text(self._benchmark.runs))

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.told.emit("The table is on the clipboard.", False)

    def _save(self, kind: str, suffix: str, text: Callable[[], str]) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self.window(), "Export the results", f"gpu-studio{suffix}", kind
        )
        if not path:
            return
        if not path.lower().endswith(suffix):
            path += suffix
        file = QSaveFile(path)
        contents = text().encode()
        if (
            file.open(QSaveFile.OpenModeFlag.WriteOnly)
            and file.write(contents) == len(contents)
            and file.commit()
        ):
            self.told.emit(f"Saved as {path}", False)
        else:
            self.told.emit(f"{path} could not be written: {file.errorString()}", True)
