"""Where the files of the folder `resources` are, in a checkout and in an installed wheel.

Standard library only: the set-up script imports this before anything is installed.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE_DIR = Path(__file__).resolve().parent.parent


class MissingResourceError(Exception):
    """A file that travels with the program is not there or cannot be read.

    Attributes:
        name: The resource's path below `resources`, with forward slashes.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The program's file resources/{name} {reason}.")
        self.name = name


def resource_path(name: str) -> Path:
    """Find a file that travels with the program.

    A wheel carries the folder inside the package; in a checkout it lies beside the package.

    Args:
        name: Path below `resources`, with forward slashes, for example "wheels.json".

    Raises:
        MissingResourceError: There is no such file in either place.
    """
    for folder in (_PACKAGE_DIR / "resources", _PACKAGE_DIR.parent / "resources"):
        path = folder / name
        if path.is_file():
            return path
    raise MissingResourceError(name, "is missing")
