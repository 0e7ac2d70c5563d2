"""A stand-in for the window: it starts an engine, lets it race, and names the file of the frames.

Run as ``python -m tests.engine.frames_owner``; it then waits to be killed.
"""

from __future__ import annotations

import json
import sys

from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceParameters, Showing
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.engine.client import ProcessEngine

LONG_RACE = RunWorkload(
    run_id="r1",
    workload="grow",
    device="cpu",
    size=64,
    dtype="float32",
    race=RaceParameters(threads=1),
    budget_s=3600.0,
    calls=1_000_000,
    showing=Showing(),
)


def main() -> None:
    engine = ProcessEngine()
    path = ""
    for event in engine.run(LONG_RACE):
        if isinstance(event, FramesOpened):
            path = event.path
        if isinstance(event, FrameReady) and event.number == 1:
            sys.stdout.write(json.dumps({"path": path}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
