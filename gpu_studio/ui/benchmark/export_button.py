"""The Export button: saves or copies runs and plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from gpu_studio.core.benchmark.export import to_csv, to_json, to_markdown, to_text
from gpu_studio.core.failure import StudioError
from gpu_studio.core.moments import local_now
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.recording import RECORDING_ENDING, recording_from
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import saves
from gpu_studio.ui.plots.plot_picture import png_of, svg_of
from gpu_studio.ui.saving import save_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.benchmark.benchmark_plots import BenchmarkPlots
    from gpu_studio.ui.plots.live_plot import LivePlot
    from gpu_studio.ui.theme import Theme


class ExportButton(QPushButton):
    """Opens a menu; reports each outcome as a sentence. Rows keep their display order.

    Signals:
        notified(Notice): the outcome.

    Args:
        studio: its engine is described in the JSON file.
        runs: returns the runs to export.
        plots: the visible one is saved.
        head: returns a new widget without a parent: the top of the page, for a picture.
        theme: gives the colors.
    """

    notified = Signal(object)

    def __init__(
        self,
        studio: Studio,
        runs: Callable[[], Sequence[Run]],
        plots: BenchmarkPlots,
        theme: Theme,
        head: Callable[[], QWidget],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Export", parent)
        self.setObjectName("benchmark.export")
        self.setAccessibleName("Export the results")
        self.setToolTip("Export the results or the plot, or copy the table")
        self.setIcon(icon("export", theme))
        self._studio, self._runs, self._plots, self._theme = studio, runs, plots, theme
        self._head = head
        self._menu = QMenu(self)
        self._menu.setObjectName("benchmark.export.menu")
        self.copy_actions = [
            self._add("text", "Copy as &text", self._copy_text),
            self._add("markdown", "Copy as &Markdown", self._copy_markdown),
            self._add("copy_csv", "Copy as CS&V", self._copy_csv),
        ]
        self._menu.addSeparator()
        self._add("csv", "Results as &CSV…", self._save_csv)
        self._add("json", "Results and samples as &JSON…", self._save_json)
        self._add("recording", "Recording to &watch again…", self._save_recording)
        self._menu.addSeparator()
        self._add("png", "Plot as &PNG…", self._save_png)
        self._add("svg", "Plot as &SVG…", self._save_svg)
        self.setMenu(self._menu)
        saves(self)

    def _add(self, name: str, text: str, act: Callable[[], None]) -> QAction:
        action = self._menu.addAction(text, act)
        action.setObjectName(f"benchmark.export.{name}")
        return action

    def _save_csv(self) -> None:
        self._save("CSV table (*.csv)", ".csv", to_csv(self._runs()).encode())

    def _save_json(self) -> None:
        text = to_json(self._runs(), self._studio.session.description, local_now())
        self._save("JSON (*.json)", ".json", text.encode())

    def _save_recording(self) -> None:
        try:
            content = recording_from(self._studio, self._runs(), local_now())
        except StudioError as error:
            self.notified.emit(Notice(str(error), Tone.FAILURE))
            return
        self._save(f"Recording (*{RECORDING_ENDING})", RECORDING_ENDING, content)

    def _save_png(self) -> None:
        self._save("PNG picture (*.png)", ".png", self._picture(png_of))

    def _save_svg(self) -> None:
        self._save("SVG picture (*.svg)", ".svg", self._picture(svg_of))

    def _picture(self, painted: Callable[[LivePlot, str, Theme, QWidget], bytes]) -> bytes:
        front = self._plots.front
        if not front.curve_keys or (front.plot is None and not front.isVisible()):
            return b""
        head = self._head()
        picture = painted(front, self._plots.front_caption, self._theme, head)
        head.hide()
        head.deleteLater()
        return picture

    def _copy_text(self) -> None:
        self._copy(to_text(self._runs()))

    def _copy_markdown(self) -> None:
        self._copy(to_markdown(self._runs()))

    def _copy_csv(self) -> None:
        self._copy(to_csv(self._runs()))

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.notified.emit(Notice("Table copied."))

    def _save(self, kind: str, suffix: str, contents: bytes) -> None:
        if not contents:
            text = "There is no plot to save yet. Run the benchmark and show its plot first."
            self.notified.emit(Notice(text, Tone.FAILURE))
            return
        notice = save_as(self.window(), "Export the results", f"gpu-studio{suffix}", kind, contents)
        if notice.sentence:
            self.notified.emit(notice)
