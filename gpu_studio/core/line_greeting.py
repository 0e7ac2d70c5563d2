"""Whether to talk to what answers on another PC, and why there is no line if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gpu_studio.core.line_trouble import PART_ENDED, LineProblem, LineTrouble, problem_of_ssh
from gpu_studio.core.messages.line_messages import (
    LONGEST_GREETING,
    Greeting,
    decode_greeting,
)
from gpu_studio.core.protocol import protocol_version

if TYPE_CHECKING:
    from gpu_studio.core.other_pc import OtherPc, ServedPart


class EndedLine(Protocol):
    """A conversation that is over: `process.line_child.LineChild`."""

    @property
    def is_greeted(self) -> bool: ...
    @property
    def has_flooded(self) -> bool: ...
    @property
    def was_silent(self) -> bool: ...
    @property
    def errors(self) -> str: ...


class LineGreeting:
    """Reads the greeting of one conversation; call it with each line until it answers.

    Attributes:
        greeting: the greeting, as soon as there is one; it may be another version's.
    """

    def __init__(self, pc: OtherPc, part: ServedPart) -> None:
        self._pc, self._part = pc, part
        self.greeting: Greeting | None = None

    def __call__(self, line: bytes) -> bool | None:
        """Return whether to talk to the program of this greeting; None if it is no greeting."""
        if len(line) > LONGEST_GREETING:
            return None
        self.greeting = decode_greeting(line)
        return None if self.greeting is None else self.problem is None

    @property
    def problem(self) -> LineProblem | None:
        """Why not to talk to the program that has greeted; None if nothing speaks against it."""
        if self.greeting is None:
            return LineProblem.NOT_OURS
        if self.greeting.protocol != protocol_version():
            return LineProblem.OTHER_VERSION
        if self._part == "engine" and not self.greeting.has_engine:
            return LineProblem.NO_ENGINE
        return None

    def trouble(self, line: EndedLine, exit_code: int | None) -> LineTrouble:
        """Return why a conversation has ended.

        Args:
            line: the conversation.
            exit_code: of its ssh; None if it was killed.
        """
        return LineTrouble(problem=self._why(line, exit_code), pc=self._pc.name)

    def _why(self, line: EndedLine, exit_code: int | None) -> LineProblem:
        if line.has_flooded:
            return LineProblem.NOT_OURS
        if line.is_greeted:
            return LineProblem.PART_ENDED if exit_code == PART_ENDED else LineProblem.LOST
        if self.greeting is not None:
            return self.problem or LineProblem.LOST
        if line.was_silent:
            return LineProblem.SILENT
        return problem_of_ssh(exit_code, line.errors)
