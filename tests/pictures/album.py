"""Pictures of a window in many sizes, light and dark, and a sheet of small ones for each page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QImage, QPainter

from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.pages import settle
from tests.driving.window import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.settings import Settings

# Logical pixels, and device pixels for each of them: 1920 × 1080 at scale 2, 1.5 and 1, and others.
SIZES = ((960, 540, 2), (1280, 720, 1.5), (1920, 1080, 1), (1024, 640, 1), (1280, 800, 1))
THEMES = ("light", "dark")
_THUMBNAIL, _GAP = 640, 12


class Album:
    """The pictures of one window in one font, in a folder for each page.

    Args:
        folder: gets the pictures.
        font: begins the name of each picture.
        sizes: width and height in logical pixels, and device pixels for each of them.
        looks: the themes.
    """

    def __init__(
        self,
        folder: Path,
        font: str,
        sizes: tuple[tuple[int, int, float], ...] = SIZES,
        looks: tuple[str, ...] = THEMES,
    ) -> None:
        self._folder, self._font = folder, font.replace(" ", "-").lower()
        self._sizes, self._looks = sizes, looks
        self._taken: dict[str, list[Path]] = {}

    def take_state(
        self,
        window: QWidget,
        settings: Settings,
        state: str,
        pages: Mapping[str, Callable[[], object]],
        *,
        prepare: Callable[[], object] = settle,
    ) -> None:
        """Take a picture of each page in each size and theme.

        Args:
            window: the window.
            settings: its settings, which choose the theme.
            state: the name of the pictures.
            pages: for each title of a page, what shows it.
            prepare: is called in each new size.
        """
        for look in self._looks:
            settings.change(theme=look)
            for width, height, scale in self._sizes:
                window.resize(width, height)
                settle()
                prepare()
                for title, show in pages.items():
                    show()
                    self._take(window, title, f"{state}-{width}x{height}-{look}", scale)

    def make_sheets(self) -> None:
        """Put all pictures of each page on one, small, a row for each state and look."""
        for page, paths in self._taken.items():
            self._make_sheet(page, paths)

    def _take(self, window: QWidget, page: str, name: str, scale: float) -> None:
        for plot in window.findChildren(LivePlot):
            if plot.isVisible() and not plot.visibleRegion().isEmpty():
                wait_until(lambda plot=plot: plot.plot is not None)
                plot.refresh()  # its next frame may be far
        settle()
        title = "".join(letter for letter in page.lower() if letter.isalnum())
        path = self._folder / title / f"{self._font}-{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = QImage(window.size() * scale, QImage.Format.Format_RGB32)
        picture.setDevicePixelRatio(scale)
        window.render(picture)
        picture.save(str(path))
        self._taken.setdefault(title, []).append(path)

    def _make_sheet(self, page: str, paths: list[Path]) -> None:
        across = len(self._sizes)
        cell = QSize(_THUMBNAIL, _THUMBNAIL * 5 // 8) + QSize(_GAP, _GAP)
        rows = -(-len(paths) // across)
        sheet = QImage(cell.width() * across, cell.height() * rows, QImage.Format.Format_RGB32)
        sheet.fill(Qt.GlobalColor.gray)
        painter = QPainter(sheet)
        for number, path in enumerate(paths):
            small = QImage(str(path)).scaled(
                cell - QSize(_GAP, _GAP),
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
            row, column = divmod(number, across)
            painter.drawImage(QPoint(column * cell.width(), row * cell.height()), small)
        painter.end()
        path = self._folder / f"{self._font}-{page}.png"
        sheet.save(str(path))
        sys.stderr.write(f"{path}\n")
