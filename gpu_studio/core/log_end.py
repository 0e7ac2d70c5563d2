"""The last lines of a log, without private names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from gpu_studio.core.devices.report import MASK, masked_text
from gpu_studio.core.user_file import UnusableFileError, open_user_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
