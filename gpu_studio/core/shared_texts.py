"""What is shared with strangers has no identifiers: a pass over all texts of a record.

A record has no field for the names of a user and a PC, for folders or for whole UUIDs. Sentences
can have them all the same: an engine's message names files, and a driver's names cards.
"""

from __future__ import annotations

import getpass
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gpu_studio.core.log_end import without_names

if TYPE_CHECKING:
    from collections.abc import Sequence

# The words of this program and the names of products, which a user's name may equal.
_KEPT_FIELDS = frozenset({
    "architecture", "build", "cache", "computed_in", "cpu_name", "card_name", "device",
    "device_name", "driver", "driver_version", "dtype", "kind", "limit", "made_at", "measure_title",
    "name", "options", "picture", "program", "run_id", "severity", "silicon",
    "size_text", "stage", "started_at", "system", "throughput_unit", "tone", "torch_version",
    "turns", "unit", "verdict", "workload", "key", "planted", "state", "code",
})  # fmt: skip
_ASKED_FOR = frozenset({"uuid", "serial", "uuid_tail", "pc_name"})
_OF_EVERY_PC = frozenset({"root", "localhost"})
_SURE_LENGTH = 100
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def own_names() -> tuple[str, ...]:
    """Return the names of the user and of this PC."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a system without user names
        user = ""
    try:
        home = Path.home().name
    except RuntimeError:
        home = ""
    host = socket.gethostname()
    names = dict.fromkeys((user, home, host, host.partition(".")[0]))
    return tuple(name for name in names if name and name.lower() not in _OF_EVERY_PC)


def without_identifiers(struct: _Struct) -> _Struct:
    """Return a record without UUIDs, folders, passwords and own names in its sentences."""
    return msgspec.convert(_masked(msgspec.to_builtins(struct), own_names()), type(struct))


def _masked(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, str):
        masked = without_names(value, names)
        return masked[: max(len(value), _SURE_LENGTH)]  # a field has a longest text
    if isinstance(value, dict):
        return {field: _masked_field(field, one, names) for field, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(one, names) for one in value]
    return value


def _masked_field(field: str, value: Any, names: Sequence[str]) -> Any:
    if field in _ASKED_FOR:
        return value
    is_word = isinstance(value, str) or field == "options"
    return _masked(value, () if is_word and field in _KEPT_FIELDS else names)
