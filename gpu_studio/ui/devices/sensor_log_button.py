"""The button that logs all sensors to a file, and the line that reports the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog, QWidget

from gpu_studio.ui.parts import Text, button

if TYPE_CHECKING:
    from gpu_studio.model.devices.sensor_log import SensorLog

_TIP = "Write every reading of all devices to a CSV file until you stop the log"


class SensorLogButton(QWidget):
    """Two widgets for a tab to place: `press` and `outcome`."""

    def __init__(self, log: SensorLog, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.hide()  # only its two widgets are visible
        self._log = log
        self.press = button("Log to file…", self._press, name="devices.sensors.log", tip=_TIP)
        self.outcome = Text("", "muted", name="devices.sensors.log.said", wraps=True)
        self.outcome.hide()
        log.state_changed.connect(self._show)

    def _press(self) -> None:
        if self._log.is_running:
            self._log.stop()
            return
        chosen, _ = QFileDialog.getSaveFileName(
            self.press, "Log the sensors to a file", "gpu-studio-sensors.csv", "CSV (*.csv)"
        )
        if chosen:
            self._log.start(Path(chosen))

    def _show(self) -> None:
        self.press.setText("Stop the log" if self._log.is_running else "Log to file…")
        self.press.setAccessibleName(self.press.text())
        self.outcome.show_notice(self._log.notice)
