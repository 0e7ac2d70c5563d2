"""The parts that an installed program contains, with their licenses.

``packaging/build.py`` writes their list and their texts beside this package. A checkout has
neither: its packages are in its environment, each with its own license.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

_FOLDER = Path(__file__).resolve().parent.parent.parent / "licenses"


class PackagedPart(msgspec.Struct, frozen=True):
    """A part of the program.

    Attributes:
        name: For example "numpy".
        version: For example "2.4.6".
        license: The license in words, or its SPDX expression.
        files: Its texts, below the folder `licenses`.
    """

    name: str
    version: str
    license: str
    files: tuple[str, ...]


def packaged_parts(folder: Path = _FOLDER) -> tuple[PackagedPart, ...]:
    """Return the parts of this program; none if it is not installed, or the list cannot be read."""
    try:
        content = (folder / "index.json").read_bytes()
        return msgspec.json.decode(content, type=tuple[PackagedPart, ...])
    except (OSError, msgspec.MsgspecError):
        return ()


def licenses_text(parts: tuple[PackagedPart, ...], folder: Path = _FOLDER) -> str:
    """Return one line for each part, and where the texts are; empty if there are no parts."""
    if not parts:
        return ""
    lines = [f"{part.name} {part.version}: {part.license}" for part in parts]
    return "\n".join([*lines, "", f"The texts of the licenses: {folder}"])
