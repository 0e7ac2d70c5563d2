"""What each activity says after a sleep: its processes are stopped for a while, as by a lid.

``python -m tests.bench.sleeps [--seconds 2 20 80] [--only ACTIVITY ...] [--at-once 2]``

The window and its children, or a command and its children, are stopped by their ids in the middle
of the work, and go on later. A row has the length, the end, and the words about it. A sleep of an
hour cannot be waited for: tests set its clock forward (tests/core/test_pause.py).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from tests.bench.power_cuts import child as installer_child
from tests.bench.power_cuts import serve_wheels, wrong_file
from tests.builds.wheel_server import WheelServer
from tests.driving.whole_program import READY, ROOT, run_program

_NAP = """
import subprocess
from gpu_studio.core.pause import PauseWatch
def nap(seconds):
    told, began = [], time.monotonic()
    studio.headlines.headline_changed.connect(lambda: told.append(studio.headlines.headline))
    subprocess.Popen([sys.executable, "-m", "tests.bench.sleeps", "--stop", str(os.getpid()),
                      "--seconds", str(seconds)])
    wait(lambda: time.monotonic() - began > seconds, patience_s=seconds + 600)
    return told
def say(what, *words):
    print(what, " | ".join(" ".join(str(word).split()) for word in words if word))
"""
_RUN_OVER = """
say("end", type(reply_events[-1]).__name__)
say("words", *(e.failure.message for e in reply_events if isinstance(e, RunFailed)))
"""
_ASK = """
def ask_and_nap(request, first):
    reply, events = studio.session.submit(request), []
    reply.event_received.connect(events.append)
    wait(lambda: any(isinstance(e, first) for e in events))
    nap({nap_s})
    wait(lambda: studio.session.state is EngineState.READY, patience_s=600)
    return events
def work(number, size=512):
    return RunWorkload(run_id=str(number), workload="elementwise", device="cpu", size=size,
                       dtype="float32", budget_s=4.0)
"""
WINDOW: dict[str, str] = {
    "idle, live sensors": """
open_tab(window, "Devices")
taken = []
studio.sensors.reading_taken.connect(lambda _reading: taken.append(1))
wait(lambda: len(taken) > 2)
told = nap({nap_s})
before = len(taken)
wait(lambda: len(taken) > before + 3)
say("end", "readings go on")
say("words", *(one.sentence for one in told if one))
""",
    "benchmark": _ASK + "reply_events = ask_and_nap(work(1), SamplesMeasured)\n" + _RUN_OVER,
    "comparison in turns": _ASK
    + (
        "both = RunInTurns(runs=(work(1), work(2)))\n"
        "reply_events = ask_and_nap(both, SamplesMeasured)\n"
    )
    + _RUN_OVER,
    "race": """
from gpu_studio.ui.race.race_tab import RaceTab
open_tab(window, "Race")
race = window.findChild(RaceTab).race
click(window, "race.run")
wait(lambda: any(len(side.run.series) for side in race.sides), patience_s=600)
told = nap({nap_s})
wait(lambda: race.verdict is not None and not race.state.is_busy, patience_s=600)
say("end", race.verdict.finished.sentence)
say("words", *(one.sentence for one in told if one))
""",
    "memory experiment": """
from gpu_studio.ui.memory.memory_tab import MemoryTab
open_tab(window, "Memory")
open_page(window, "memory.pages", "Break it")
choose_data(window, "memory.oom.preset", "many_small")
click(window, "memory.oom.run")
stop = find(window, "memory.oom.stop", QPushButton)
wait(stop.isEnabled)
told = nap({nap_s})
wait(lambda: not stop.isEnabled(), patience_s=600)
say("end", "the experiment ended")
say("words", *(one.sentence for one in told if one))
""",
    "pitfall": _ASK
    + """
events = ask_and_nap(RunPitfall(name="starved_gpu", device="cpu"), PitfallStarted)
say("end", type(events[-1]).__name__, getattr(events[-1], "comparison", ""))
say("words", "%.0f s of work" % getattr(events[-1], "elapsed_s", 0.0))
""",
    "check": """
