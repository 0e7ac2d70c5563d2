"""The measured side of start_up.py: GPU Studio from its own `main` until its first paint.

It prints the clock then, and the processor time that the process needed.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from gpu_studio.__main__ import load_window

open_window = load_window()  # it imports Qt after what needs no Qt

from PySide6.QtCore import QEvent, QObject, QTimer  # noqa: E402

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMainWindow


class FirstPaint(QObject):
    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._is_reported = False

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint and not self._is_reported:
            self._is_reported = True
            QTimer.singleShot(0, self, self._report)
        return False

    def _report(self) -> None:
        print(time.perf_counter(), time.process_time(), flush=True)
        self._window.close()


def build_watched_window(**options: Any) -> QMainWindow:
    window = build_window(**options)
    window.installEventFilter(FirstPaint(window))
    return window


app = sys.modules["gpu_studio.app"]
build_window = app.build_window
app.build_window = build_watched_window
sys.exit(open_window())
