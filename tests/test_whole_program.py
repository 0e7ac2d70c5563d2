"""The whole program as a person has it: window, engine and sensors, each in its process.

Each script drives the window through its object names and ends it; what a test judges is the exit
status, what was printed, and that no process of the program is left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.patience import PATIENCE_S

# Three processes and a window, with nothing of the waits scripted.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parent.parent

_OPENING = """
import os, sys
from functools import partial
from pathlib import Path
from PySide6.QtWidgets import *
from gpu_studio.app import build_window
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.model.engine_session import EngineState
from tests.driving.window import click, find, open_tab, text, wait_ready, wait_until, write

sys.excepthook = lambda *error: (sys.__excepthook__(*error), os._exit(99))
application = QApplication([])
settings = Settings({settings_path})
window = build_window(settings=settings, data_folder={data_folder})
settings.change(budget_s={budget_s})
window.show()
studio = window.findChild(Studio)
open_tab(window, "Benchmark")

wait = partial(wait_until, patience_s={patience_s})
wait_ready(studio, {patience_s})
print("engine", studio.session.description.pid)
run = find(window, "benchmark.run", QPushButton)
results = find(window, "benchmark.results", QTableView).model()
write(window, "benchmark.sizes", "{sizes}")
engine_pids = []
studio.session.engine_described.connect(lambda described: engine_pids.append(described.pid))
"""

_SHORT_BENCHMARK = """
click(window, "benchmark.run")
wait(lambda: not run.isEnabled())
wait(lambda: run.isEnabled() and studio.session.state is EngineState.READY)
print("rows", results.rowCount())
print("verdict", text(window, "benchmark.verdict"))
window.close()
application.processEvents()
"""

_CLOSE_IN_THE_MIDDLE = """
click(window, "benchmark.run")
wait(lambda: studio.session.state is EngineState.BUSY)
window.close()
application.processEvents()
"""

_ENGINE_KILLED = """
import psutil
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
from gpu_studio.model.benchmark.benchmark_history import BenchmarkHistory
history = window.findChild(BenchmarkHistory)
click(window, "benchmark.run")
wait(lambda: not run.isEnabled())
wait(lambda: run.isEnabled() and studio.session.state is EngineState.READY)
wait(lambda: history.trouble)
print("history", history.trouble)
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

_ASK = """
import psutil, tempfile
from gpu_studio.core.protocol import RunPitfall, RunWorkload
engine = psutil.Process(studio.session.description.pid)
"""
_CLOSE = """
print("below", len(engine.children(recursive=True)))
print("folders", os.listdir(tempfile.gettempdir()))
window.close()
application.processEvents()
"""
_PITFALL = """
reply = studio.session.submit(RunPitfall(name="starved_gpu", part="broken", device="cpu"))
wait(lambda: engine.children())
"""
_REPLICAS = """
request = RunWorkload(
    run_id="1", workload="data_parallel", device="cpu", size=16, dtype="float32", budget_s=3600.0,
    options={"way": "DistributedDataParallel", "processes": "2"},
)
reply = studio.session.submit(request)
events = []
reply.event_received.connect(lambda event: events.append(type(event).__name__))
wait(lambda: "SamplesMeasured" in events)
"""
_HELD = """
studio.session.submit(RunWorkload(
    run_id="1", workload="elementwise", device="cpu", size=64, dtype="float32", budget_s=3600.0,
))
wait(lambda: studio.session.state is EngineState.BUSY)
engine.suspend()
"""


def drive(
    script: str,
    *,
    sizes: str = "64",
    budget_s: float = 0.1,
    temporary: Path | None = None,
    home: Path | None = None,
) -> dict[str, str]:
    """Run a script in a child of its own; return what it printed, word by word.

    Args:
        script: what is done after the opening.
        sizes: of the benchmark.
        budget_s: of each of its runs.
        temporary: where the program leaves its temporary files; None for the system's folder.
        home: where it keeps settings and results; None keeps none.
    """
    text = _OPENING.replace("{sizes}", sizes).replace("{budget_s}", str(budget_s)) + script
    for name, file in (("settings_path", "settings.json"), ("data_folder", "data")):
        place = f"Path({str(home / file)!r})" if home else "None"
        text = text.replace(f"{{{name}}}", place)
    text = text.replace("{patience_s}", str(2 * PATIENCE_S))  # an engine starts in each
    child = subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=ROOT,
        env={
            **os.environ,
            "QT_QPA_PLATFORM": "offscreen",
            "PYTHONIOENCODING": "utf-8",  # a pipe of Windows has its own
            **(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)) if temporary else {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    family = psutil.Process(child.pid)
    offspring: set[psutil.Process] = set()
    while child.poll() is None:
        try:
            offspring.update(family.children(recursive=True))
            child.wait(0.2)
        except (subprocess.TimeoutExpired, psutil.NoSuchProcess):
            continue
    out, err = child.communicate()
    assert child.returncode == 0, f"exit {child.returncode}\n{out}\n{err}"
    assert offspring, "the window started no engine and no sensor reader"
    _, alive = psutil.wait_procs(offspring, timeout=PATIENCE_S)
    assert not alive, "processes outlive the window"
    return dict(line.split(" ", 1) for line in out.splitlines())


def test_a_short_benchmark_and_a_quiet_end():
    said = drive(_SHORT_BENCHMARK, sizes="64, 128")
    assert int(said["rows"]) >= 2
    assert "elementwise" in said["verdict"]


def test_closing_in_the_middle_of_a_run_leaves_nothing():
    drive(_CLOSE_IN_THE_MIDDLE, sizes="256", budget_s=60)


@pytest.mark.parametrize(
    ("state", "below"),
    [(_PITFALL, 1), (_REPLICAS, 3), (_HELD, 0)],
    ids=("pitfall", "replicas", "held"),
)
def test_closing_leaves_no_grandchild_and_no_file(tmp_path: Path, state: str, below: int):
    said = drive(_ASK + state + _CLOSE, temporary=tmp_path)
    assert int(said["below"]) >= below
    assert "gpu-studio-" in said["folders"]
    assert list(tmp_path.iterdir()) == []


def test_a_killed_engine_is_reported_and_replaced_and_nothing_is_lost():
    said = drive(_ENGINE_KILLED, sizes="256", budget_s=60)
    assert said["replaced"] == "True"
    assert int(said["rows"]) >= 1
    # A signal 9 may come from a kernel without memory; on Windows it is an exit status.
    assert ("ran out of memory (RAM)" in said["banner"]) is (sys.platform != "win32")
    assert "engine" in said["banner"].lower()


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit for the size of a file")
def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path):
    settings = tmp_path / "settings.json"
    settings.write_text('{"theme": "light"}', encoding="utf-8")
    said = drive(_FULL_DISK + _WITHOUT_A_PLACE, home=tmp_path)
    assert int(said["rows"]) >= 1
    assert str(settings) in said["banner"]
    assert "run" in said["history"]
    assert json.loads(settings.read_text(encoding="utf-8"))["theme"] == "light"
    assert {one.name for one in tmp_path.iterdir()} <= {"settings.json", "data"}


def test_a_home_that_takes_nothing_is_told_and_the_program_works(tmp_path: Path):
    # A folder without the right to write holds no administrator; a file in its place does.
    home = tmp_path / "home"
    home.touch()
    said = drive(_WITHOUT_A_PLACE, home=home)
    assert int(said["rows"]) >= 1
    assert str(home) in said["banner"]
    assert "run" in said["history"]
    assert list(tmp_path.iterdir()) == [home]
