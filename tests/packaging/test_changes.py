from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from studio_build.app_folder import program_of
from studio_build.changes import (
    Release,
    appstream_releases,
    debian_changelog,
    newest,
    releases_in,
)
from studio_build.console import BuildError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """# Changes

## 0.2.0 (2026-12-24)

- A second thing
  in two lines.
- Faster & < smaller.

## 0.1.0 (2026-11-22)

- The first release.
"""


def test_each_version_has_its_date_and_its_changes() -> None:
    second, first = releases_in(TEXT)
    assert second == Release(
        "0.2.0", "2026-12-24", ("A second thing in two lines.", "Faster & < smaller.")
    )
    assert first.changes == ("The first release.",)


def test_what_is_built_has_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    text = (root / "CHANGES.md").read_text(encoding="utf-8")
    version = program_of(root).version
    assert newest(text, version).version == version


def test_a_version_without_changes_is_not_built() -> None:
    with pytest.raises(BuildError, match=r"begins with 0\.2\.0.* has 0\.3\.0"):
        newest(TEXT, "0.3.0")
    with pytest.raises(BuildError, match=r"nothing about 0\.2\.0"):
        releases_in("## 0.2.0 (2026-12-24)\n\n## 0.1.0 (2026-11-22)\n\n- One.\n")


def test_debians_changelog_has_its_days_and_short_lines() -> None:
    result = debian_changelog(releases_in(TEXT), "A B <a@example.org>")
    assert result.startswith("gpu-studio (0.2.0) stable; urgency=medium\n\n  * A second thing")
    assert " -- A B <a@example.org>  Thu, 24 Dec 2026 00:00:00 +0000\n" in result
    long = Release("0.2.0", "2026-12-24", ("word " * 40,))
    assert max(map(len, debian_changelog([long], "A").splitlines())) <= 80


def test_the_releases_for_appstream_are_xml() -> None:
    tree = ElementTree.fromstring(f"<releases>{appstream_releases(releases_in(TEXT))}</releases>")
    assert [one.get("version") for one in tree] == ["0.2.0", "0.1.0"]
    assert [one.text for one in tree.iter("li")][1] == "Faster & < smaller."
