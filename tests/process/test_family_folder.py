import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_studio.process import family_folder
from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.family_folder import FamilyFolder, remove_left_over
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).resolve().parents[2]
# An owner of a folder with something in it, and a child of its own, which a kill leaves without
# an input to read.
_OWNER = """
import sys
from gpu_studio.process.child_process import ChildProcess
child = ChildProcess("tests.engine.child_with_family")
print(next(child.lines()).decode().strip())
print(child._family._folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, for this process and its children."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def owner() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    others = json.loads(process.stdout.readline())["pids"]
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.communicate()
    for other in others:  # nobody is left who would end them
        with contextlib.suppress(ProcessLookupError):
            os.kill(other, signal.SIGTERM)


def left_over(temporary: Path) -> Path:
    """Make what a killed program leaves."""
    folder = FamilyFolder()
    assert folder._lock is not None
    os.close(folder._lock)
    (folder.path / "of a replica").mkdir()
    return folder.path


def test_the_next_start_removes_the_folder_of_a_killed_program(owner):
    process, folder = owner
    assert any(one.name.startswith("torchelastic_") for one in folder.iterdir())
    process.kill()
    process.wait(PATIENCE_S)
    assert folder.exists()
    started = ChildProcess("tests.engine.child_with_family")
    started.end(PATIENCE_S)
    assert not folder.exists()


def test_the_folder_of_a_living_program_stays(owner):
    _, folder = owner
    before = sorted(folder.rglob("*"))
    remove_left_over()
    assert sorted(folder.rglob("*")) == before


def test_a_folder_ends_with_its_owner(temporary: Path):
    folder = FamilyFolder()
    remove_left_over()
    assert folder.path.exists()
    folder.close()
    folder.close()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a right that few have there")
def test_what_a_link_leads_to_stays(temporary: Path):
    elsewhere = temporary / "elsewhere"
    shutil.copytree(left_over(temporary), elsewhere)
    (temporary / "gpu-studio-link").symlink_to(elsewhere)
    within = FamilyFolder()
    os.close(within._lock or 0)
    (within.path / "file").symlink_to(elsewhere / "owner.lock")
    (within.path / "folder").symlink_to(elsewhere)
    remove_left_over()
    assert (elsewhere / "owner.lock").exists()
    assert not within.path.exists()
    (within.path).mkdir()
    (within.path / "owner.lock").symlink_to(elsewhere / "owner.lock")
    remove_left_over()
    assert within.path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no user ids")
def test_another_users_folder_stays(temporary: Path, monkeypatch: pytest.MonkeyPatch):
    folder = left_over(temporary)
    own = os.getuid()
    monkeypatch.setattr(family_folder.os, "getuid", lambda: own + 1)
    remove_left_over()
    assert folder.exists()
    monkeypatch.setattr(family_folder.os, "getuid", lambda: own)
    remove_left_over()
    assert not folder.exists()
