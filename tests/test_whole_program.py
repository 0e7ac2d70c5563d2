"""The whole program as a person has it: window, engine and sensors, each in its process.

Each script drives the window through its object names and ends it; what a test judges is the exit
status, what was printed, and that no process of the program is left.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.driving.whole_program import (
    CLOSING,
    QUICK_RUNS,
    READY,
    close_in,
    drive,
    kill_in,
    run_program,
)

_ENGINE_KILLED = """
first = studio.session.description.pid
click(window, "benchmark.run")
wait(lambda: results.rowCount() and studio.session.state is EngineState.BUSY)
psutil.Process(first).kill()
wait(lambda: engine_pids)
wait(lambda: studio.session.state is EngineState.READY)
print("replaced", engine_pids[-1] != first)
print("rows", results.rowCount())
print("banner", text(window, "banner.sentence"))
window.close()
application.processEvents()
"""

_WITHOUT_A_PLACE = """
from gpu_studio.model.benchmark.history_model import HistoryModel
history = window.findChild(HistoryModel)
click(window, "benchmark.run")
wait(lambda: not run.isEnabled())
wait(lambda: run.isEnabled() and studio.session.state is EngineState.READY)
wait(lambda: history.notice.sentence)
print("history", history.notice.sentence)
print("caption", text(window, "benchmark.plot.caption"))
print("rows", results.rowCount())
settings.change(theme="dark")
print("banner", text(window, "banner.sentence"))
window.close()
application.processEvents()
"""
# Files can be made, and take no byte: so is a full disk, for its administrator too.
_FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""

# A window that closes ends them as every family: tests/process/test_child_process.py.
_ONLY_KILLED = "replicas"


@pytest.mark.parametrize("state", sorted(CLOSING.keys() - {_ONLY_KILLED}))
def test_closing_in_any_state_leaves_no_process_and_no_file(tmp_path: Path, state: str):
    output = close_in(state, tmp_path)
    _, least = CLOSING[state]
    assert int(output["family"]) >= least
    assert ("gpu-studio-" in output["folders"]) is (least > 0)
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("state", ["engine starts", _ONLY_KILLED, "sensors and their log"])
def test_no_process_outlives_a_window_that_is_killed(tmp_path: Path, state: str):
    _, least = CLOSING[state]
    assert int(kill_in(state, tmp_path)["family"]) >= least


def test_a_killed_engine_is_reported_and_replaced_and_nothing_is_lost():
    output = drive(_ENGINE_KILLED, sizes="256", budget_s=60)
    assert output["replaced"] == "True"
    assert int(output["rows"]) >= 1
    # A signal 9 may come from a kernel without memory; on Windows it is an exit status.
    assert ("ran out of memory (RAM)" in output["banner"]) is (sys.platform != "win32")
    assert "PyTorch" in output["banner"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit for the size of a file")
def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path: Path):
    settings = tmp_path / "settings.json"
    settings.write_text('{"theme": "light"}', encoding="utf-8")
    output = run_program(QUICK_RUNS + READY + _FULL_DISK + _WITHOUT_A_PLACE, home=tmp_path)
    assert int(output["rows"]) >= 1
    assert "element by element" in output["caption"].lower()
    assert str(settings) in output["banner"]
    assert "Cannot save results" in output["history"]
    assert json.loads(settings.read_text(encoding="utf-8"))["theme"] == "light"
    assert {one.name for one in tmp_path.iterdir()} <= {"settings.json", "data"}
