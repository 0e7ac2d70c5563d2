"""The whole program in a process of its own: opened, driven through its object names, and closed.

A script stands for what a person does. `CLOSING` has the states in which a window can be closed.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.patience import PATIENCE_S, outliving

ROOT = Path(__file__).resolve().parents[2]
_LONGEST_S = 5 * PATIENCE_S
# On Windows, psutil gives a process that it kills this exit code.
_KILLED = signal.SIGTERM if sys.platform == "win32" else -signal.SIGKILL

_OPENING = """
import os, sys, tempfile, time
from functools import partial
from pathlib import Path
import psutil
from PySide6.QtGui import QAction
from PySide6.QtWidgets import *
from gpu_studio.app import build_window
from gpu_studio.core.messages.check_messages import *
from gpu_studio.core.messages.engine_messages import *
from gpu_studio.core.messages.memory_messages import *
from gpu_studio.core.messages.pitfall_messages import *
from gpu_studio.core.messages.placement_messages import *
from gpu_studio.core.messages.run_messages import *
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.model.engine_session import EngineState
from tests.driving.window import (
    choose_data, click, find, open_page, open_tab, text, wait_ready, wait_until, write
)

sys.excepthook = lambda *error: (sys.__excepthook__(*error), os._exit(99))
application = QApplication([])
settings = Settings({settings_path})
window = build_window(settings=settings, data_folder={data_folder})
settings.change(budget_s={budget_s})
studio = window.findChild(Studio)
wait = partial(wait_until, patience_s={patience_s})
def close():
    if window.isVisible():
        print("family", len(psutil.Process().children(recursive=True)))
        print("folders", os.listdir(tempfile.gettempdir()))
        print("closed_at", time.perf_counter())
        window.close()
"""
READY = """
window.show()
open_tab(window, "Benchmark")
wait_ready(studio, {patience_s})
print("engine", studio.session.description.pid)
engine = psutil.Process(studio.session.description.pid)
run = find(window, "benchmark.run", QPushButton)
results = find(window, "benchmark.results", QTableView).model()
write(window, "benchmark.sizes", "{sizes}")
engine_pids = []
studio.session.engine_described.connect(lambda described: engine_pids.append(described.pid))
"""
_CLOSE = """
close()
application.processEvents()
"""
_KILL = """
print("family", len(psutil.Process().children(recursive=True)), flush=True)
psutil.Process().kill()
"""
# Each state is reached without waiting for more than a condition.
_BEFORE_ITS_FIRST_PAINT = """
window.show()
"""
# Not earlier: on Windows, a process that is killed while it creates another one leaves that one
# behind, stopped before its first instruction, in ten lines of Python as well.
_ENGINE_STARTS = """
from gpu_studio.process.child_process import ChildProcess
created = []
create = ChildProcess.__init__
def create_and_count(child, *arguments, **named):
    create(child, *arguments, **named)
    created.append(child)
ChildProcess.__init__ = create_and_count
window.show()
wait(lambda: studio.session.state is EngineState.STARTING and len(created) > 1)
"""
_WORK = """
studio.session.submit(RunWorkload(
    run_id="1", workload="elementwise", device="cpu", size=64, dtype="float32", budget_s=3600.0,
))
wait(lambda: studio.session.state is EngineState.BUSY)
"""
_RUN = """
click(window, "benchmark.run")
wait(lambda: studio.session.state is EngineState.BUSY)
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
_HELD_ENGINE = _WORK + "engine.suspend()\n"
_HELD_SENSORS = """
open_tab(window, "Devices")
for child in psutil.Process().children(recursive=True):
    if child.pid != engine.pid and child not in engine.children(recursive=True):
        child.suspend()
"""
_SENSORS_AND_THEIR_LOG = """
from gpu_studio.model.devices.sensor_log import SensorLog
open_tab(window, "Devices")
log = window.findChild(SensorLog)
log.start(Path(os.environ["READS_AND_WRITES"]) / "sensors.csv")
wait(lambda: "so far" in log.notice.sentence and ": 0 " not in log.notice.sentence)
"""
_EXPERIMENT = """
open_tab(window, "Memory")
open_page(window, "memory.pages", "Now")
click(window, "memory.oom.preset.many_small")
wait(find(window, "memory.oom.stop", QPushButton).isEnabled)
"""
_EXPORT = """
from PySide6.QtCore import QTimer
click(window, "benchmark.run")
wait(lambda: not run.isEnabled())
wait(lambda: run.isEnabled() and studio.session.state is EngineState.READY)
def close_behind_the_dialog():
    if application.activeModalWidget() is None:
        QTimer.singleShot(10, close_behind_the_dialog)
        return
    print("dialog", type(application.activeModalWidget()).__name__)
    close()
QTimer.singleShot(0, close_behind_the_dialog)
window.findChild(QMenu, "benchmark.export.menu").aboutToShow.emit()
window.findChild(QAction, "benchmark.export.csv").trigger()
"""

# An engine that speaks from a plan: its PyTorch has no part in these states, and takes seconds.
_WITHOUT_PYTORCH = """
from gpu_studio.engine import client
client._MODULE = "tests.engine.scripted_child"
os.environ["CHILD_PLAN"] = "beat"
"""
# An engine whose runs are short: they are made, and none of their numbers is looked at.
QUICK_RUNS = """
from gpu_studio.engine import client
client._MODULE = "tests.engine.quick_engine"
"""

