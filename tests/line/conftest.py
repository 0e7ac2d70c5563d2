"""The other PC of the tests: a stand-in ssh in the PATH that runs the command here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import gpu_studio
from gpu_studio.core.other_pc import OtherPc

_STAND_IN = Path(__file__).with_name("stand_in.py")


def write_script(path: Path, words: str) -> Path:
    path.write_text(f"#!/bin/sh\n{words}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def there(tmp_path, monkeypatch) -> OtherPc:
    """Return a PC that is this one, reached by the stand-in."""
    if sys.platform == "win32":
        pytest.skip("the stand-in for ssh is a script of a POSIX shell")
    folder = tmp_path / "bin"
    folder.mkdir()
    write_script(folder / "ssh", f'exec "{sys.executable}" "{_STAND_IN}" "$@"')
    write_script(folder / "gpu-studio", f'exec "{sys.executable}" -m gpu_studio "$@"')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
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
