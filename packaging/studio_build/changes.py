"""The versions and what they changed: CHANGES.md, and the formats that packages want."""

from __future__ import annotations

import re
import textwrap
from datetime import datetime, timezone
from typing import NamedTuple
from xml.sax.saxutils import escape

from studio_build.console import BuildError

_HEADING = re.compile(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)$", re.MULTILINE)


class Release(NamedTuple):
    """A version in CHANGES.md.

    Attributes:
        version: For example "0.1.0".
        date: For example "2026-11-22".
        changes: One sentence each.
    """

    version: str
    date: str
    changes: tuple[str, ...]


def releases_in(text: str) -> list[Release]:
    """Read CHANGES.md, whose newest version is first.

    Raises:
        BuildError: it has no version, or one without changes.
    """
    pieces = _HEADING.split(text)[1:]
    releases = []
    for version, date, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        points = re.findall(r"^- (.*(?:\n  .*)*)", body, re.MULTILINE)
        changes = tuple(re.sub(r"\s+", " ", one) for one in points)
        if not changes:
            raise BuildError(f"CHANGES.md says nothing about {version}.")
        releases.append(Release(version, date, changes))
    if not releases:
        raise BuildError("CHANGES.md has no “## VERSION (YYYY-MM-DD)”.")
    return releases


def newest(text: str, version: str) -> Release:
    """Return the first release of CHANGES.md, which has to be the version that is built.

    Raises:
        BuildError: it is another one.
    """
    first = releases_in(text)[0]
    if first.version != version:
        raise BuildError(f"CHANGES.md begins with {first.version}, pyproject.toml has {version}.")
    return first


def debian_changelog(releases: list[Release], maintainer: str, suffix: str = "") -> str:
    """Return a changelog in Debian's format (Debian Policy, 4.4); the suffix is of each version."""
    entries = []
    for release in releases:
        day = datetime.strptime(release.date, "%Y-%m-%d").replace(tzinfo=timezone.utc)
        points = "\n".join(
            textwrap.fill(one, 78, initial_indent="  * ", subsequent_indent="    ")
            for one in release.changes
        )
        date = f"{_DAYS[day.weekday()]}, {day.day:02} {_MONTHS[day.month - 1]} {day.year}"
        entries.append(
            f"gpu-studio ({release.version}{suffix}) stable; urgency=medium\n\n{points}\n\n"
            f" -- {maintainer}  {date} 00:00:00 +0000\n"
        )
    return "\n".join(entries)


# strftime would follow the locale.
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def appstream_releases(releases: list[Release]) -> str:
    """Return the elements <release> of AppStream's metainfo."""
    rows = []
    for release in releases:
        points = "".join(f"<li>{escape(one)}</li>" for one in release.changes)
        rows.append(
            f'    <release version="{release.version}" date="{release.date}">'
            f"<description><ul>{points}</ul></description></release>"
        )
    return "\n".join(rows)
