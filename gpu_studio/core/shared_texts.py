"""What is shared with strangers has no identifiers: not a record's texts, not the end of a log.

A record has no field for the names of a user and a PC, for folders or for whole UUIDs. Sentences
can have them all the same: an engine's message names files, and a driver's names cards.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gpu_studio.core.devices.report import MASK, masked_text
from gpu_studio.core.user_file import UnusableFileError, open_user_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_MOST_BYTES = 64 << 10
_MOST_LINES = 60
_SHORTEST_NAME = 3  # a shorter name is part of too many words


def log_end(path: Path) -> str:
    """Return the last lines of a log file; empty if it cannot be read."""
    try:
        with open_user_file(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES))
            text = file.read(_MOST_BYTES).decode("utf-8", "replace")
    except (UnusableFileError, OSError):
        return ""
    return "\n".join(text.splitlines()[-_MOST_LINES:])


def without_names(text: str, names: Iterable[str]) -> str:
    """Return a text without UUIDs, folders and the names of a user and a PC.

    Args:
        text: the text to share.
        names: the names of the user and the PC.
    """
    text = masked_text(text)
    for name in names:
        if len(name) >= _SHORTEST_NAME:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", MASK, text, flags=re.IGNORECASE)
    return text


# The words of this program and the names of products, which a user's name may equal.
_KEPT_FIELDS = frozenset({
    "architecture", "build", "cache", "computed_in", "cpu_name", "card_name", "device",
    "device_name", "driver", "driver_version", "dtype", "kind", "limit", "made_at", "measure_title",
    "name", "options", "picture", "program", "run_id", "severity", "silicon",
    "size_text", "stage", "started_at", "system", "throughput_unit", "tone", "torch_version",
    "turns", "unit", "verdict", "workload", "key", "planted", "state", "code",
})  # fmt: skip
_ASKED_FOR = frozenset({"uuid", "uuid_tail", "pc_name"})
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
