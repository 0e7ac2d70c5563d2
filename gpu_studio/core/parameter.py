"""What can be chosen for a piece of work, declared once.

A `Parameter` stands at the field of the message that carries it, as in
``naive: Annotated[bool, Parameter(…)] = False``. From this declaration come the message's field
and its default, the window's control, the terminal's option with its help, its line in
docs/command-line.md, the refusal of a wrong value, and the words of a history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec

from gpu_studio.core.texts import listed


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A choice; `parameters_of` returns those of a message.

    Attributes:
        name: its word in the settings, in names of controls, and in `WorkloadDescription.refuses`.
        option: its word in the terminal; by default the name.
        title: its name in a form.
        sentence: what it does.
        offered: the values that a form offers. Two of them are a switch: off and on.
        names: those values in words, where they do not speak for themselves.
        unit: of a number, as ``s``.
        low: what a number has to exceed.
        high: the largest number.
        words: what a history says of a run for which it is switched on; empty if the result is the
            same without it.
        is_expert: whether a form folds it away.
        work: the commands that have it.
        field: the message's field.
        default: the field's default.
    """

    name: str
    option: str = ""
    title: str
    sentence: str
    offered: tuple[Any, ...] = (False, True)
    names: tuple[str, ...] = ()
    unit: str = ""
    low: float = 0.0
    high: float = 0.0
    words: str = ""
    is_expert: bool = False
    work: tuple[str, ...] = ("bench",)
    field: str = ""
    default: Any = None

    @property
    def flag(self) -> str:
        """The terminal's option: ``--stop-early``."""
        return f"--{(self.option or self.name).replace('_', '-')}"

    @property
    def is_switch(self) -> bool:
        """Whether it is switched on or off."""
        return len(self.offered) == 2

    @property
    def items(self) -> list[tuple[str, Any]]:
        """The offered values with their names, as a form's list wants them."""
        return list(zip(self.names, self.offered, strict=True))

    def is_on(self, work: object) -> bool:
        """Return whether a request or a result has it switched on."""
        return self.is_switch and getattr(work, self.field, self.default) == self.offered[1]

    def value_of(self, chosen: Any) -> Any:
        """Return the field's value for what is chosen: of a switch, whether it is on."""
        return self.offered[bool(chosen)] if self.is_switch else chosen

    def refusal(self, value: Any) -> str:
        """Return why a value cannot be, as a sentence; empty if it can."""
        if not self.high:
            # A number between off and on, as a file may have, is a choice as well.
            is_known = value in self.offered or isinstance(self.offered[-1], float)
            allowed = f"{listed([*map(str, self.offered)], 'or')} {self.unit}".strip()
        else:
            is_known = isinstance(value, (int, float)) and self.low < value <= self.high
            allowed = f"more than {self.low:g} and at most {self.high:g} {self.unit}".strip()
        if is_known:
            return ""
        shown = f"{value:g}" if isinstance(value, float) else str(value)
        return f"{self.title}: “{shown[:20]}” is out of range. Choose {allowed}."


@cache
def parameters_of(message: Any, work: str = "") -> tuple[Parameter, ...]:
    """Return the parameters that a message's fields declare, in their order.

    Args:
        message: a struct.
        work: a command: those that it has; empty for all.
    """
    found = []
    for field in msgspec.structs.fields(message):
        for declared in getattr(field.type, "__metadata__", ()):
            if isinstance(declared, Parameter) and (not work or work in declared.work):
                found.append(replace(declared, field=field.name, default=field.default))
    return tuple(found)


def refusal_of(message: object) -> str:
    """Return why a message's values cannot be, as a sentence; empty if they can."""
    kind: Any = type(message)
    refused = (one.refusal(getattr(message, one.field)) for one in parameters_of(kind))
    return next(filter(None, refused), "")
