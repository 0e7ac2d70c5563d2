"""What “Measure this PC” shows: its progress, then a sentence, a row of figures per device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QProgressBar, QVBoxLayout, QWidget

from gpu_studio.model.pages import COMPARE
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.standard_record import StandardDevice, StandardRun
    from gpu_studio.model.benchmark.standard_measurement import StandardMeasurement
    from gpu_studio.model.studio import Studio
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
        self._figures = QWidget()
        self._rows = QVBoxLayout(self._figures)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(GAP)
        self._compare = button(
            "Compare", self._go_to_compare, name="devices.standard.compare",
            tip="See this PC beside others, from their files",
        )  # fmt: skip
        self._share = button(
            "Share…", self._share_run, name="devices.standard.share",
            tip="Save this result as a picture or a table, or copy it as text",
        )  # fmt: skip
        self.presses = FlowRow(self._share, self._compare, spacing=GAP)
        for part in (self._sentence, self._bar, self._notice, self._figures, self.presses):
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
            self._shown = run
            self._show_figures(run.devices)
        has_result = run is not None and not is_busy
        self._figures.setVisible(has_result)
        self.presses.setVisible(has_result)
        self._sentence.setText(measurement.sentence if is_busy else self._result)

    @property
    def _result(self) -> str:
        if self._shown is None:
            return ""
        from gpu_studio.core.benchmark.standard_words import (  # not at the start
            compared_works,
            headline,
            sides_of,
        )

        sides = sides_of(self._shown)
        return ". ".join(headline(sides, compared_works(sides)))

    def _show_figures(self, devices: Sequence[StandardDevice]) -> None:
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for device in devices:
            self._rows.addWidget(_device_row(device))

    def _share_run(self) -> None:
        from gpu_studio.core.benchmark.standard_words import sides_of
        from gpu_studio.ui.standard_picture import standard_dialog

        if self._shown is not None:
            standard_dialog(sides_of(self._shown), self._theme, self.window()).exec()

    def _go_to_compare(self) -> None:
        self._studio.go_to(COMPARE)


def _device_row(device: StandardDevice) -> QWidget:
    """Return a device's name, and below it a large figure per item, each over its name."""
    from gpu_studio.core.benchmark.standard import standard_item
    from gpu_studio.core.benchmark.standard_words import held_words, missing_words
    from gpu_studio.core.units import format_rate

    row = QWidget()
    column = QVBoxLayout(row)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(2)
    column.addWidget(Text(device.name, "section"))
    figures = [
        _figure(format_rate(result.throughput, result.throughput_unit), item.title)
        for one in device.figures
        if (result := one.result) is not None and (item := standard_item(one.key)) is not None
    ]
    column.addWidget(FlowRow(*figures, spacing=2 * GAP))
    for sentence in filter(None, (held_words(device), missing_words(device))):
        column.addWidget(Text(sentence, "muted", wraps=True))
    return row


def _figure(value: str, title: str) -> QWidget:
    place = QWidget()
    column = QVBoxLayout(place)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    column.addWidget(Text(value, "value"))
    column.addWidget(Text(title, "muted"))
    place.setAccessibleName(f"{title}: {value}")
    return place
