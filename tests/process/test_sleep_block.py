import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_studio.process.sleep_block import SleepBlock
from tests.patience import until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a stand-in for systemd-inhibit")
_INHIBIT = """#!/bin/sh
echo "$@" > {folder}/arguments
echo $$ > {folder}/pid
exec {end}
"""


@pytest.fixture
def inhibit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for systemd-inhibit that runs until its standard input ends."""
    write_inhibit(tmp_path, "cat")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def write_inhibit(folder: Path, end: str) -> None:
    program = folder / "systemd-inhibit"
    program.write_text(_INHIBIT.format(folder=folder, end=end))
    program.chmod(0o755)


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2]
    except OSError:
        return False


def pid_of(folder: Path) -> int:
    until(lambda: (folder / "pid").exists() and (folder / "pid").read_text().strip())
    return int((folder / "pid").read_text())


def test_a_pc_is_kept_awake_as_long_as_it_is_held(inhibit: Path) -> None:
    with SleepBlock("A check") as block:
        pid = pid_of(inhibit)
        assert block.is_held
        arguments = (inhibit / "arguments").read_text()
        assert "--what=sleep:idle" in arguments
        assert "--why=A check" in arguments
    assert not block.is_held
    until(lambda: not is_running(pid))


def test_a_system_that_refuses_keeps_nobody_from_the_work(inhibit: Path) -> None:
    write_inhibit(inhibit, "false")
    with SleepBlock("A check") as block:
        pid_of(inhibit)
        until(lambda: not block.is_held)


def test_a_killed_program_lets_the_pc_sleep(inhibit: Path) -> None:
    code = "import sys; from gpu_studio.process.sleep_block import SleepBlock\n"
    code += "SleepBlock('A check').hold(); print(1, flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        pid = pid_of(inhibit)
        assert is_running(pid)
        child.kill()
        child.wait()
    until(lambda: not is_running(pid))
