"""Whether a line to another PC changes what is measured: ``python -m tests.bench.line_cost``.

``[--rounds 15] [--budget-s 0.4] [--longest-s 3600]``

The other PC is this one behind a real sshd on a loopback port, so both sides have the same cores.
Each round starts three engines: one at the end of the line and two here, and makes each run six
times: here, line, again, again, line, here; the next round begins with the line. So a drift and a
cold start are the same for all three. A round's value is the mean of two medians. The ratio of the
line over here is printed with its interval, and the ratio of the two engines here, which says how
far this PC can tell at all.

With ``--longest-s``, no round begins that would not end by then.

Nothing rests between two lines of samples here, so the line works while a run is timed; in the
window, every run rests for 40 ms after each. The race sends its frames over the line.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.race_messages import RaceParameters, Showing
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload, SamplesMeasured
from gpu_studio.engine.client import ProcessEngine
from tests.bench.ratios import Ratio, describe_machine, paired_ratio
from tests.bench.relay import relayed_sshd
from tests.line.real_sshd import why_not

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIDES = ("here", "line", "again")
_CPU = EngineEnvironment(visible_devices="")


def _run(workload: str, size: int, budget_s: float, **more: object) -> RunWorkload:
    return RunWorkload(
        run_id="1", workload=workload, device="cpu", size=size, dtype="float32",
        budget_s=budget_s, with_findings=False, **more,
    )  # fmt: skip


def requests_of(budget_s: float) -> dict[str, RunWorkload]:
    """Return the runs, by their titles."""
    race = {"race": RaceParameters(), "showing": Showing()}
    return {
        "matmul 256": _run("matmul", 256, budget_s),
        "elementwise 1024": _run("elementwise", 1024, budget_s),
        "launch": _run("launch", 64, budget_s),
        "race: learn 96, with frames": _run("learn", 96, budget_s, **race),
    }


def median_s(engine: ProcessEngine, request: RunWorkload, address: str) -> float:
    """Return the median of one run."""
    sent = 0
    for event in engine.run(msgspec.structs.replace(request, device=address)):
        sent += isinstance(event, SamplesMeasured)
        if event.ends(request) and not isinstance(event, RunFinished):
            sys.exit(f"The run failed: {event}")
        if isinstance(event, RunFinished):
            last = event
    assert sent, "no samples came"
    return last.median_s


def sentence(ratio: Ratio) -> str:
    """Return the meaning of an interval."""
    if ratio.low > 1:
        return "slower"
    return "faster" if ratio.high < 1 else "no difference to be told"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each workload; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.line_cost")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget-s", type=float, default=0.4)
    parser.add_argument("--longest-s", type=float, default=3600.0)
    chosen = parser.parse_args(arguments)
    if reason := why_not():
        sys.exit(reason)
    print(describe_machine(), flush=True)
    requests = requests_of(chosen.budget_s)
    times: dict[str, dict[str, list[float]]] = {
        title: {side: [] for side in _SIDES} for title in requests
    }
    with relayed_sshd() as (pc, _server, _relay):
        began_s, longest_round_s = time.monotonic(), 0.0
        for number in range(chosen.rounds):
            round_s = time.monotonic()
            if round_s - began_s + longest_round_s > chosen.longest_s:
                break
            first = number % len(_SIDES)
            order = _SIDES[first:] + _SIDES[:first]
            with contextlib.ExitStack() as stack:
                engines = {
                    side: ProcessEngine(_CPU, pc=pc if side == "line" else None) for side in _SIDES
                }
                for engine in engines.values():
                    stack.callback(engine.close)
                for title, request in requests.items():
                    found: dict[str, list[float]] = {side: [] for side in _SIDES}
                    for side in (*order, *reversed(order)):
                        address = "attic/cpu" if side == "line" else "cpu"
                        found[side].append(median_s(engines[side], request, address))
                    for side, medians in found.items():
                        times[title][side].append(sum(medians) / len(medians))
            longest_round_s = max(longest_round_s, time.monotonic() - round_s)
            print(f"round {number + 1} of {chosen.rounds}", flush=True)
    print("\n| Workload | Line over here | Two engines here | The line is |")
    print("| --- | --- | --- | --- |")
    for title, sides in times.items():
        line = paired_ratio(sides["line"], sides["here"])
        noise = paired_ratio(sides["again"], sides["here"])
        print(f"| {title} | {line} | {noise} | {sentence(line)} |")
    print(describe_machine())
    return 0


if __name__ == "__main__":
    sys.exit(main())
