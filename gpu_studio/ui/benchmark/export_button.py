"""The Export button: saves or copies runs and plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QAction, QGuiApplication, QPainter
from PySide6.QtWidgets import QMenu, QPushButton, QVBoxLayout, QWidget

from gpu_studio.core.benchmark.export import to_csv, to_json, to_markdown
from gpu_studio.core.failure import StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.program_version import program_title
from gpu_studio.core.units import local_now, shown_moment
from gpu_studio.model.benchmark.recording import RECORDING_ENDING, recording_from
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Text, press_by_key
from gpu_studio.ui.saving import picture_of, save_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QPaintEvent

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.plots.live_plot import LivePlot
    from gpu_studio.ui.theme import Theme

_MARGIN = 12
_SCALE = 2  # sharp in print, and on other screens


class _PlotCopy(QWidget):
    """Paints the present view of a plot, which has been visible."""

    def __init__(self, plot: LivePlot) -> None:
        super().__init__()
        self._canvas = plot.lay_out()
        self.setFixedSize(plot.size())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the plot in the pixels of the picture."""
        painter = QPainter(self)
        self._canvas.render(painter, QRectF(self.rect()), self._canvas.viewport().rect())
        painter.end()


class ExportButton(QPushButton):
    """Opens a menu; reports each outcome as a sentence. Rows keep their display order.

    Signals:
        notified(Notice): the outcome.

    Args:
        studio: its engine is described in the JSON file.
        runs: returns the runs to export.
        plot: returns the plot in front.
        caption: returns what it shows, in words.
        theme: gives the colors.
        head: returns a new widget without a parent: the top of the page, for a picture.
    """

    notified = Signal(object)

    def __init__(
        self,
        studio: Studio,
        runs: Callable[[], Sequence[Run]],
        plot: Callable[[], LivePlot],
        caption: Callable[[], str],
        theme: Theme,
        *,
        head: Callable[[], QWidget],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Export", parent)
        self.setObjectName("benchmark.export")
        self.setAccessibleName("Export the results")
        self.setToolTip("Export the results or the plot, or copy the table")
        self.setIcon(icon("export", theme))
        self._studio, self._runs, self._theme = studio, runs, theme
        self._plot, self._caption, self._head = plot, caption, head
        self._menu = QMenu(self)
        self._menu.setObjectName("benchmark.export.menu")
        self.copy_actions = [
            self._add("markdown", "Copy as &Markdown", self._copy_markdown),
            self._add("copy_csv", "Copy as CS&V", self._copy_csv),
        ]
        self._menu.addSeparator()
        self._add("csv", "Results as &CSV…", self._save_csv)
        self._add("json", "Results and samples as &JSON…", self._save_json)
        self._add("recording", "Recording to &watch again…", self._save_recording)
        self._menu.addSeparator()
        self._add("png", "Plot as &PNG…", self._save_png)
        self.setMenu(self._menu)
        press_by_key(self, "save")

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
        self._save("PNG picture (*.png)", ".png", self._picture())

    def _picture(self) -> bytes:
        """Return the plot in front with its caption, below the top of the page; last the date."""
        front = self._plot()
        if not front.curve_keys or (front.plot is None and not front.isVisible()):
            return b""
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
        column.setSpacing(GAP)
        caption = Text(self._caption(), "value", wraps=True)
        source = Text(f"{program_title()} · {shown_moment(local_now())}", "muted")
        for part in (self._head(), caption, _PlotCopy(front), source):
            column.addWidget(part)
        return picture_of(
            page, front.width() + 2 * _MARGIN, background=self._theme.colour("card"), scale=_SCALE
        )

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
