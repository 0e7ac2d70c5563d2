"""The client of the setup, with a script in the place of the setup."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import psutil
import pytest

from gpu_studio.core.set_up_progress import SetUpProgress
from gpu_studio.process import set_up_child
from gpu_studio.process.set_up_child import SetUpChild, set_up_entry

SAY = """
import json, os, sys
def say(kind, text="", fraction=None):
    print(json.dumps({"kind": kind, "text": text, "fraction": fraction}), flush=True)
"""


@pytest.fixture
def child(tmp_path: Path):
    """Makes a client of a setup that is this script."""
    made = []

    def make(script: str) -> SetUpChild:
        entry = tmp_path / "bootstrap.py"
        entry.write_text(SAY + script, encoding="utf-8")
        made.append(SetUpChild(entry, tmp_path / "log.txt"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_setup_is_asked_for_the_build_and_tells_its_progress(child):
    script = "say('note', ' '.join(sys.argv[1:]))\nsay('step', '3/4', 0.5)\nsay('done')\n"
    told = list(child(script).installing("cu126"))
    assert told == [
        SetUpProgress("note", "--torch cu126 --progress lines install"),
        SetUpProgress("step", "3/4", 0.5),
        SetUpProgress("done"),
    ]


def test_a_failure_is_the_last_thing(child):
    told = list(
        child("say('failed', 'The disk is full.')\nsay('note', 'more')").installing("cu126")
    )
    assert told == [SetUpProgress("failed", "The disk is full.")]


@pytest.mark.parametrize("script", ["raise SystemExit(3)", "print('no JSON')"])
def test_an_end_without_an_outcome_is_a_failure(child, script):
    told = list(child(script).installing("cu126"))
    assert [one.kind for one in told] == ["failed"]
    assert told[0].text


def test_a_stop_is_the_end_of_its_input(child):
    setup = child("say('step', 'waiting')\nos.read(0, 1)\nsay('failed', 'Stopped.')\n")
    told = setup.installing("cu126")
    assert next(told).text == "waiting"
    setup.stop()
    assert list(told) == [SetUpProgress("failed", "Stopped.")]


def test_a_setup_that_does_not_stop_is_ended_with_the_window(child):
    setup = child("import threading\nsay('note', str(os.getpid()))\nthreading.Event().wait()\n")
    told = setup.installing("cu126")
    process = psutil.Process(int(next(told).text))
    ends = threading.Thread(target=lambda: list(told))
    ends.start()
    setup.close()
    ends.join(60)
    assert not ends.is_alive()
    assert not psutil.pid_exists(process.pid) or process.status() == psutil.STATUS_ZOMBIE
    assert list(setup.installing("cu126")) == []


def environment(tmp_path: Path, *, marked=True, place=None, entry=True) -> tuple[Path, str]:
    folder = tmp_path / ".venv"
    folder.mkdir()
    (tmp_path / "packaging").mkdir()
    if entry:
        (tmp_path / "packaging" / "bootstrap.py").write_text("", encoding="utf-8")
    if marked:
        (folder / "made-by-gpu-studio").write_text("", encoding="utf-8")
    stamp = json.dumps({"place": str(place or folder)})
    (folder / "gpu-studio-stamp.json").write_text(stamp, encoding="utf-8")
    return tmp_path, str(folder)


def test_only_an_environment_that_the_setup_made_is_changed(tmp_path):
    checkout, folder = environment(tmp_path)
    assert set_up_entry(checkout, folder) == checkout / "packaging" / "bootstrap.py"


@pytest.mark.parametrize("lack", [{"marked": False}, {"place": "/elsewhere"}, {"entry": False}])
def test_another_environment_is_left_alone(tmp_path, lack):
    assert set_up_entry(*environment(tmp_path, **lack)) is None


@pytest.mark.parametrize("stamp", ["", "[]", "{}"])
def test_a_broken_stamp_is_none(tmp_path, stamp):
    checkout, folder = environment(tmp_path)
    (tmp_path / ".venv" / "gpu-studio-stamp.json").write_text(stamp, encoding="utf-8")
    assert set_up_entry(checkout, folder) is None


def test_the_names_are_those_that_the_setup_writes():
    written = Path(set_up_child.__file__).parents[2] / "packaging" / "studio_setup" / "stamp.py"
    text = written.read_text(encoding="utf-8")
    assert f'_MARK = "{set_up_child._MARK}"' in text
    assert f'_STAMP = "{set_up_child._STAMP}"' in text
