"""The program's own tables, read from JSON into the types that say what is in them."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from gpu_studio.core.resources import MissingResourceError, resource_path

_Table = TypeVar("_Table")


def read_resource(name: str, table: type[_Table]) -> _Table:
    """Return what a file that travels with the program says.

    Args:
        name: path below `resources`, with forward slashes.
        table: the type it is read into.

    Raises:
        MissingResourceError: it is not there or cannot be read.
    """
    try:
        return msgspec.json.decode(resource_path(name).read_bytes(), type=table)
    except (OSError, msgspec.MsgspecError) as error:
        raise MissingResourceError(name, "cannot be read") from error
