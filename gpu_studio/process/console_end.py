"""Ends the program as it should when Windows closes its console or ends the session.

Windows tells a program that was started in a console in a thread of its own, and ends it when that
call returns, or after five seconds. A window that was ended so would not have saved its place, and
the next start would say that this one ended badly.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# CTRL_CLOSE_EVENT, CTRL_LOGOFF_EVENT and CTRL_SHUTDOWN_EVENT of wincon.h.
_ENDS = (2, 5, 6)
_LONGEST_END_S = 4.5


class ConsoleEnd:
    """Closes the program before its console ends.

    Args:
        close: asks the program to close; called in a thread of Windows.
    """

    def __init__(self, close: Callable[[], object]) -> None:
        self._close = close
        self._is_over = threading.Event()
        if sys.platform == "win32":
            import ctypes
            from ctypes import wintypes

            # Windows keeps the address alone, so this object has to live as long as the program.
            kind = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.DWORD)
            self._handler = kind(self.handle)
            ctypes.windll.kernel32.SetConsoleCtrlHandler(self._handler, True)

    def handle(self, event: int) -> bool:
        """Close the program and wait for its end; return False, so that other handlers follow.

        Args:
            event: what the console tells; Ctrl-C and Ctrl-Break are signals, and not for this.
        """
        if event in _ENDS:
            self._close()
            self._is_over.wait(_LONGEST_END_S)
        return False

    def note_end(self) -> None:
        """Say that the program has closed, and that nothing is waited for any more."""
        self._is_over.set()
