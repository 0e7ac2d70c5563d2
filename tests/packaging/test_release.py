import hashlib
import re
import subprocess
from pathlib import Path

import pytest
import release
from studio_build.address import absolute_links, address_of
from studio_build.changes import Release, debian_changelog, newest, releases_in
from studio_build.console import BuildError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout of version 0.2.0."""
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("DEBFULLNAME", "Änne Öhm")
    monkeypatch.setenv("DEBEMAIL", "anne@example.org")
    folder = tmp_path / "checkout"
    folder.mkdir()
    project = 'version = "0.2.0"\nHomepage = "https://github.com/anne/gpu-studio"\n'
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    text = "# Changes\n\n## 0.2.0 (2026-12-24)\n\n- One thing.\n"
    (folder / "CHANGES.md").write_text(text, encoding="utf-8")
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    try:
        for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "All")):
            subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("git is not here")
    return folder


def test_a_release_has_its_version_everywhere(checkout: Path) -> None:
    assert release.check(checkout, "0.2.0").changes == ("One thing.",)


def test_another_version_is_refused(checkout: Path) -> None:
    with pytest.raises(BuildError, match=r"has version 0\.2\.0, not 0\.3\.0"):
        release.check(checkout, "0.3.0")


def test_the_checksums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "b.deb").write_bytes(b"b")
    (tmp_path / "a.exe").write_bytes(b"a")
    (tmp_path / release.CHECKSUMS).write_text("older", encoding="utf-8")
    wanted = [f"{hashlib.sha256(one).hexdigest()}" for one in (b"a", b"b")]
    assert release.checksums(tmp_path).splitlines() == [
        f"{wanted[0]}  a.exe",
        f"{wanted[1]}  b.deb",
    ]


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


def _at(folder: Path, url: str) -> Path:
    (folder / "pyproject.toml").write_text(f'Homepage = "{url}"\n', encoding="utf-8")
    return folder


def test_the_page_on_pypi_has_links_that_work_there(root: Path, tmp_path: Path) -> None:
    address = address_of(_at(tmp_path, "https://github.com/anne/gpu-studio"))
    text = absolute_links((root / "README.md").read_text(encoding="utf-8"), address, "1.2.3")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert targets
    assert all(one.startswith("https://github.com/anne/gpu-studio/") for one in targets)
    assert f"]({address.url}/raw/v1.2.3/docs/pictures/race.png)" in text
    assert f"]({address.url}/blob/v1.2.3/CONTRIBUTING.md)" in text
