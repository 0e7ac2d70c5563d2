"""The locks in ``packaging/locks``: the tested packages of a platform, each file with its hash.

``packaging/write_locks.py`` writes them. Standard library only: the setup reads them before any
package is there.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

LOCKS = Path(__file__).resolve().parents[2] / "packaging" / "locks"


def read_lock(platform_key: str, folder: Path = LOCKS) -> str:
    """Return the lock of a platform; empty if there is none, or none that can be read."""
    try:
        return (folder / f"{platform_key}.txt").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def lines_of(lock: str, sections: Collection[str] | None = None) -> list[str]:
    """Return the requirements in a lock: ``numpy==2.4.6 ; MARKER --hash=sha256:…``.

    Args:
        lock: The text of the file; "# [run]" starts the section "run".
        sections: The sections to return; None for all.
    """
    found, is_wanted = [], sections is None
    for line in lock.splitlines():
        if line.startswith("# ["):
            is_wanted = sections is None or line[3:-1] in sections
        elif is_wanted and line.strip() and not line.startswith("#"):
            found.append(line)
    return found
