"""Hand over to a program in the environment."""

from __future__ import annotations

import os
import sys


def clean_environ() -> dict[str, str]:
    """This process's environment without what would lead another Python into the wrong folders."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() not in ("PYTHONHOME", "PYTHONPATH")
    }


def become(command: list[str], environ: dict[str, str]) -> int:
    """Become the command; on Windows, run it and give its exit status."""
    if sys.platform != "win32":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(command[0], command, environ)
    return run(command, environ)


def run(command: list[str], environ: dict[str, str]) -> int:
    """Run the command to its end and give its exit status."""
    import subprocess

    try:
        return subprocess.call(command, env=environ)
    except KeyboardInterrupt:
        return 130


def start_detached(command: list[str], environ: dict[str, str]) -> int:
    """Start a windowed program on Windows and leave it alone."""
    import subprocess

    flags = getattr(subprocess, "DETACHED_PROCESS", 0)
    subprocess.Popen(command, env=environ, creationflags=flags, close_fds=True)
    return 0


def python_version_of(python: str) -> str:
    """An interpreter's "3.11", or "" where it does not start."""
    import subprocess

    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    command = [python, "-I", "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
