"""What “Measure this PC” shows: its progress, then the result as it is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QProgressBar

from gpu_studio.model.pages import COMPARE
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.standard_record import StandardRun
    from gpu_studio.model.benchmark.standard_measurement import StandardMeasurement
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.standard_page import StandardPage
    from gpu_studio.ui.theme import Theme

_STEPS = 1000


class StandardPanel(Card):
    """The standard run of this PC, hidden until there is one or one is being made.

    It stands below everything that starts a measurement, so that nothing moves under the pointer.
    """

    def __init__(self, studio: Studio, measurement: StandardMeasurement, theme: Theme) -> None:
        super().__init__(name="devices.standard")
        self.setAccessibleName("The standard run of this PC")
        self._studio, self._measurement, self._theme = studio, measurement, theme
        self._shown: StandardRun | None = None
        self._sentence = Text("", "lead", name="devices.standard.sentence", wraps=True)
        self._notice = Text("", name="devices.standard.notice", wraps=True)
        self._bar = QProgressBar()
        self._bar.setObjectName("devices.standard.progress")
        self._bar.setAccessibleName("Progress of the measurement")
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._page: StandardPage | None = None
        self._compare = button(
            "Compare", self._go_to_compare, name="devices.standard.compare",
            tip="See this PC beside others, from their files",
        )  # fmt: skip
        self._share = button(
            "Share…", self._share_run, name="devices.standard.share",
            tip="Save this result as a picture or a table, or copy it as text",
        )  # fmt: skip
        self.presses = FlowRow(self._share, self._compare, spacing=GAP)
        for part in (self._sentence, self._bar, self._notice, self.presses):
            self.column.addWidget(part)
        self.update_all()

    def update_all(self) -> None:
        """Show the measurement as it is now."""
        measurement = self._measurement
        is_busy, run = measurement.state.is_busy, measurement.run
        self.setVisible(is_busy or run is not None or bool(measurement.notice.sentence))
        self._bar.setVisible(is_busy)
        self._bar.setValue(round(_STEPS * measurement.progress))
        self._notice.show_notice(measurement.notice)
        if run is not self._shown and run is not None:
            self._show_run(run)
        has_result = run is not None and not is_busy
        if self._page is not None:
            self._page.setVisible(has_result)
        self.presses.setVisible(has_result)
        self._sentence.setVisible(is_busy)
        self._sentence.setText(measurement.sentence if is_busy else "")

    def _show_run(self, run: StandardRun) -> None:
        from gpu_studio.core.benchmark.standard_words import sides_of  # not at the start
        from gpu_studio.ui.standard_page import StandardPage

        if self._page is None:
            self._page = StandardPage(self._theme)
            self.column.addWidget(self._page)
        self._page.show_sides(sides_of(run))
        self._shown = run

    def _share_run(self) -> None:
        from gpu_studio.core.benchmark.standard_words import sides_of
        from gpu_studio.ui.standard_page import standard_dialog

        if self._shown is not None:
            standard_dialog(sides_of(self._shown), self._theme, self.window()).exec()

    def _go_to_compare(self) -> None:
        self._studio.go_to(COMPARE)
