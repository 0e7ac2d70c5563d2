"""Wheels that have nothing but metadata: pip reads them and answers what they need."""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_REQUIRED = re.compile(r"Requires-Dist:\s*([A-Za-z0-9][A-Za-z0-9_.-]*)", re.IGNORECASE)


def write_stub(path: Path, metadata: str) -> None:
    """Write a wheel that has nothing but metadata, for pip to read.

    Args:
        path: Its path, with the name of the real wheel.
        metadata: The content of METADATA.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name, version = path.name.split("-")[:2]
    folder = f"{name}-{version}.dist-info"
    tags = "\n".join(f"Tag: {tag}" for tag in _single_tags(path.stem.split("-", 2)[2]))
    wheel = f"Wheel-Version: 1.0\nGenerator: gpu-studio\nRoot-Is-Purelib: false\n{tags}\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/METADATA", metadata)
        archive.writestr(f"{folder}/WHEEL", wheel)
        archive.writestr(f"{folder}/RECORD", "")


def required_package(line: str) -> str:
    """Return the package that a line of metadata asks for; "" for every other line."""
    match = _REQUIRED.match(line)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else ""


def _single_tags(tags: str) -> list[str]:
    pythons, abis, platforms = (part.split(".") for part in tags.split("-"))
    return [f"{p}-{a}-{s}" for p in pythons for a in abis for s in platforms]
