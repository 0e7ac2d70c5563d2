"""Reads ``uv.lock``: the tested packages, each file with its hash.

``uv lock`` writes it from pyproject.toml, always in the same lines. They are read as text because
Python 3.10 cannot read TOML.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

LOCK = Path(__file__).resolve().parents[2] / "uv.lock"
_NAME = re.compile(r'^name = "(.+)"\nversion = "(.+)"$', re.MULTILINE)
_MARKERS = re.compile(r"^resolution-markers = \[\n(.*?)^\]$", re.MULTILINE | re.DOTALL)
_HASH = re.compile(r'\bhash = "sha256:([0-9a-f]{64})"')


class LockedPackage(NamedTuple):
    """One version of a package.

    Attributes:
        name: As PyPI normalizes it.
        version: For example "2.4.6".
        marker: The Pythons that it is for, as ``python_full_version < '3.11'``; "" for all.
        hashes: The SHA-256 of each of its files, in hexadecimal digits.
    """

    name: str
    version: str
    marker: str
    hashes: frozenset[str]

    @property
    def requirement(self) -> str:
        """For pip: ``numpy==2.2.6 ; python_full_version < '3.11'``."""
        pin = f"{self.name}=={self.version}"
        return f"{pin} ; {self.marker}" if self.marker else pin


def read_lock(path: Path = LOCK) -> tuple[LockedPackage, ...]:
    """Return the packages of a lock but this one; none if there is no lock that can be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ()
    found = map(_package_in, text.split("\n[[package]]\n")[1:])
    return tuple(one for one in found if one is not None and one.hashes)


def _package_in(text: str) -> LockedPackage | None:
    named, markers = _NAME.search(text), _MARKERS.search(text)
    if named is None:
        return None
    forks = re.findall('"(.*)"', markers[1]) if markers else []
    marker = " or ".join(f"({one})" for one in forks) if len(forks) > 1 else "".join(forks)
    return LockedPackage(named[1], named[2], marker, frozenset(_HASH.findall(text)))
