"""A setup that tells its progress when a test lets it."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from gpu_studio.core.set_up_progress import SetUpProgress

if TYPE_CHECKING:
    from collections.abc import Iterator


class ScriptedInstaller:
    """Satisfies `model.build_installation.Installer`; `say` brings the next line."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.is_closed = False
        self._lines: queue.SimpleQueue[SetUpProgress | None] = queue.SimpleQueue()

    def installing(self, tag: str) -> Iterator[SetUpProgress]:
        self.tags.append(tag)
        yield from iter(self._lines.get, None)

    def say(self, kind: str, text: str = "", fraction: float | None = None) -> None:
        self._lines.put(SetUpProgress(kind, text, fraction))
        if kind in ("done", "failed"):
            self._lines.put(None)

    def stop(self) -> None:
        self.say("failed", "Stopped.")

    def close(self) -> None:
        self.is_closed = True
        self._lines.put(None)