CLOSING: dict[str, tuple[str, int]] = {
    "start": (_BEFORE_ITS_FIRST_PAINT, 0),
    "engine starts": (_ENGINE_STARTS, 2),
    "run": (READY + _RUN, 2),
    "replicas": (READY + _REPLICAS, 5),
    "held engine": (_WITHOUT_PYTORCH + READY + _HELD_ENGINE, 2),
    "held sensors": (_WITHOUT_PYTORCH + READY + _HELD_SENSORS, 2),
    "sensors and their log": (_WITHOUT_PYTORCH + READY + _SENSORS_AND_THEIR_LOG, 2),
    "memory experiment": (READY + _EXPERIMENT, 2),
    "export dialog": (QUICK_RUNS + READY + _EXPORT, 2),
}
"""A state's script, and how many processes the program has below it at least."""


def close_in(state: str, folder: Path) -> dict[str, str]:
    """Bring the program into a state of `CLOSING`, then as `close_after`."""
    return close_after(CLOSING[state][0], folder)


def close_after(script: str, folder: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Run a script and close the window; return as `run_program`, with ``closed_at``.

    Args:
        script: brings the window, which is not yet shown, into a state.
        folder: an empty one, for ``temporary`` files and for what the program reads and writes.
        env: the environment; None for this process's.
    """
    temporary, files = folder / "temporary", folder / "files"
    temporary.mkdir()
    files.mkdir()
    env = {**(env or os.environ), "READS_AND_WRITES": str(files)}
    return run_program(script + _CLOSE, temporary=temporary, env=env)


def kill_in(state: str, folder: Path) -> dict[str, str]:
    """Bring the program into a state of `CLOSING` and kill its window; return as `run_program`.

    Args:
        state: the state.
        folder: an empty one, as for `close_after`.
    """
    temporary, files = folder / "temporary", folder / "files"
    temporary.mkdir()
    files.mkdir()
    env = {**os.environ, "READS_AND_WRITES": str(files)}
    return run_program(CLOSING[state][0] + _KILL, temporary=temporary, env=env, is_killed=True)


def drive(script: str, **options: object) -> dict[str, str]:
    """Run a script in the window once engine and sensors are ready; otherwise as `run_program`."""
    return run_program(READY + script, **options)  # type: ignore[arg-type]


def run_program(
    script: str,
    *,
    sizes: str = "64",
    budget_s: float = 0.1,
    temporary: Path | None = None,
    home: Path | None = None,
    env: Mapping[str, str] | None = None,
    is_killed: bool = False,
) -> dict[str, str]:
    """Run a script in a process of its own; return what it printed, word by word, and ``ended_at``.

    Args:
        script: what is done with the window once it is built.
        sizes: of the benchmark.
        budget_s: of each of its runs.
        temporary: where the program leaves its temporary files; None for the system's folder.
        home: where it keeps settings and results; None keeps none.
        env: the environment; None for this process's.
        is_killed: whether the script kills its own process.

    Raises:
        AssertionError: the program did not end as it should, or a process of it was left.
    """
    text = (_OPENING + script).replace("{sizes}", sizes).replace("{budget_s}", str(budget_s))
    for name, file in (("settings_path", "settings.json"), ("data_folder", "data")):
        place = f"Path({str(home / file)!r})" if home else "None"
        text = text.replace(f"{{{name}}}", place)
    text = text.replace("{patience_s}", str(2 * PATIENCE_S))  # an engine starts in each
    child = subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=ROOT,
        env={
            **(env or os.environ),
            "QT_QPA_PLATFORM": "offscreen",
            "PYTHONIOENCODING": "utf-8",  # a pipe of Windows has its own
            **(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)) if temporary else {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    began = psutil.Process(child.pid).create_time()
    offspring = _wait_for(child)
    ended_at = time.perf_counter()
    alive = outliving(offspring)
    left = [_described(process) for process in alive]
    for process in alive:  # they would hold the pipes open
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    try:
        out, err = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        others = _begun_since(began)
        raise AssertionError(f"the window's output stays open, by one of {others}") from None
    ends = _KILLED if is_killed else 0
    assert child.returncode == ends, f"exit {child.returncode}\n{out}\n{err}"
    assert not left, f"processes outlive the window: {left}"
    return {**dict(line.split(" ", 1) for line in out.splitlines()), "ended_at": str(ended_at)}


def _described(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid}, child of {process.ppid()}: {' '.join(process.cmdline())[-200:]}"
    return f"{process.pid}"


def _begun_since(began: float) -> list[str]:
    """Return which processes of this PC began at or after a time of `time.time`."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.create_time() >= began:
                found.append(_described(process))
    return found


def _wait_for(child: subprocess.Popen[str]) -> set[psutil.Process]:
    """Wait for the end of a program; return all processes that it has had below it."""
    family = psutil.Process(child.pid)
    offspring: set[psutil.Process] = set()
    longest_s = time.monotonic() + _LONGEST_S
    while child.poll() is None:
        if time.monotonic() > longest_s:
            child.kill()
            raise AssertionError("the program does not end")
        try:
            offspring.update(family.children(recursive=True))
            child.wait(0.2)
        except (subprocess.TimeoutExpired, psutil.NoSuchProcess):
            continue
    return offspring
