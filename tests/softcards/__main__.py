"""Run the tests for CUDA builds of PyTorch without a card, on stand-ins for the driver's libraries.

    python3 packaging/bootstrap.py test --soft-cards [--discard] [PYTEST ARGS...]

They need two environments of their own, because their builds of PyTorch differ from the PC's: the
newest CUDA of the pinned version, and the newest PyPI build that has code for Maxwell, Pascal and
Volta. With --discard, each is removed after its tests, so that the disk needs room for one. A
file's tests stay in one worker, so that their cards are made once. A test that is marked ``alone``
measures something that a busy neighbor would spoil: it runs after the others. With arguments,
pytest runs once, in one process.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_SUITE = "tests/soft"
# Three equals signs: PyPI's CUDA build, never a local +cpu one. Then the newest Python of each, and
# the marker of its tests.
_BUILDS = (
    ("cu130", "torch===2.13.0", (3, 14), "soft"),
    ("cu126", "torch===2.7.1", (3, 13), "old_cards"),
)
_DISK_BYTES = 6_000_000_000
_NO_TESTS = 5  # pytest's exit status if it collected none
_PYTEST = ("-m", "pytest", "-c", f"{_SUITE}/pytest.ini", "--rootdir", ".", _SUITE)


def why_skipped() -> str | None:
    """Return why these tests cannot run here, or None."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return "the stand-ins for a card are for Linux on x86-64."
    if shutil.which("gcc") is None:
        return "the stand-ins for a card are compiled with gcc, which is not installed."
    return None


def main(arguments: list[str]) -> int:
    """Make the environments and run the suite in each; return the first status that is not 0."""
    if reason := why_skipped():
        print(f"Soft cards: skipped, {reason}", flush=True)
        return 0
    statuses = []
    rest = [one for one in arguments if one != "--discard"]
    for tag, torch, newest_python, marker in _BUILDS:
        if sys.version_info[:2] > newest_python:
            print(f"Soft cards {tag}: skipped, {torch} has no file for this Python.", flush=True)
            continue
        environment = _ROOT / f".venv-soft-{tag}"
        print(f"Soft cards {tag}: {torch} in {environment} (about 4 GB)", flush=True)
        _set_up(environment, torch)
        statuses += [_run(environment, *one) for one in runs(marker, rest)]
        if "--discard" in arguments:
            shutil.rmtree(environment)
    return next((status for status in statuses if status not in (0, _NO_TESTS)), 0)


def runs(marker: str, arguments: list[str]) -> list[list[str]]:
    """Return pytest's arguments for each of its runs."""
    if arguments:
        return [["-m", marker, *arguments]]
    together = ["-n", str(os.cpu_count()), "--dist", "loadfile", "--max-worker-restart", "0"]
    return [["-m", f"{marker} and not alone", *together], ["-m", f"{marker} and alone"]]


def _set_up(environment: Path, torch: str) -> None:
    """Give an environment this PyTorch, and the packages of uv.lock; uv does what is missing."""
    uv, python = os.environ["UV"], environment / "bin" / "python"
    if not python.exists():
        if shutil.disk_usage(_ROOT).free < _DISK_BYTES:
            sys.exit(f"The disk has less than {_DISK_BYTES / 1e9:.0f} GB free for {environment}.")
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, environment], check=True)
    wanted = environment / "requirements.txt"
    export = [uv, "export", "--frozen", "-q", "--no-emit-project", "-o", wanted]
    # Without the settings of pyproject.toml, which pin the newest PyTorch.
    install = [uv, "--no-config", "pip", "install", "-p", python, "-r", wanted, "-e", ".", torch]
    for command in (export, install):
        subprocess.run(command, cwd=_ROOT, check=True)


def _run(environment: Path, *arguments: str) -> int:
    command = [environment / "bin" / "python", *_PYTEST, *arguments]
    return subprocess.run(command, cwd=_ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
