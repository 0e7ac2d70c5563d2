"""The first word with another PC: whether it can be reached, and what is there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.line_greeting import LineGreeting
from gpu_studio.core.line_trouble import LineProblem, LineTrouble, detail_of_ssh
from gpu_studio.core.messages.line_messages import Greeting, LineOpening
from gpu_studio.core.other_pc import ALIVE_EVERY_S, PLACES, SILENCE_S, ssh_command, ssh_program
from gpu_studio.core.protocol import encode
from gpu_studio.process.line_child import LineChild

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.other_pc import OtherPc

_LONGEST_END_S = 2.0
_LOOK_S = 0.1
_LONGEST_GOODBYE_S = 5.0


class Introduction(NamedTuple):
    """What came of a first word.

    Attributes:
        pc: the PC, with the place where its program was found.
        greeting: what its program said; None if it said nothing.
        trouble: why it cannot be used; None if it can.
        detail: ssh's own last line, for a dialog's details; it may name the host.
    """

    pc: OtherPc
    greeting: Greeting | None
    trouble: LineTrouble | None
    detail: str = ""


def greet(pc: OtherPc, is_over: Callable[[], bool] = lambda: False) -> Introduction:
    """Return what another PC's program says; blocks up to half a minute for each place.

    Args:
        pc: where to ask.
        is_over: asked regularly: whether to give up.

    Without a path of the user's, the program is looked for in `PLACES`, by one conversation each:
    every shell there understands a single command, and not every shell the same list of them.
    """
    ssh = ssh_program()
    if ssh is None:
        return Introduction(pc, None, LineTrouble(problem=LineProblem.NO_SSH, pc=pc.name))
    for place in [pc.program] if pc.program else PLACES:
        found = _greet_at(msgspec.structs.replace(pc, program=place), ssh, is_over)
        if (
            is_over()
            or found.trouble is None
            or found.trouble.problem is not LineProblem.NO_PROGRAM
        ):
            return found
    return found._replace(pc=pc)


def _greet_at(pc: OtherPc, ssh: str, is_over: Callable[[], bool]) -> Introduction:
    greeting = LineGreeting(pc, "hello")
    child = LineChild(
        ssh_command(pc, "hello", ssh),
        encode(LineOpening()),
        greeting,
        alive_every_s=ALIVE_EVERY_S,
        silence_s=SILENCE_S,
    )
    has_ended = threading.Event()

    def give_up() -> None:
        looks = 0
        while not has_ended.wait(_LOOK_S):
            # Counted, as silence is: a PC that slept has not waited.
            looks += child.is_greeted
            if is_over() or looks * _LOOK_S > _LONGEST_GOODBYE_S:
                child.kill()
                return

    threading.Thread(target=give_up, name="greeting", daemon=True).start()
    next(child.lines(), None)  # nothing follows a greeting
    has_ended.set()
    exit_code = child.end(_LONGEST_END_S)
    problem = greeting.problem
    trouble = None
    if greeting.greeting is None or child.has_flooded:
        trouble = greeting.trouble(child, exit_code)
    elif problem is not None:
        trouble = LineTrouble(problem=problem, pc=pc.name)
    return Introduction(pc, greeting.greeting, trouble, detail_of_ssh(child.errors))
