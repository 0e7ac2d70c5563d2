"""A stand-in for ssh and for the PC behind it: it runs the command here, in a shell.

The variable STAND_IN names what happens instead: a file with Python that plays the other PC, or
“fail CODE TEXT”, what ssh itself says.
"""

from __future__ import annotations

import os
import subprocess
import sys


def tunnel(words: list[str]) -> int:
    """Say which port leads to the store, as ssh does: on one PC, it is the store's own."""
    if plan := os.environ.get("STAND_IN_TUNNEL", ""):
        sys.stderr.write(plan + "\n")
        return 255
    last = len(words) - 1 - words[::-1].index("-R")
    port = words[last + 1].rpartition(":")[2]
    sys.stderr.write(f"Allocated port {port} for remote forward to 127.0.0.1:{port}\n")
    sys.stderr.flush()
    sys.stdin.read()
    return 0


def main() -> None:
    words = sys.argv[1:]
    _, *commands = words[words.index("--") + 1 :]
    if "-N" in words:
        sys.exit(tunnel(words))
    (command,) = commands
    plan = os.environ.get("STAND_IN", "")
    if plan.startswith("fail "):
        _, code, text = plan.split(" ", 2)
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
        os._exit(int(code))
    there = [sys.executable, plan, *command.split()] if plan else command
    # As behind a real line: nothing there is of the family of what started ssh here.
    environment = {name: value for name, value in os.environ.items() if "FAMILY" not in name}
    process = subprocess.Popen(
        there, shell=not plan, env=environment, start_new_session=True,
        stdin=0, stdout=1, stderr=2,
    )  # fmt: skip
    # Only the process there holds the pipes, so each end sees the other's end.
    os.close(0)
    os.close(1)
    sys.exit(process.wait())


if __name__ == "__main__":
    main()
