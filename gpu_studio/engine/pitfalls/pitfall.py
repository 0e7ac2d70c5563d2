"""The protocol of a pitfall, and the tools it may use."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import Figure
from gpu_studio.core.statistics import quantile
from gpu_studio.engine.device import synchronize
from gpu_studio.engine.pitfalls import fresh_process
from gpu_studio.process.child_process import direct_start
from gpu_studio.process.steady_memory import without_steady

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import torch

    from gpu_studio.core.messages.pitfall_messages import PitfallDescription, PitfallOutcome

CPU_STANDS_IN = "This PC has no card that PyTorch can use. The CPU stands in for it."
META_STANDS_IN = (
    "This PC has no card that PyTorch can use. The meta device, which has shapes but no values, "
    "stands in for it."
)
_LONGEST_SCRIPT_S = 120.0
_LOOK_S = 0.05
_LONGEST_TEXT = 4000


class ScriptEnd(msgspec.Struct, frozen=True):
    """A script's output, and the last line of its error or an empty text."""

    output: str
    error: str


class Bench:
    """The device that a pitfall runs on, with clocks and new processes.

    Args:
        device: a card, or the CPU if there is no card.
        stop: set by another thread when the user presses Stop.
    """

    def __init__(self, device: torch.device, stop: threading.Event) -> None:
        self.device = device
        self._stop = stop

    @property
    def address(self) -> str:
        return str(self.device)

    @property
    def has_card(self) -> bool:
        return not is_cpu(self.device.type)

    @property
    def stand_in(self) -> str:
        """The sentence to show if the CPU takes the card's place, else empty."""
        return "" if self.has_card else CPU_STANDS_IN

    def check_stop(self) -> None:
        if self._stop.is_set():
            raise StudioError(FailureKind.BAD_REQUEST, "You stopped it.")

    def median_s(
        self,
        call: Callable[[], object],
        device: torch.device,
        *,
        at_least_s: float = 0.15,
        fewest: int = 5,
    ) -> float:
        """Return the median seconds of a call, waiting for the device, after one warm-up call."""
        call()
        synchronize(device)
        samples_s: list[float] = []
        spent_s = 0.0
        while spent_s < at_least_s or len(samples_s) < fewest:
            self.check_stop()
            start_s = time.perf_counter()
            call()
            synchronize(device)
            samples_s.append(time.perf_counter() - start_s)
            spent_s += samples_s[-1]
        return quantile(sorted(samples_s), 0.5)

    def run_script(self, script: str) -> ScriptEnd:
        """Run lines of Python in a new process and return its output.

        The process does not outlive this one, however this one ends.

        Raises:
            StudioError: the user stopped it, or it took too long.
        """
        reading, writing = os.pipe()  # the system closes both ends with this process
        with (
            os.fdopen(reading, "rb") as lifeline,
            os.fdopen(writing, "wb"),
            tempfile.TemporaryDirectory(prefix="gpu-studio-") as folder,
        ):
            path = Path(folder) / "pitfall.py"
            path.write_text(script, encoding="utf-8")
            python, launched = direct_start()
            process = subprocess.Popen(
                [python, fresh_process.__file__, str(path)],
                stdin=lifeline,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env={**without_steady(), **launched, "PYTHONIOENCODING": "utf-8"},
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
            error = f"The process ended with exit status {process.returncode}."
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
                        FailureKind.INTERNAL,
                        "The new process took longer than two minutes and was stopped.",
                    ) from None


class Pitfall(Protocol):
    """A common mistake, made on purpose."""

    description: PitfallDescription

    def snippet(self, part: str, device: str) -> str:
        """Return a runnable script; ``part`` is ``broken`` or ``fixed``."""

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        """Run one part; an error that the pitfall is about is part of the outcome.

        Raises:
            StudioError: the part could not run, with the reason.
        """


def error_of(call: Callable[[], object]) -> str:
    """Return the class and text of the exception that a call raises, or an empty text.

    The exception itself does not leave this function: its frames would keep tensors alive.
    """
    try:
        call()
    except Exception as error:  # a person would see any of them
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
    """Return a figure between 0 and 1."""
    return Figure(name=name, title=title, value=value, unit="share")


def ratio(name: str, title: str, value: float) -> Figure:
    """Return a figure that is a ratio of two others."""
    return Figure(name=name, title=title, value=value, unit="×")
