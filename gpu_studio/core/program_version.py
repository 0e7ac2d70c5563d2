"""The name and the version of this program."""

from __future__ import annotations

import re
from pathlib import Path


def program_version() -> str:
    """Return this program's version, from its installation or from its checkout."""
    from importlib import metadata  # 14 ms

    try:
        return metadata.version("gpu-studio")
    except metadata.PackageNotFoundError:
        project = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
        try:
            found = re.search(r'^version = "(.+)"$', project.read_text(encoding="utf-8"), re.M)
        except OSError:
            found = None
        return found[1] if found else "(unknown version)"


def program_title() -> str:
    """Return this program's name with its version, as files and records tell it."""
    return f"GPU Studio {program_version()}"


def portable_archive(version: str) -> str:
    """Return the file name of the portable folder for Linux."""
    return f"gpu-studio-{version}-linux-x86_64.tar.xz"
