"""The setup's progress as lines of JSON on stdout, for the window of a GPU Studio that runs.

A line has ``kind`` ("step", "note", "detail", "failed" or "done"), ``text``, and ``fraction`` (0 to
1, or null). The end of stdin stops the setup.
"""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, TextIO

from studio_setup.console import SetupError
from studio_setup.progress_window import WindowConsole

if TYPE_CHECKING:
    from collections.abc import Callable

    from studio_setup.console import Console

_STDIN = 0


class _Lines:
    """Takes what a console says, and writes it at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def put(self, message: tuple[str, str, float | None]) -> None:
        line = json.dumps(dict(zip(("kind", "text", "fraction"), message, strict=True)))
        print(line, file=self._stream, flush=True)


def write_progress(
    work: Callable[[Console], None], stream: TextIO, descriptor: int | None = None
) -> bool:
    """Do the work and write its progress; return whether it succeeded.

    Args:
        work: the setup.
        stream: for the lines.
        descriptor: its end stops the work; stdin if None.
    """
    lines = _Lines(stream)
    console = WindowConsole(lines)
    descriptor = _STDIN if descriptor is None else descriptor

    def wait_for_end() -> None:
        # Not through sys.stdin: a thread that holds its lock would abort the interpreter's end.
        while os.read(descriptor, 1024):
            pass
        console.close()

    threading.Thread(target=wait_for_end, name="stdin", daemon=True).start()
    try:
        work(console)
    except (SetupError, OSError) as error:
        lines.put(("failed", str(error), None))
        return False
    lines.put(("done", "", 1.0))
    return True
