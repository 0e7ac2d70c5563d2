"""Find this PC's NVIDIA cards and their driver before anything is installed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpu_studio.core.wheels import CudaCard
from studio_setup.fingerprint import nvidia_pci_devices
from studio_setup.launch import NO_WINDOW

_QUERY = ["--query-gpu=compute_cap,driver_version,name", "--format=csv,noheader"]
_LINE = re.compile(r"(\d{1,3})\.(\d{1,2}),\s*(\d+(?:\.\d+)*),\s*(\S.*)")
_TIMEOUT_S = 15.0
_NVML = "nvml_lines.py"
_WSL_TOOL = "/usr/lib/wsl/lib/nvidia-smi"


@dataclass(frozen=True)
class Sighting:
    """The driver's answer.

    Attributes:
        cards: The cards that it listed; empty if there is no card or no answer.
        driver_version: For example "580.65.06", or None.
        trouble: Why a card in the PC may be missing from `cards`, or None.
        timed_out: Whether the driver did not answer in time.
    """

    cards: tuple[CudaCard, ...]
    driver_version: str | None
    trouble: str | None
    timed_out: bool = False


def cards_in(report: str) -> tuple[tuple[CudaCard, ...], str | None]:
    """Read `compute_cap, driver_version, name` lines; other lines are ignored.

    After a driver update without a restart, nvidia-smi prints its error message on stdout.
    """
    matches = [match for line in report.splitlines() if (match := _LINE.fullmatch(line.strip()))]
    cards = tuple(CudaCard(match[4], (int(match[1]), int(match[2]))) for match in matches)
    return cards, matches[0][3] if matches else None


def find_cards() -> Sighting:
    """Ask nvidia-smi; if it lists no card, ask the driver's library."""
    tool = shutil.which("nvidia-smi") or (_WSL_TOOL if os.path.exists(_WSL_TOOL) else None)
    commands = [[sys.executable, "-I", str(Path(__file__).with_name(_NVML))]]
    if tool:
        commands.insert(0, [tool, *_QUERY])
    texts = []
    for command in commands:
        text = answer_of(command, _TIMEOUT_S)
        if text is None:
            sentence = "The NVIDIA driver does not answer: restart the PC."
            return Sighting((), None, sentence, timed_out=True)
        cards, driver_version = cards_in(text)
        if cards:
            return Sighting(cards, driver_version, None)
        texts.append(text)
    return Sighting((), None, _trouble("\n".join(texts)))


def answer_of(command: list[str], timeout_s: float) -> str | None:
    """Return a command's stdout and stderr; "" if it cannot be started, None on a timeout.

    A child that hangs in the driver may survive a kill, so the setup never waits for it.
    """
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            creationflags=NO_WINDOW,
        )
    except OSError:
        return ""
    try:
        output, _ = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=1.0)
        return None
    return output.decode("utf-8", errors="replace")


def _trouble(report: str) -> str | None:
    if "mismatch" in report:
        return "The NVIDIA driver was updated: restart the PC, then start GPU Studio again."
    if sys.platform == "linux" and nvidia_pci_devices("/"):
        return (
            "This PC has an NVIDIA card, but no NVIDIA driver answers: install the driver, restart "
            "the PC, then start GPU Studio again."
        )
    return None
