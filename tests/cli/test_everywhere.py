"""``gpu-studio doctor --everywhere`` on a PC of our own."""

import json
import shlex
import sys

import pytest

from gpu_studio.cli import devices
from gpu_studio.process.child_call import ChildAnswer
from tests.core.pythons.made_pythons import make_venv, put_torch
from tests.fakes.pc import gt_1030

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="made of this system's Python")


@pytest.fixture
def look(monkeypatch, typed):
    """Return what types the command on a PC with a card."""

    def look(*arguments, inventory=None):
        monkeypatch.setattr(devices, "read_inventory", lambda _log_path: inventory or gt_1030())
        return typed("doctor", "--everywhere", *map(str, arguments))

    return look


@pytest.fixture
def home(tmp_path):
    put_torch(make_venv(tmp_path / "comfy" / "venv"), "2.9.1+cu130", vision="0.24.1+cu130")
    put_torch(make_venv(tmp_path / "whisper" / ".venv"), "2.7.1+cu126")
    return tmp_path


def test_the_wrong_one_comes_first_with_its_line(look, home):
    status, out, err = look(home)
    lines = out.splitlines()
    assert (status, err) == (1, "")
    assert lines[0] == "1 of 2 programs can use your GT 1030."
    assert lines[1] == "[problem] comfy: PyTorch 2.9.1, cu130. cu130 has no code for 6.1."
    line = next(line for line in lines if "next: " in line).partition("next: ")[2]
    assert shlex.split(line)[:4] == [f"{home}/comfy/venv/bin/python", "-m", "pip", "install"]
    assert any(line.startswith("[ok]      whisper: PyTorch 2.7.1, cu126.") for line in lines)


def test_json_says_the_same(look, home):
    status, out, _ = look(home, "--json")
    answer = json.loads(out)
    wrong, right = answer["pythons"]
    assert (status, answer["type"], answer["is_whole"]) == (1, "pythons", True)
    assert (wrong["verdict"], wrong["covers"]) == ("wrong", {"GT 1030 (6.1)": False})
    assert wrong["command"].endswith("--index-url https://download.pytorch.org/whl/cu126")
    assert (right["verdict"], right["command"]) == ("right", "")


def test_a_folder_that_is_not_there_is_wrong_use(look, tmp_path):
    status, _, err = look(tmp_path / "none")
    assert status == 2
    assert "no folder" in err


def test_run_tries_each_python(look, home, monkeypatch):
    tried = []

    def call(command, *_, **__):
        tried.append(command[0])
        answer = b'{"version": "2", "cards": [{"name": "GT 1030", "failed": "no kernel image"}]}'
        return ChildAnswer(answer, 0)

    monkeypatch.setattr(devices, "call_command", call)
    status, out, _ = look(home, "--run")
    assert status == 1
    assert len(tried) == 2
    assert "No kernel ran: no kernel image" in out
