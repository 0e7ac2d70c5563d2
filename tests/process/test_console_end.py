"""A console that is closed under the program ends it as its own button does."""

from __future__ import annotations

import threading

import pytest

from gpu_studio.process.console_end import ConsoleEnd
from tests.patience import PATIENCE_S

CTRL_C, CTRL_BREAK, CTRL_CLOSE, CTRL_LOGOFF, CTRL_SHUTDOWN = 0, 1, 2, 5, 6


@pytest.mark.parametrize("event", [CTRL_CLOSE, CTRL_LOGOFF, CTRL_SHUTDOWN])
def test_the_console_waits_until_the_program_has_closed(event: int):
    signaled = threading.Event()
    end = ConsoleEnd(signaled.set)
    console = threading.Thread(target=end.handle, args=(event,))
    console.start()
    assert signaled.wait(PATIENCE_S)
    assert console.is_alive()
    end.note_end()
    console.join(PATIENCE_S)
    assert not console.is_alive()


@pytest.mark.parametrize("event", [CTRL_C, CTRL_BREAK])
def test_keys_are_signals_and_not_the_end_of_the_console(event: int):
    signaled = threading.Event()
    assert ConsoleEnd(signaled.set).handle(event) is False
    assert not signaled.is_set()
