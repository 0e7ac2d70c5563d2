"""Copying this program to a PC that has none: over the stand-in for ssh, and over a real sshd."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading

import psutil
import pytest

from gpu_studio.cli.main import main
from gpu_studio.core.failure import StudioError
from gpu_studio.core.other_pc import OtherPc
from gpu_studio.core.program_copy import (
    CUT,
    SYSTEM_PYTHON,
    CopyStage,
    ProgramCopy,
    There,
    command_to_run_there,
    look_command,
    receive_command,
    there_from,
)
from gpu_studio.hardware.copy_there import copy_there, look_there
from tests.line.conftest import write_script
from tests.line.real_sshd import running_sshd, why_not
from tests.patience import until

if sys.platform == "win32":
    pytest.skip("a program for Windows is not copied", allow_module_level=True)
_READY = (
    '{"stage": "ready", "done_bytes": 0, "total_bytes": 0, "fraction": 1.0, "left_s": null, '
    '"subject": "", "trouble": null, "result": "It works."}'
)


@pytest.fixture
def program(tmp_path) -> ProgramCopy:
    """Return an installed program, whose installer there is ready at once."""
    home = tmp_path / "program"
    (home / "bin").mkdir(parents=True)
    (home / "gpu_studio" / "__pycache__").mkdir(parents=True)
    (home / "installed.json").write_text('{"version": "0.1.0", "package": "deb"}')
    (home / "bin" / "python3").symlink_to(sys.executable)
    (home / "pyvenv.cfg").write_text("home = /of/an/adopted/python\n")
    (home / "gpu_studio" / ("long_" * 30 + ".py")).write_bytes(b"x" * (3 << 20))
    (home / "gpu_studio" / "__pycache__" / "a.pyc").write_text("not sent")
    write_script(home / "gpu-studio", f"echo Welcome; echo '{_READY}'; exec cat >/dev/null")
    return ProgramCopy(home)


@pytest.fixture
def home(there, tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_the_folder_there_is_what_the_portable_archive_has(program, home, there):
    steps = list(copy_there(look_there(there, program)))
    copied = home / "gpu-studio"
    assert json.loads((copied / "installed.json").read_text())["package"] == "tar"
    assert os.readlink(copied / "bin" / "python3") == "/usr/bin/python3"
    assert "/usr/bin" in (copied / "pyvenv.cfg").read_text()
    assert os.access(copied / "gpu-studio", os.X_OK)
    (module,) = (copied / "gpu_studio").iterdir()
    assert module.stat().st_size == 3 << 20
    assert sum(map(len, program.chunks())) == program.size_bytes
    sent = [one.done_bytes for one in steps if one.stage is CopyStage.SENDING]
    assert sent == sorted(sent)
    assert sent[-1] == program.size_bytes
    assert steps[-1].engine.result == "It works."
    assert [one.name for one in home.iterdir()] == ["gpu-studio"]


def test_what_is_there_is_not_overwritten(program, home, there):
    looked = look_there(there, program)
    (home / "gpu-studio").mkdir()
    (home / "gpu-studio" / "mine").write_text("kept")
    assert "already" in look_there(there, program).trouble
    with pytest.raises(StudioError, match="not overwritten"):
        list(copy_there(looked))
    assert [one.name for one in (home / "gpu-studio").iterdir()] == ["mine"]
    assert [one.name for one in home.iterdir()] == ["gpu-studio"]


@pytest.mark.parametrize("end", [0, 512, 2 << 20, -3 * 512])
def test_a_cut_leaves_nothing(program, home, there, end, monkeypatch):
    """The last cut is exactly before the last file, where tar itself sees no error."""
    whole = b"".join(program.chunks())
    last = len(whole) - 2 * 512 - 1024
    monkeypatch.setattr(program, "chunks", lambda: iter([whole[: end if end >= 0 else last]]))
    with pytest.raises(StudioError):
        list(copy_there(look_there(there, program)))
    until(lambda: list(home.iterdir()) == [])


def test_cancel_ends_the_copy(program, home, there):
    is_over = threading.Event()
    steps = copy_there(look_there(there, program), is_over.is_set)
    next(steps)
    is_over.set()
    steps.close()
    until(lambda: list(home.iterdir()) == [])


@pytest.mark.parametrize(("missing", "sentence"), [("tar", "no tar"), ("python", "no Python")])
def test_what_is_missing_there_is_said(home, tmp_path, missing, sentence):
    folder = tmp_path / "path"
    folder.mkdir()
    for name in ("sh", "uname", "df", "tail", "tar"):
        if name != missing:
            (folder / name).symlink_to(shutil.which(name))
    command = look_command()
    if missing == "python":
        command = command.replace(SYSTEM_PYTHON, "/no/python3")
    done = subprocess.run(
        ["/bin/sh", "-c", command], env={"PATH": str(folder), "HOME": str(home)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert sentence in there_from(done.stdout).why_not("attic", 1)


def test_each_reason_is_a_sentence():
    fit = There(True, 0, (3, 11), True, False, 1000)
    assert fit.why_not("attic", 1000) == ""
    for unfit in (
        There(),
        fit._replace(is_linux=False),
        fit._replace(python=None),
        fit._replace(has_tar=False),
        fit._replace(is_taken=True),
        fit._replace(free_bytes=999),
    ):
        assert unfit.why_not("attic", 1000).endswith((".", "installer."))


@pytest.mark.parametrize(
    "answer",
    ["", "gpu-studio-look\n", "gpu-studio-look\nlinux\ngpu-studio-looked\n", "\x00" * 99,
     "gpu-studio-look\n" + "3 99 True cpython\n" * 9 + "gpu-studio-looked\n"],
)  # fmt: skip
def test_a_hostile_answer_is_no_permission(answer):
    assert there_from(answer).why_not("attic", 1)


def test_a_full_disk_is_the_last_word_of_tar(program, home, there, play):
    looked = look_there(there, program)
    play("sys.stderr.write('tar: No space left on device'); sys.stdin.buffer.read(); sys.exit(74)")
    with pytest.raises(StudioError, match="No space left"):
        list(copy_there(looked))


def test_an_installer_that_fails_there_says_why_and_brings_no_link(program, home, there, tmp_path):
    trouble = {"kind": "internal", "sentence": "No.\x1b[2J", "action": "Wait.", "detail": "/a/path",
               "link": "https://example.org"}  # fmt: skip
    failed = json.dumps(json.loads(_READY) | {"stage": "failed", "trouble": trouble})
    write_script(tmp_path / "program" / "gpu-studio", f"echo '{failed}'")
    program = ProgramCopy(tmp_path / "program")
    last = list(copy_there(look_there(there, program)))[-1].engine
    assert (last.trouble.link, "\x1b" in last.trouble.sentence) == ("", False)


def test_a_program_from_its_source_says_why_it_is_not_sent(tmp_path):
    assert "source" in ProgramCopy(tmp_path).trouble
    assert "source" in ProgramCopy().trouble


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is an sshd")
def test_a_real_sshd_gets_the_program(program, tmp_path, monkeypatch):
    folder = tmp_path / "sshd"
    folder.mkdir()
    home = tmp_path / "there"
    home.mkdir()
    with running_sshd(folder, home) as (pc, _server, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        pc = OtherPc(name=pc.name, host=pc.host)
        steps = list(copy_there(look_there(pc, program)))
        assert steps[-1].engine.result == "It works."
    assert [one.name for one in home.iterdir()] == ["gpu-studio"]


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is an sshd")
def test_an_sshd_that_is_killed_half_way_leaves_nothing(program, tmp_path, monkeypatch):
    folder, home = tmp_path / "sshd", tmp_path / "there"
    folder.mkdir()
    home.mkdir()
    with running_sshd(folder, home) as (pc, server, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        steps = copy_there(look_there(OtherPc(name=pc.name, host=pc.host), program))
        next(steps)
        until(lambda: any(home.iterdir()))
        for process in server.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended by itself
                if "sshd" in process.name():
                    process.kill()
        with pytest.raises(StudioError, match="lost"):
            list(steps)
        until(lambda: list(home.iterdir()) == [])


@pytest.mark.parametrize("shell", ["dash", "bash", "fish", "csh"])
def test_the_command_is_the_same_for_each_shell(shell, home):
    if shutil.which(shell) is None:
        pytest.skip(f"this PC has no {shell}")
    for words in (look_command(), receive_command(0, "0")):
        done = subprocess.run(
            [shell, "-c", words], input="", capture_output=True, text=True, check=False
        )
        if words == look_command():
            assert there_from(done.stdout).python is not None, done.stderr
        else:
            assert done.returncode == CUT, done.stderr
    assert not any("gpu-studio" in one.name for one in home.iterdir())


def test_the_terminal_says_what_it_would_send_before_it_sends(
    program, home, there, monkeypatch, capfd
):
    monkeypatch.setattr("gpu_studio.cli.copy.ProgramCopy", lambda: program)
    assert main(["copy", "attic=me@attic"]) == 0
    assert "3.2 MB" in capfd.readouterr().out
    assert not (home / "gpu-studio").exists()
    assert main(["copy", "attic=me@attic", "--yes"]) == 0
    assert "It works." in capfd.readouterr().out
    assert (home / "gpu-studio").exists()


def test_a_pc_without_the_program_gets_the_one_command(there, monkeypatch, capfd):
    monkeypatch.setenv("STAND_IN", "fail 127 sh: gpu-studio: not found")
    assert main(["--on", "me@attic", "devices"]) == 1
    error = capfd.readouterr().err
    assert command_to_run_there() in error
    assert "copy me@attic" in error
    assert main(["copy", "me@attic"]) == 1
    assert command_to_run_there() in capfd.readouterr().err
