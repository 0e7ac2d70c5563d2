"""The other PC of the tests: a stand-in ssh in the PATH that runs the command here."""

import importlib.util
import io
import os
import sys
import zipfile
from pathlib import Path

import pytest

import gpu_studio
from gpu_studio.core.other_pc import OtherPc

_STAND_IN = Path(__file__).with_name("stand_in.py")


def write_script(path: Path, words: str) -> Path:
    path.write_text(f"#!/bin/sh\n{words}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def write_program(path: Path, code: str) -> None:
    """Write a command of Python code that any program can start: on Windows, an ``.exe``.

    That is pip's own launcher with a zip archive at its end (PEP 441).
    """
    if sys.platform != "win32":
        program = path.with_suffix(".py")
        program.write_text(code, encoding="utf-8")
        write_script(path, f'exec "{sys.executable}" "{program}" "$@"')
        return
    pip = importlib.util.find_spec("pip")
    assert pip is not None
    assert pip.origin is not None
    launcher = Path(pip.origin).with_name("_vendor") / "distlib" / "t64.exe"
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("__main__.py", code)
    start = f'#!"{sys.executable}"\n'.encode()
    path.with_suffix(".exe").write_bytes(launcher.read_bytes() + start + archive.getvalue())


@pytest.fixture
def there(tmp_path, monkeypatch) -> OtherPc:
    """Return a PC that is this one, reached by the stand-in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    run = "import runpy; runpy.run_{}({!r}, run_name='__main__')".format
    write_program(folder / "ssh", run("path", str(_STAND_IN)))
    write_program(folder / "gpu-studio", run("module", "gpu_studio"))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(gpu_studio.__file__).parents[1]))
    return OtherPc(name="attic", host="me@attic")


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Return a function that lets Python code play the PC there."""

    def play(code: str) -> None:
        script = tmp_path / "other_pc.py"
        script.write_text(_PRELUDE + code, encoding="utf-8")
        monkeypatch.setenv("STAND_IN", str(script))

    return play


_PRELUDE = """
import os, sys, time, msgspec
from gpu_studio.cli.serve import greeting
from gpu_studio.core.protocol import encode
from gpu_studio.core.messages.engine_messages import *
from gpu_studio.core.messages.run_messages import *
from gpu_studio.core.messages.race_messages import *
from gpu_studio.core.messages.memory_messages import *
from gpu_studio.core.failure import *

def say(line):
    os.write(1, line)

def greet():
    say(encode(greeting()))

def hear():
    # The opening, then requests; signs of life are empty.
    while not (line := sys.stdin.buffer.readline()).strip():
        if not line:
            sys.exit(0)
    return line
"""
