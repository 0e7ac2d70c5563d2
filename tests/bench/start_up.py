"""From the start of the process to the first painted window, over a bare window with a plot.

``python -m tests.bench.start_up [--rounds 20]``
"""

from __future__ import annotations

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


def seconds_to_paint(module: str, environment: dict[str, str]) -> float:
    """Start a process that prints the clock when its window was painted; return the seconds.

    `time.perf_counter` is one clock for all processes on Linux (CLOCK_MONOTONIC) and on Windows
    (QueryPerformanceCounter).
    """
    start_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", module], env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode != 0:
        sys.exit(f"{module} ended with {done.returncode}:\n{done.stderr}")
    return float(done.stdout.split()[0]) - start_s


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
        for number in range(rounds + 1):
            bare = seconds_to_paint("tests.bench.paint_bare", environment)
            studio = seconds_to_paint("tests.bench.paint_studio", environment)
            if number:  # the first pair fills the disk's cache
                bare_s.append(bare)
                studio_s.append(studio)
    ratio = paired_ratio(studio_s, bare_s)
    print(describe_machine())
    print(f"process start to first painted window, median of {rounds}, alternating:")
    print(f"  bare window with one plot  {1000 * median(bare_s):6.0f} ms")
    print(f"  GPU Studio                 {1000 * median(studio_s):6.0f} ms")
    print(f"  ratio {ratio}; {verdict(ratio.median, _TARGET)}")


if __name__ == "__main__":
    main()
