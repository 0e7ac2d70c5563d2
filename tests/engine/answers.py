"""Asking an engine's dispatcher in tests."""

import threading
from typing import Any

from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.engine.dispatcher import Dispatcher


def ask(request: Request, dispatcher: Dispatcher | None = None) -> list[Event]:
    return list((dispatcher or Dispatcher()).run(request, threading.Event()))


def run_request(**changes: Any) -> RunWorkload:
    """Return a run that takes about half a second."""
    parameters: dict[str, Any] = {
        "run_id": "r1",
        "workload": "elementwise",
        "device": "cpu",
        "size": 32,
        "dtype": "float32",
        "budget_s": 0.05,
    }
    return RunWorkload(**{**parameters, **changes})


def only(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
