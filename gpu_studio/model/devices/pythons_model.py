"""The PyTorch of other programs on this PC: what is found, and what a kernel in one of them says.

Both are asked in children: the window never waits for a drive or for another program.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpu_studio.core.program_form import typed
from gpu_studio.core.pythons.coverage import this_pc
from gpu_studio.core.pythons.kernel import after_kernel, run_kernel
from gpu_studio.core.pythons.search import AskPythons, FoundPythons, ask_for_pythons
from gpu_studio.core.pythons.verdict import (
    Judged,
    headline,
    judged,
    left_out_lines,
    looked_line,
)
from gpu_studio.model.latest import Latest
from gpu_studio.model.page_model import PageModel
from gpu_studio.process.child_call import call_child
from gpu_studio.process.command_call import call_command

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtCore import QObject

    from gpu_studio.core.child_question import CallEnd
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.pythons.environment import Environment
    from gpu_studio.model.studio import Studio

MOST_SHOWN = 40
_BEFORE = "Is the PyTorch of your other programs right for this card?"
_HOW = (
    "Looks through your folders for ComfyUI, WebUI, conda, uv, pipx and others. It only reads: "
    "nothing in them is started or changed."
)


class PythonsModel(PageModel):
    """One search at a time, and one kernel at a time; a later one takes an earlier one's place.

    Attributes:
        verdicts: each Python with its verdict, those that need something first.
        tried: the folder of packages whose kernel runs; "" if none does.
    """

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent=parent)
        self._sensors = studio.sensors
        self._found: FoundPythons | None = None
        self._why_none = ""
        self.verdicts: list[Judged] = []
        self.tried = ""
        self._search, self._kernel = Latest(self), Latest(self)
        for latest, on_succeeded in ((self._search, self._on_found), (self._kernel, self._on_ran)):
            latest.succeeded.connect(on_succeeded)
            latest.failed.connect(self._on_failed)
            studio.closing.connect(latest.close)

    @property
    def is_busy(self) -> bool:
        """Whether it looks, or a kernel runs."""
        return self._search.is_busy or self._kernel.is_busy

    @property
    def has_looked(self) -> bool:
        """Whether there is a result."""
        return self._found is not None

    @property
    def sentence(self) -> str:
        """The answer."""
        if self._search.is_busy:
            return "Looking for PyTorch…"
        inventory = self._sensors.inventory
        if self._found is None or inventory is None:
            return self._why_none or _BEFORE
        return headline(self.verdicts, this_pc(inventory))

    @property
    def about(self) -> str:
        """How much was looked into, or what would be."""
        return _HOW if self._found is None else looked_line(self._found)

    @property
    def left_out(self) -> str:
        """What was not looked into, and how many are not shown."""
        more = len(self.verdicts) - MOST_SHOWN
        hidden = [f"{more} more: “{typed('gpu-studio doctor --everywhere')}” lists them all."]
        lines = left_out_lines(self._found) if self._found is not None else []
        return "\n".join([*(hidden if more > 0 else []), *lines])

    def look(self, *folders: Path) -> None:
        """Look in some folders, or in all usual places."""
        question = AskPythons(folders=tuple(map(os.path.abspath, folders)))
        self._found, self._why_none, self.verdicts = None, "", []
        self._kernel.drop()
        self._search.ask(lambda is_over: ask_for_pythons(question, call_child, is_over))
        self.changed.emit()

    def stop(self) -> None:
        """Look no further, and end the kernel."""
        self._search.drop()
        self._kernel.drop()
        self.tried = ""
        self.changed.emit()

    def try_kernel(self, at: int) -> None:
        """Run a small kernel in a Python of the list."""
        one = self.verdicts[at].environment
        self.tried = one.site
        self._kernel.ask(lambda is_over: (one, run_kernel(one, call_command, is_over)))
        self.changed.emit()

    def _on_found(self, found: FoundPythons) -> None:
        self._found = found
        inventory = self._sensors.inventory
        self.verdicts = judged(found.environments, this_pc(inventory)) if inventory else []
        self.changed.emit()

    def _on_ran(self, answer: tuple[Environment, CallEnd]) -> None:
        environment, ended = answer
        self.tried = ""
        self.verdicts = [
            after_kernel(one, ended) if one.environment is environment else one
            for one in self.verdicts
        ]
        self.changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        self._why_none, self.tried = failure.message, ""
        self.changed.emit()
