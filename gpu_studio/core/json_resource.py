"""Reads the program's own JSON tables into typed values."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from gpu_studio.core.resources import MissingResourceError, resource_path

_Table = TypeVar("_Table")


def read_resource(name: str, table: type[_Table]) -> _Table:
    """Return the contents of a file that is part of the program.

    Args:
        name: the path below `resources`, with forward slashes.
        table: the type of the contents.

    Raises:
        MissingResourceError: the file is missing or cannot be read.
    """
    try:
        return msgspec.json.decode(resource_path(name).read_bytes(), type=table)
    except (OSError, msgspec.MsgspecError) as error:
        raise MissingResourceError(name, "cannot be read") from error
