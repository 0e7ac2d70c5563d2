"""From the start of the process to the first painted window, over a bare window with a plot.

``python -m tests.bench.start_up [--rounds 20]``

Both as time on the wall and as processor time, which other programs disturb little.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.bench.ratios import describe_machine, paired_ratio, verdict

_TARGET = 0.7


def seconds_to_paint(module: str, environment: dict[str, str]) -> tuple[float, float]:
    """Start a process that tells when its window was painted; return seconds and processor seconds.

    `time.perf_counter` is one clock for all processes on Linux (CLOCK_MONOTONIC) and on Windows
    (QueryPerformanceCounter).
    """
    start_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", module], env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode != 0:
        sys.exit(f"{module} ended with {done.returncode}:\n{done.stderr}")
    clock_s, worked_s = (float(number) for number in done.stdout.split())
    return clock_s - start_s, worked_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    bare_s, studio_s = [], []
    with tempfile.TemporaryDirectory() as folder:
        # Separate settings and log: a first start, and no user's settings change.
        own = {name: str(Path(folder, name)) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        environment = {**os.environ, **own}
        # The first pair keeps what it has compiled: an installed program's is there.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            bare = seconds_to_paint("tests.bench.paint_bare", environment)
            studio = seconds_to_paint("tests.bench.paint_studio", environment)
            if number:  # the first pair also fills the disk's cache
                bare_s.append(bare)
                studio_s.append(studio)
    print(describe_machine())
    print(f"process start to first painted window, median of {rounds}, alternating:")
    for number, kind in enumerate(("on the wall", "processor time")):
        bare, studio = ([pair[number] for pair in pairs] for pairs in (bare_s, studio_s))
        ratio = paired_ratio(studio, bare)
        print(
            f"  {kind}: bare window with one plot {1000 * median(bare):.0f} ms, GPU Studio "
            f"{1000 * median(studio):.0f} ms; ratio {ratio}; {verdict(ratio.median, _TARGET)}"
        )


if __name__ == "__main__":
    main()
