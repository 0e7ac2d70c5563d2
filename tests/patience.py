"""How long a test waits before it says that something never came.

Only a failure waits so long: what is waited for ends the wait. So it is generous, and no test
depends on how busy the machine is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0
PATIENCE_MS = round(PATIENCE_S * 1000)


def until(is_so: Callable[[], object]) -> None:
    """Wait for something that another thread or process does."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.01)
