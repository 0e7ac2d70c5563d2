"""Runs that somebody stops."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpu_studio.engine.dispatcher import Dispatcher
from tests.engine.answers import run_request

if TYPE_CHECKING:
    from collections.abc import Callable


def stop_when(wanted: Callable[[object], bool], **changes: object) -> list[object]:
    stop = threading.Event()
    events = []
    for event in Dispatcher().run(run_request(budget_s=60.0, **changes), stop):
        events.append(event)
        if wanted(event):
            stop.set()
    return events
