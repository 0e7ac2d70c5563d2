"""A timer for something that is done once, a turn of the event loop later.

In place of `QTimer.singleShot`, whose timer Qt deletes behind the back of its Python wrapper: in
deferred deletes the window crashed (see `Worker.retire`). This one lives as long as its owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QObject


def turn_timer(owner: QObject, act: Callable[[], None]) -> QTimer:
    """Return a timer of the owner's that calls a method of the owner's after each `start`."""
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.setInterval(0)
    timer.timeout.connect(act)
    return timer
