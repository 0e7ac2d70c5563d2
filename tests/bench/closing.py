"""How long the program needs to end after its window is closed, in each state.

``python -m tests.bench.closing [STATE ...]``

From the close to the end of the window's process, on the wall; all its processes and temporary
files must be gone after it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.bench.ratios import describe_machine, verdict
from tests.driving.whole_program import CLOSING, close_in

_TARGET_S = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("states", nargs="*", metavar="STATE", default=[*CLOSING])
    states = parser.parse_args().states
    print(describe_machine())
    for state in states:
        with tempfile.TemporaryDirectory() as folder:
            output = close_in(state, Path(folder))
            left = [path.name for path in Path(folder, "temporary").iterdir()]
        took_s = float(output["ended_at"]) - float(output["closed_at"])
        print(f"  {state}: {took_s:.2f} s; {verdict(took_s, _TARGET_S)}; left: {left or 'nothing'}")


if __name__ == "__main__":
    main()
