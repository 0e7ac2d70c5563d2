"""Qt's classes for Python, all made before a second thread asks for one.

PySide makes a class when it is first asked for. Two threads that ask at the same time damage its
tables, and the program ends with a segmentation fault. pyqtgraph asks for all of them: where it was
imported in a thread, 4 of 110 starts ended so (PySide 6.11.3, `sys.setswitchinterval(1e-5)`), and
none of 110 with the classes made before.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6 import QtCore, QtGui, QtWidgets

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_S = 0.008  # of a turn of the event loop; all classes take 65 ms on a PC with two cores


def made_in_turns() -> Iterator[None]:
    """Make the classes of QtCore, QtGui and QtWidgets; each ``yield`` is a place for a turn."""
    began_s = time.perf_counter()
    for module in (QtCore, QtGui, QtWidgets):
        for name in dir(module):
            getattr(module, name)
            if time.perf_counter() - began_s > _LONGEST_S:
                yield
                began_s = time.perf_counter()
