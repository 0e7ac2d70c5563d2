"""What a cut line to another PC costs, for each stage and each kind of cut: a table in Markdown.

``python -m tests.bench.cut_lines [--stages run,sensors] [--kinds "ssh killed,network gone"]``

The other PC is this one behind a real sshd on a loopback port (tests/line/real_sshd.py). ssh goes
through a relay, which can stop forwarding without closing: a network that is gone. A greeting, an
inventory (both are the dialog's attempt) and a start are cut before the first answer, the others in
their middle. A PC that sleeps has all its processes of the line stopped for 12 s.

The row says after how long the end was noticed, the sleep included; how many samples of a run or
race, or events of another stage, were here at the cut and at the end; the sentence; what still
lives there 10 s after the cut or the waking; and whether the next connection works.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.race_messages import RaceParameters, Showing
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.hardware.client import SensorReader
from gpu_studio.hardware.greeting import greet
from tests.bench.ratios import describe_machine
from tests.bench.relay import relayed_sshd
from tests.line.real_sshd import why_not
from tests.patience import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.other_pc import OtherPc
    from tests.bench.relay import Relay

_LOOKED_AFTER_S = 10.0
_LONGEST_S = 60.0
_SLEEP_S = 12.0
_KINDS = (
    "ssh killed", "sshd killed", "ssh stopped", "sshd stopped", "network gone", "program killed",
    "this PC sleeps", "that PC sleeps",
)  # fmt: skip
_PROGRAMS = ("engine.serve", "hardware.reader", "serve hello")
# Cut as soon as this runs there, before its first answer.
_EARLY = {"greeting": "serve hello", "inventory": "hardware.reader", "start": "engine.serve"}
_STAGES = (*_EARLY, "run", "race", "check", "sensors")
_RUN = RunWorkload(
    run_id="1", workload="matmul", device="attic/cpu", size=32, dtype="float32", budget_s=600.0
)
_RACE = [
    RunWorkload(
        run_id=str(threads), workload="learn", device="attic/cpu", size=96, dtype="float32",
        budget_s=600.0, race=RaceParameters(threads=threads), showing=Showing(),
    )
    for threads in (1, 2)
]  # fmt: skip
_CHECK = RunCheck(check_id="1", device="attic/cpu", budget_s=600.0)


class Stage:
    """One conversation, cut after some of its events.

    Attributes:
        arrived: the events so far.
        said: the sentence at its end.
        ended_s: when it ended, of `time.monotonic`; None before.
    """

    def __init__(self, name: str, pc: OtherPc) -> None:
        self._name, self._pc = name, pc
        self.arrived, self.said = 0, ""
        self.ended_s: float | None = None
        self.runs = [Run(request) for request in {"run": [_RUN], "race": _RACE}.get(name, [])]
        self._engine = ProcessEngine(EngineEnvironment(visible_devices=""), pc=pc)
        self._reader = SensorReader(0.5, pc=pc)
        self.has_begun = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    @property
    def kept(self) -> int:
        """What is here of it: the samples of its runs, as the window keeps them; else events."""
        return sum(len(run.series) for run in self.runs) if self.runs else self.arrived

    def close(self) -> None:
        self._engine.close()
        self._reader.close()

    def _events(self) -> Iterator[Any]:
        match self._name:
            case "greeting":
                trouble = greet(self._pc).trouble
                self.said = trouble.sentence if trouble is not None else ""
                return iter(())
            case "inventory" | "sensors":
                return self._reader.readings()
            case "start":
                return self._engine.run(DescribeEngine())
            case "check":
                return self._engine.run(_CHECK)
            case "race":
                return self._engine.run(RunInTurns(runs=tuple(_RACE)))
        return self._engine.run(_RUN)

    def _work(self) -> None:
        last = None
        for event in self._events():
            last = event
            is_end = isinstance(event, (RequestFailed, EngineEnded))
            self.arrived += not is_end
            for run in self.runs:
                run.apply(event)
            if self.arrived >= 4 and (not self.runs or self.kept):
                self.has_begun.set()
        self.ended_s = time.monotonic()
        if isinstance(last, RequestFailed):
            self.said = last.failure.message
        elif isinstance(last, EngineEnded):
            self.said = describe_exit(last.exit_code)
        elif self._reader.line is not None and self._reader.line.trouble is not None:
            self.said = self._reader.line.trouble.sentence


def _programs(server: psutil.Process, *words: str) -> list[psutil.Process]:
    found = []
    for one in server.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            line = " ".join(one.cmdline())
            if one.status() != psutil.STATUS_ZOMBIE and any(word in line for word in words):
                found.append(one)
    return found


def _sessions(server: psutil.Process) -> list[psutil.Process]:
    return [one for one in server.children(recursive=True) if "sshd" in one.name()]


def _conversations() -> list[psutil.Process]:
    """Return the ssh of this PC, not what its server has started."""
    found = []
    for one in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if one.name() == "ssh":
                found.append(one)
    return found


def _cut(kind: str, server: psutil.Process, relay: Relay) -> Callable[[], object]:
    """Cut the line; return what mends it for the next connection."""
    number = signal.SIGSTOP if kind.endswith("stopped") else signal.SIGKILL
    match kind:
        case "network gone":
            relay.is_silent.set()
            return relay.is_silent.clear
        case "this PC sleeps":
            return _put_to_sleep([psutil.Process(), *_conversations()])
        case "that PC sleeps":
            return _put_to_sleep(server.children(recursive=True))
        case "program killed":
            found = _programs(server, *_PROGRAMS)
        case "ssh killed" | "ssh stopped":
            found = _conversations()
        case _:
            found = _sessions(server)
    for one in found:
        one.send_signal(number)
    return lambda: None


def _put_to_sleep(processes: list[psutil.Process]) -> Callable[[], object]:
    """Stop processes for `_SLEEP_S`, this one as well; return what waits for their waking."""
    pids = " ".join(str(one.pid) for one in processes)
    words = f"kill -STOP {pids}; sleep {_SLEEP_S}; kill -CONT {pids}"
    # What it says: a process may have ended in its sleep.
    waker = subprocess.Popen(["sh", "-c", words], stderr=subprocess.DEVNULL)
    return waker.communicate


def _row(
    name: str, kind: str, pc: OtherPc, server: psutil.Process, relay: Relay
) -> tuple[str, bool]:
    """Return a row of the table, and whether it is as it should be."""
    stage = Stage(name, pc)
    asleep_s = _SLEEP_S if kind.endswith("sleeps") else 0.0
    try:
        if name in _EARLY:
            until(lambda: _programs(server, _EARLY[name]))
        else:
            assert stage.has_begun.wait(_LONGEST_S), f"{name} did not begin"
        family = _programs(server, "gpu_studio")
        before = stage.kept
        began_s = time.monotonic()
        mend = _cut(kind, server, relay)
        until(lambda: stage.ended_s is not None)
        noticed_s = (stage.ended_s or time.monotonic()) - began_s
        look_s = began_s + _LOOKED_AFTER_S + asleep_s
        until(lambda: time.monotonic() > look_s or not any(map(_lives, family)))
        # Those of this line only: a stopped sshd stays until it is continued.
        alive = [one for one in family if _lives(one)]
        mend()
    finally:
        stage.close()
    for one in _sessions(server):
        with contextlib.suppress(psutil.Error):
            one.kill()
    again = greet(pc).trouble is None
    is_good = (
        noticed_s <= _LOOKED_AFTER_S + asleep_s and stage.kept >= before and not alive and again
    )
    words = (
        name, kind, f"{noticed_s:.1f} s", f"{before}, {stage.kept}", stage.said or "none",
        str(len(alive) or "nothing"), "works" if again else "FAILS",
    )  # fmt: skip
    return f"| {' | '.join(words)} |", is_good


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", default=",".join(_STAGES))
    parser.add_argument("--kinds", default=",".join(_KINDS))
    options = parser.parse_args()
    if reason := why_not():
        sys.exit(reason)
    print(describe_machine())
    print("\n| stage | cut | noticed after | kept: before, after | sentence | left there | next |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    failed = 0
    with relayed_sshd() as (pc, server, relay):
        for name in options.stages.split(","):
            for kind in options.kinds.split(","):
                row, is_good = _row(name, kind, pc, server, relay)
                failed += not is_good
                print(row, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
