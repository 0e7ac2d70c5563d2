"""A child that starts others, one of them in a session of its own, and leaves temporary files.

Run as ``python -m tests.engine.child_with_family``; it says in one line which, and waits.
"""

import json
import os
import subprocess
import sys
import tempfile

from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

_SLEEPS = "import time; time.sleep(3600)"


def main() -> None:
    lines, pipe = take_over_stdin(), take_over_stdout()
    others = [
        subprocess.Popen([sys.executable, "-c", _SLEEPS], start_new_session=has_left)
        for has_left in (False, True)
    ]
    folder = tempfile.mkdtemp(prefix="torchelastic_")
    values = {
        "own": os.getpid(),
        "environment": sys.prefix,
        "pids": [one.pid for one in others],
        "folder": folder,
    }
    pipe.write(json.dumps(values).encode() + b"\n")
    pipe.flush()
    lines.read()
    if "stays" in sys.argv:
        others[0].wait()


if __name__ == "__main__":
    main()
