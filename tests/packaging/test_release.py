from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import release
from studio_build import starter
from studio_build.console import BuildError

if TYPE_CHECKING:
    from pathlib import Path


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


def test_a_release_has_an_address(checkout: Path) -> None:
    project = checkout / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace("github.com", "example.org"), encoding="utf-8")
    with pytest.raises(BuildError, match="is not an address"):
        release.check(checkout, "0.2.0")


def test_what_no_commit_has_is_not_released(checkout: Path) -> None:
    (checkout / "new.py").write_text("", encoding="utf-8")
    with pytest.raises(BuildError, match="no commit has"):
        release.check(checkout, "0.2.0")


def test_a_version_is_released_once(checkout: Path) -> None:
    subprocess.run(["git", "-C", str(checkout), "tag", "v0.2.0"], check=True)
    with pytest.raises(BuildError, match=r"tag v0\.2\.0"):
        release.check(checkout, "0.2.0")


@pytest.mark.parametrize("unset", ["DEBFULLNAME", "DEBEMAIL"])
def test_a_release_has_a_maintainer(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, unset: str
) -> None:
    monkeypatch.delenv(unset)
    with pytest.raises(BuildError, match=f"set {unset}"):
        release.check(checkout, "0.2.0")


@pytest.mark.skipif(sys.platform == "win32", reason="built on Linux alone")
def test_a_build_that_is_ended_removes_its_folder(root: Path, tmp_path: Path) -> None:
    script = (
        f"import sys, tempfile, time; sys.path.insert(0, {str(root / 'packaging')!r})\n"
        "from studio_build.console import end_as_exception\n"
        "end_as_exception()\n"
        f"with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}):\n"
        "    print('begun', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline().strip() == b"begun"
        process.terminate()
        assert process.wait(60) != 0
    assert list(tmp_path.iterdir()) == []


def test_the_checksums_are_those_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "b.deb").write_bytes(b"b")
    (tmp_path / "a.exe").write_bytes(b"a")
    (tmp_path / release.CHECKSUMS).write_text("older", encoding="utf-8")
    wanted = [f"{hashlib.sha256(one).hexdigest()}" for one in (b"a", b"b")]
    assert release.checksums(tmp_path).splitlines() == [
        f"{wanted[0]}  a.exe",
        f"{wanted[1]}  b.deb",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="built on Linux alone")
def test_every_program_is_signed_by_a_command_with_blanks(tmp_path: Path) -> None:
    programs = [tmp_path / name for name in (*starter.NAMES, "uninstall.exe")]
    for path in programs:
        path.write_bytes(b"unsigned")
    starter.sign_programs(programs, "sh -c 'printf signed > \"$0\"'")
    assert {path.read_bytes() for path in programs} == {b"signed"}
    with pytest.raises(BuildError, match="sh"):
        starter.sign_programs(programs, "sh -c 'exit 3'")
