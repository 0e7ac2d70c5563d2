"""What a cut line to another PC costs, for each stage and each kind of cut: a table in Markdown.

``python -m tests.bench.cut_lines [--stages run,sensors] [--kinds "ssh killed,network gone"]``

The other PC is this one behind a real sshd on a loopback port (tests/line/real_sshd.py). ssh goes
through a relay, which can stop forwarding without closing: a network that is gone. Each cut is made
in the middle of its stage. The row says after how long the end was noticed, how many events had
arrived, the sentence, what still lives there 10 s after the cut, and whether the next
connection works.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunWorkload
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
_KINDS = (
    "ssh killed", "sshd killed", "ssh stopped", "sshd stopped", "network gone", "program killed",
)  # fmt: skip
_RUN = RunWorkload(
    run_id="1", workload="matmul", device="attic/cpu", size=32, dtype="float32", budget_s=600.0
)
_CHECK = RunCheck(check_id="1", device="attic/cpu", budget_s=600.0)


class Stage:
    """One conversation, cut after some of its events.

    Attributes:
        arrived: the events so far.
        said: the sentence at its end.
        ended_s: when it ended, of `time.monotonic`; None before.
    """

    def __init__(self, name: str, pc: OtherPc) -> None:
        self._name = name
        self.arrived, self.said = 0, ""
        self.ended_s: float | None = None
        self._engine = ProcessEngine(EngineEnvironment(visible_devices=""), pc=pc)
        self._reader = SensorReader(0.5, pc=pc)
        self.is_ready = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    @property
    def pid(self) -> int | None:
        """The ssh of this conversation."""
        return self._reader.pid if self._name == "sensors" else self._engine.pid

    def close(self) -> None:
        self._engine.close()
        self._reader.close()

    def _events(self) -> Iterator[Any]:
        if self._name == "sensors":
            return self._reader.readings()
        request = {"start": DescribeEngine(), "run": _RUN, "check": _CHECK}[self._name]
        return self._engine.run(request)

    def _work(self) -> None:
        if self._name == "start":
            self.is_ready.set()
        last = None
        for event in self._events():
            last = event
            self.arrived += 1
            if self.arrived >= 4:
                self.is_ready.set()
        self.ended_s = time.monotonic()
        if isinstance(last, RequestFailed):
            self.arrived -= 1
            self.said = last.failure.message
        elif isinstance(last, EngineEnded):
            self.arrived -= 1
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


def _cut(kind: str, stage: Stage, server: psutil.Process, relay: Relay) -> Callable[[], None]:
    """Cut the line; return what mends it for the next connection."""
    here = [psutil.Process(stage.pid)] if stage.pid else []
    match kind:
        case "network gone":
            relay.is_silent.set()
            return relay.is_silent.clear
        case "program killed":
            found = _programs(server, "engine.serve", "hardware.reader")
            number = signal.SIGKILL
        case "ssh killed" | "ssh stopped":
            found, number = here, signal.SIGKILL
        case _:
            found, number = _sessions(server), signal.SIGKILL
    if kind.endswith("stopped"):
        number = signal.SIGSTOP
    for one in found:
        one.send_signal(number)
    return lambda: None


def _row(
    name: str, kind: str, pc: OtherPc, server: psutil.Process, relay: Relay
) -> tuple[str, bool]:
    """Return a row of the table, and whether it is as it should be."""
    stage = Stage(name, pc)
    try:
        is_begun = stage.is_ready.wait(_LONGEST_S)
        if name == "start":
            until(lambda: _programs(server, "engine.serve"))
        assert is_begun, f"{name} did not begin"
        family = _programs(server, "gpu_studio")
        began_s = time.monotonic()
        mend = _cut(kind, stage, server, relay)
        until(lambda: stage.ended_s is not None)
        noticed_s = (stage.ended_s or time.monotonic()) - began_s
        look_s = began_s + _LOOKED_AFTER_S
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
    is_good = noticed_s <= _LOOKED_AFTER_S and not alive and again
    words = (
        name, kind, f"{noticed_s:.1f} s", str(stage.arrived), stage.said or "none",
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
    parser.add_argument("--stages", default="start,run,check,sensors")
    parser.add_argument("--kinds", default=",".join(_KINDS))
    options = parser.parse_args()
    if reason := why_not():
        sys.exit(reason)
    print(describe_machine())
    print("\n| stage | cut | noticed after | events arrived | sentence | left there | next |")
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
