"""Start a program in the environment."""

from __future__ import annotations

import os
import sys

# The value of subprocess.CREATE_NO_WINDOW, without importing subprocess at every start. Otherwise a
# setup without a console would open a black window for each Python process.
NO_WINDOW = 0x0800_0000 if sys.platform == "win32" else 0
_WARNING = 0x30  # MB_ICONWARNING of winuser.h


def clean_environ() -> dict[str, str]:
    """Return the environment variables without those that point another Python to wrong folders."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() not in ("PYTHONHOME", "PYTHONPATH")
    }


def show_error(sentence: str) -> None:
    """Say why nothing started; in a dialog on Windows, because a double-click has no terminal."""
    if sys.stderr is not None:
        print(sentence, file=sys.stderr)
    elif sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, sentence, "GPU Studio", _WARNING)


def become(command: list[str], environ: dict[str, str]) -> int:
    """Replace this process with the command; on Windows, run it and return its exit status."""
    if os.name != "nt":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(command[0], command, environ)
    return run(command, environ)


def run(command: list[str], environ: dict[str, str]) -> int:
    """Run the command and return its exit status."""
    import subprocess

    try:
        return subprocess.call(command, env=environ)
    except KeyboardInterrupt:
        return 130


def start_detached(command: list[str], environ: dict[str, str]) -> int:
    """Start a windowed program on Windows and do not wait for it."""
    import subprocess

    flags = getattr(subprocess, "DETACHED_PROCESS", 0)
    subprocess.Popen(command, env=environ, creationflags=flags, close_fds=True)
    return 0


def python_version_of(python: str) -> str:
    """Return an interpreter's version, such as "3.11", or "" if it does not start."""
    import subprocess

    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    command = [python, "-I", "-c", code]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, creationflags=NO_WINDOW
        )
    except OSError:
        return ""
    return done.stdout.strip()
