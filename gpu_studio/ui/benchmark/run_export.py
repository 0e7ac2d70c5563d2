"""Runs and plots on their way out: files, the clipboard, and a picture."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QGuiApplication, QPainter
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gpu_studio.core.benchmark.export import to_csv, to_json, to_markdown
from gpu_studio.core.failure import StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.program_version import program_title
from gpu_studio.core.units import local_now, shown_moment
from gpu_studio.model.benchmark.recording import RECORDING_ENDING, recording_from
from gpu_studio.ui.benchmark.hero_line import HeroLine
from gpu_studio.ui.parts import GAP, Text
from gpu_studio.ui.saving import picture_of, save_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QPaintEvent

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.run_model import RunModel
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.plots.live_plot import LivePlot
    from gpu_studio.ui.theme import Theme

_MARGIN = 12
_SCALE = 2  # sharp in print, and on other screens


class RunExport:
    """What the menu Export does; rows keep their display order, and the model says the outcome.

    Args:
        studio: its engine is described in the files.
        model: its runs go out.
        theme: gives the colors.
        front: returns the plot in front, and what it shows.
    """

    def __init__(
        self, studio: Studio, model: RunModel, theme: Theme,
        front: Callable[[], tuple[LivePlot, str]],
    ) -> None:  # fmt: skip
        self._studio, self._model, self._theme, self._front = studio, model, theme, front
        self.copies = (
            ("Copy as &Markdown", partial(self._copy, to_markdown), "benchmark.export.markdown"),
            ("Copy as CS&V", partial(self._copy, to_csv), "benchmark.export.copy_csv"),
        )
        self.items = (
            *self.copies, None,
            ("Results as &CSV…", self._save_csv, "benchmark.export.csv"),
            ("Results and samples as &JSON…", self._save_json, "benchmark.export.json"),
            ("Recording to &watch again…", self._save_recording, "benchmark.export.recording"),
            None, ("Plot as &PNG…", self._save_png, "benchmark.export.png"),
        )  # fmt: skip

    def _copy(self, text_of: Callable[[Sequence[Run]], str]) -> None:
        QGuiApplication.clipboard().setText(text_of(self._model.sheet.runs))
        self._model.on_notified(Notice("Table copied."))

    def _save_csv(self) -> None:
        self._save("CSV table (*.csv)", ".csv", to_csv(self._model.sheet.runs).encode())

    def _save_json(self) -> None:
        runs = self._model.sheet.runs
        text = to_json(runs, self._studio.session.description, local_now())
        self._save("JSON (*.json)", ".json", text.encode())

    def _save_recording(self) -> None:
        try:
            content = recording_from(self._studio, self._model.sheet.runs, local_now())
        except StudioError as error:
            self._model.on_notified(Notice(str(error), Tone.FAILURE))
            return
        self._save(f"Recording (*{RECORDING_ENDING})", RECORDING_ENDING, content)

    def _save_png(self) -> None:
        front, caption = self._front()
        if front.curve_keys and (front.plot is not None or front.isVisible()):
            self._save("PNG picture (*.png)", ".png", self._picture(front, caption))
            return
        text = "There is no plot to save yet. Run the benchmark and show its plot first."
        self._model.on_notified(Notice(text, Tone.FAILURE))

    def _picture(self, front: LivePlot, caption: str) -> bytes:
        """Return the plot in front with its caption, below the line over it; last the date."""
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
        column.setSpacing(GAP)
        line = HeroLine(self._theme, name="benchmark.hero.picture")
        line.show_hero(self._model.hero)
        source = Text(f"{program_title()} · {shown_moment(local_now())}", "muted")
        for part in (line, Text(caption, "value", wraps=True), _PlotCopy(front), source):
            column.addWidget(part)
        return picture_of(
            page, front.width() + 2 * _MARGIN, background=self._theme.colour("card"), scale=_SCALE
        )

    def _save(self, kind: str, suffix: str, contents: bytes) -> None:
        name = f"gpu-studio{suffix}"
        notice = save_as(self._front()[0].window(), "Export the results", name, kind, contents)
        if notice.sentence:
            self._model.on_notified(notice)


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
