"""What takes how much in a package."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_PACKAGE = 90_000_000
_SHOWN = 14


def part_of(name: str) -> str:
    """Return the part of the program to which a file belongs.

    Args:
        name: its path in the program's folder, with slashes.
    """
    first, _, rest = name.partition("/")
    if not first.startswith("packages"):
        return first
    package = rest.partition("/")[0].removesuffix(".libs")
    return package if first == "packages" else f"{package} {first.rpartition('-')[2]}"


def table(app: Path) -> str:
    """Return lines with the size of each part on the disk, the largest first."""
    parts: Counter[str] = Counter()
    for path in app.rglob("*"):
        if path.is_file() and not path.is_symlink():
            parts[part_of(path.relative_to(app).as_posix())] += path.stat().st_size
    rows = parts.most_common(_SHOWN)
    rest = sum(parts.values()) - sum(size for _, size in rows)
    rows += [("all else", rest), ("together", sum(parts.values()))]
    return "\n".join(f"{in_words(size):>10}  {name}" for name, size in rows)


def in_words(size_bytes: int) -> str:
    """Return a size in megabytes of a million bytes, as download pages tell it."""
    return f"{size_bytes / 1e6:.1f} MB"