from gpu_studio.ui.check.check_tab import CheckTab
open_tab(window, "Check")
check = window.findChild(CheckTab).check
check.choose_minutes(1)
click(window, "check.run")
wait(lambda: check.run is not None and check.run.elapsed_s > 5.0, patience_s=600)
told = nap({nap_s})
wait(lambda: check.run is not None and check.run.is_over, patience_s=600)
record = check.run.record()
say("end", record.verdict, record.sentence)
say("words", *("slept for %.0f s" % one.paused_s for one in record.pauses), *(
    one.sentence for one in told if one))
say("most_s", record.errors)
""",
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "terminal: bench": ("bench", "elementwise", "--size", "512", "--device", "cpu",
                        "--budget-s", "15", "--no-history"),
    "terminal: race": ("race", "learn", "--threads", "1,2", "--budget-s", "10", "--no-history"),
    "terminal: check": ("check", "--device", "cpu", "--minutes", "1"),
}  # fmt: skip
INSTALLATION = "installation"
_BUSY_S = 12.0
_WORDS = re.compile(r".*(?:slept|stopped|not respond|error|failed).*", re.IGNORECASE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, nargs="+", default=[2.0, 20.0, 80.0])
    parser.add_argument("--only", nargs="+", default=[*WINDOW, *COMMANDS, INSTALLATION])
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--stop", type=int, metavar="PID", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stop is not None:
        stop_for(psutil.Process(options.stop), options.seconds[0])
        return
    rows = [(activity, nap_s) for activity in options.only for nap_s in options.seconds]
    with ThreadPoolExecutor(options.at_once) as pool:
        for line in pool.map(lambda row: row_of(*row), rows):
            print(line, flush=True)


def stop_for(process: psutil.Process, nap_s: float) -> None:
    """Stop a process and what it started, but not this one, for some seconds."""
    family = [one for one in process.children(recursive=True) if one.pid != os.getpid()]
    for one in (process, *family):
        one.suspend()
    time.sleep(nap_s)
    for one in (*family, process):
        one.resume()


def row_of(activity: str, nap_s: float) -> str:
    """Return a row of the table."""
    try:
        if activity in WINDOW:
            script = READY + _NAP + WINDOW[activity].replace("{nap_s}", str(nap_s))
            with tempfile.TemporaryDirectory() as home:
                said = run_program(script + "\nwindow.close()\n", home=Path(home))
            words = " | ".join(said.get(one, "") for one in ("end", "words", "most_s"))
        elif activity in COMMANDS:
            words = command_words(COMMANDS[activity], nap_s)
        else:
            words = installation_words(nap_s)
    except AssertionError as error:
        words = f"NOT WELL: {error}"
    return f"| {activity} | {nap_s:.0f} s | {words} |"


def command_words(command: tuple[str, ...], nap_s: float) -> str:
    """Return the exit status of a command that was stopped, and what it said of it."""
    with tempfile.TemporaryDirectory() as home:
        places = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), home)
        child = subprocess.Popen(
            [sys.executable, "-m", "gpu_studio", *command],
            cwd=ROOT, env={**os.environ, **places}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        time.sleep(_BUSY_S)  # PyTorch is loaded by then, and the work goes on
        assert child.poll() is None, "the command was over before its sleep"
        stop_for(psutil.Process(child.pid), nap_s)
        out, _ = child.communicate()
    words = dict.fromkeys(line.strip() for line in out.splitlines() if _WORDS.match(line))
    return f"exit {child.returncode} | {' / '.join(words) or 'nothing about it'}"


def installation_words(nap_s: float) -> str:
    """Return how an installation ended that was stopped in the middle of its download."""
    with tempfile.TemporaryDirectory() as folder, WheelServer() as server:
        from random import Random

        os.environ |= {
            "no_proxy": "*", "NO_PROXY": "*", "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"{server.url}/simple", "PIP_NO_CACHE_DIR": "1",
        }  # fmt: skip
        wanted = serve_wheels(server, Random(1))
        engines = Path(folder)
        child = subprocess.Popen(
            installer_child(engines, server.url, 0.0), cwd=ROOT, stdout=subprocess.PIPE
        )
        while child.poll() is None and not [*engines.glob("downloads/*.whl*")]:
            time.sleep(0.001)
        assert child.poll() is None, "the installation was over before its sleep"
        stop_for(psutil.Process(child.pid), nap_s)
        child.communicate()
        wrong = wrong_file(engines / "cpu", wanted)
    return f"exit {child.returncode} | {wrong or 'every file as published'}"


if __name__ == "__main__":
    main()
