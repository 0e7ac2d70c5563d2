"""pytest-qt's qtbot for a machine that is busy with something else."""

from collections.abc import Callable
from typing import Any

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from tests.patience import PATIENCE_MS


class PatientQtBot(QtBot):
    """The same waits; they end in failure after a minute, and not after five seconds."""

    def waitSignal(self, signal: Any, *, timeout: int = PATIENCE_MS, **options: Any) -> Any:
        return super().waitSignal(signal, timeout=timeout, **options)

    def waitSignals(self, signals: Any, *, timeout: int = PATIENCE_MS, **options: Any) -> Any:
        return super().waitSignals(signals, timeout=timeout, **options)

    def waitUntil(self, is_so: Callable[[], object], *, timeout: int = PATIENCE_MS) -> None:
        super().waitUntil(is_so, timeout=timeout)

    def waitExposed(self, widget: QWidget, *, timeout: int = PATIENCE_MS) -> Any:
        return super().waitExposed(widget, timeout=timeout)

    def waitActive(self, widget: QWidget, *, timeout: int = PATIENCE_MS) -> Any:
        return super().waitActive(widget, timeout=timeout)
