"""Finds the files of the folder `resources`, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

_PACKAGE_DIR = Path(__file__).resolve().parent.parent
_FOLDER = "resources"


class MissingResourceError(Exception):
    """A file that is part of the program is missing or cannot be read.

    Attributes:
        name: The path below `resources`, with forward slashes.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The program's file resources/{name} {reason}.")
        self.name = name


def resource_path(name: str) -> Path:
    """Find a file that is part of the program.

    A wheel has the folder inside the package; in a checkout it is beside the package.

    Args:
        name: The path below `resources`, with forward slashes, for example "wheels.json".

    Raises:
        MissingResourceError: The file is in neither place.
    """
    for folder in _folders():
        path = folder / name
        if path.is_file():
            return path
    raise MissingResourceError(name, "is missing")


def _folders() -> tuple[Path, Path]:
    return _PACKAGE_DIR / _FOLDER, _PACKAGE_DIR.parent / _FOLDER


_Table = TypeVar("_Table")


def read_resource(name: str, table: type[_Table], empty: _Table | None = None) -> _Table:
    """Return the contents of a file that is part of the program.

    Args:
        name: the path below `resources`, with forward slashes.
        table: the type of the contents.
        empty: what to return without the file, where "unknown" is a valid answer.

    Raises:
        MissingResourceError: the file is missing or cannot be read.
    """
    try:
        return msgspec.json.decode(resource_path(name).read_bytes(), type=table)
    except (OSError, msgspec.MsgspecError, MissingResourceError) as error:
        if empty is not None:
            return empty
        if isinstance(error, MissingResourceError):
            raise
        raise MissingResourceError(name, "cannot be read") from error
