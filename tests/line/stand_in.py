"""A stand-in for ssh and for the PC behind it: it runs the command here, in a shell.

The variable STAND_IN names what happens instead: a file with Python that plays the other PC, or
“fail CODE TEXT”, what ssh itself says.
"""

import os
import subprocess
import sys


def main() -> None:
    words = sys.argv[1:]
    _, *commands = words[words.index("--") + 1 :]
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
