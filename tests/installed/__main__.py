"""Prove a package: ``python3 packaging/build.py prove windows|linux --out DIR``.

Installs the package that DIR has, opens it as a person does, downloads the CPU engine from a server
on this PC, finishes a benchmark, removes the package, and says what is left. The pictures of all
that go to DIR/pictures.
"""

import argparse
import sys
from pathlib import Path

from tests.windows.set_up import SkippedError
from tests.windows.window import FailedError

SKIPPED = 77  # as Automake's tests say it


def main() -> int:
    parser = argparse.ArgumentParser(prog="build.py prove")
    parser.add_argument("system", choices=("windows", "linux"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--wheels", type=Path, help="the wheels of PyTorch")
    parser.add_argument("--older", type=Path, help="an older version's packages, to update")
    options = parser.parse_args()
    pictures = options.out / "pictures" / options.system
    pictures.mkdir(parents=True, exist_ok=True)
    try:
        if options.system == "windows":
            from tests.installed.windows_proof import prove_windows as prove
        else:
            from tests.installed.linux_proof import prove_linux as prove
        prove(options.out, pictures, options.wheels, options.older)
    except SkippedError as error:
        print(f"Skipped: {error}", flush=True)
        return SKIPPED
    except FailedError as error:
        print(f"Failed: {error}", flush=True)
        return 1
    print(f"Proven. The pictures are in {pictures}.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
