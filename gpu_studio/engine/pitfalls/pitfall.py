"""What a pitfall is, and what it may use to fall in and to get out again."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpu_studio.child_process import interpreter
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import Figure
from gpu_studio.core.statistics import quantile
from gpu_studio.engine.device import synchronize
from gpu_studio.engine.pitfalls import fresh_process

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import torch

    from gpu_studio.core.messages.pitfall_messages import PitfallDescription, PitfallOutcome

CPU_STANDS_IN = "This PC has no card that PyTorch can use: the CPU stands in for it."
META_STANDS_IN = (
    "This PC has no card that PyTorch can use: the meta device, which has shapes and no values, "
    "stands in for it."
)
_LONGEST_SCRIPT_S = 120.0
_LOOK_S = 0.05
_LONGEST_TEXT = 4000


class ScriptEnd(msgspec.Struct, frozen=True):
    """What a script printed, and the last line of its error; empty where there was none."""

    output: str
    error: str


class Bench:
    """The device a pitfall is tried on, with clocks and fresh processes.

    Args:
        device: a card, or the CPU where there is none.
        stop: set by another thread when the user has seen enough.
    """

    def __init__(self, device: torch.device, stop: threading.Event) -> None:
        self.device = device
        self._stop = stop

    @property
    def address(self) -> str:
        """Its address: ``cpu``, ``cuda:0``."""
        return str(self.device)

    @property
    def has_card(self) -> bool:
        """Whether the device is a card."""
        return self.device.type == "cuda"

    @property
    def stand_in(self) -> str:
        """What is said where the CPU takes the card's place."""
        return "" if self.has_card else CPU_STANDS_IN

    def check_stop(self) -> None:
        """Raise where the user wants no more of it."""
        if self._stop.is_set():
            raise StudioError(FailureKind.BAD_REQUEST, "It was stopped.")

    def median_s(
        self,
        call: Callable[[], object],
        device: torch.device,
        *,
        budget_s: float = 0.15,
        fewest: int = 5,
    ) -> float:
        """Return the median seconds of a call until the device is done, after one to warm up."""
        call()
        synchronize(device)
        samples_s: list[float] = []
        spent_s = 0.0
        while spent_s < budget_s or len(samples_s) < fewest:
            self.check_stop()
            start_s = time.perf_counter()
            call()
            synchronize(device)
            samples_s.append(time.perf_counter() - start_s)
            spent_s += samples_s[-1]
        return quantile(sorted(samples_s), 0.5)

    def run_script(self, script: str) -> ScriptEnd:
        """Run lines of Python in a fresh process and return what it printed.

        The process does not outlive this one, however this one ends.

        Raises:
            StudioError: it was stopped, or took too long.
        """
        reading, writing = os.pipe()  # the system closes both ends with this process
        with (
            os.fdopen(reading, "rb") as lifeline,
            os.fdopen(writing, "wb"),
            tempfile.TemporaryDirectory(prefix="gpu-studio-") as folder,
        ):
            path = Path(folder) / "pitfall.py"
            path.write_text(script, encoding="utf-8")
            process = subprocess.Popen(
                [interpreter(), fresh_process.__file__, str(path)],
                stdin=lifeline,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
                cwd=folder,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            try:
                output, errors = self._wait_for(process)
            finally:
                process.kill()
                process.communicate()  # waits, and closes its pipes
        lines = errors.strip().splitlines()
        error = lines[-1] if process.returncode and lines else ""
        if process.returncode and not error:
            error = f"The process ended with {process.returncode}."
        return ScriptEnd(output.strip()[-_LONGEST_TEXT:], error[:_LONGEST_TEXT])

    def _wait_for(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        deadline_s = time.monotonic() + _LONGEST_SCRIPT_S
        while True:
            try:
                return process.communicate(timeout=_LOOK_S)
            except subprocess.TimeoutExpired:
                self.check_stop()
                if time.monotonic() > deadline_s:
                    raise StudioError(
                        FailureKind.INTERNAL, "The fresh process did not end in two minutes."
                    ) from None


class Pitfall(Protocol):
    """One mistake, made on purpose."""

    description: PitfallDescription

    def snippet(self, part: str, device: str) -> str:
        """Return lines that show it as they stand; ``part`` is ``broken`` or ``fixed``."""

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        """Do it; an error that is the point of it is part of the outcome.

        Raises:
            StudioError: it could not be done, with the sentence why.
        """


def error_of(call: Callable[[], object]) -> str:
    """Return the class and text of what a call raises, empty where it works.

    The error itself does not leave this function: its frames would keep tensors alive.
    """
    try:
        call()
    except Exception as error:  # whatever it is, it is what a person would see
        return f"{type(error).__name__}: {error}".strip()[:_LONGEST_TEXT]
    return ""


def seconds(name: str, title: str, value: float, aim: str = "") -> Figure:
    """Return a figure of time."""
    return Figure(name=name, title=title, value=value, unit="s", aim=aim)


def memory(name: str, title: str, value: float, aim: str = "") -> Figure:
    """Return a figure of memory."""
    return Figure(name=name, title=title, value=value, unit="bytes", aim=aim)


def count(name: str, title: str, value: float, aim: str = "") -> Figure:
    """Return a figure without a unit."""
    return Figure(name=name, title=title, value=value, aim=aim)


def share(name: str, title: str, value: float) -> Figure:
    """Return a figure that is a part of one."""
    return Figure(name=name, title=title, value=value, unit="share")


def ratio(name: str, title: str, value: float) -> Figure:
    """Return how many times one thing is another."""
    return Figure(name=name, title=title, value=value, unit="×")
