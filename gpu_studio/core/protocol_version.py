"""A fingerprint of all messages, which two PCs compare before they talk.

It changes when a message, a field or one of its types or words does, and with nothing else: it is
the same for every version of Python and of the libraries.
"""

from __future__ import annotations

import hashlib
import inspect
import typing
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.messages.engine_messages import Heartbeat
from gpu_studio.core.messages.line_messages import LineOpening
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.protocol import messages_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINE = 1
"""The next number for a change of what a message means and of how the line works."""


@cache
def protocol_version() -> str:
    """Return the fingerprint of the messages that this program reads and writes."""
    roots: list[type] = [*messages_of(Request), *messages_of(Event)]
    roots += [Heartbeat, LineOpening, Inventory, Reading]
    return f"{_LINE}-{fingerprint(roots)}"


def fingerprint(messages: Iterable[type]) -> str:
    """Return a short text that differs for other messages, and for other fields in them."""
    found: dict[str, str] = {}
    waiting = list(messages)
    while waiting:
        one = waiting.pop()
        name = f"{one.__module__}.{one.__qualname__}"
        if name not in found:
            found[name] = _described(one)
            waiting.extend(_inner_types(one))
    lines = "\n".join(found[name] for name in sorted(found))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def _described(one: type) -> str:
    if issubclass(one, Enum):
        return f"{one.__name__}: {sorted(str(member.value) for member in one)}"
    assert issubclass(one, msgspec.Struct)
    # As they are written, since nothing here evaluates them: what typing makes of them differs.
    written: dict[str, str] = {}
    for part in reversed(one.__mro__):
        if part is not object:
            written.update(inspect.get_annotations(part))
    fields = ((name, written[name]) for name in one.__struct_fields__)
    return f"{one.__name__} {one.__struct_config__.tag}: {sorted(fields)}"


def _inner_types(one: type) -> Iterable[type]:
    if not issubclass(one, msgspec.Struct):
        return
    waiting: list[Any] = list(msgspec.structs.fields(one))
    waiting = [field.type for field in waiting]
    while waiting:
        hint = waiting.pop()
        waiting.extend(typing.get_args(hint))
        if isinstance(hint, type) and issubclass(hint, (msgspec.Struct, Enum)):
            yield hint
