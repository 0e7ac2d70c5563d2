"""What an engine watches on the card it measures on, so that a number can be trusted."""

from __future__ import annotations

import contextlib
from typing import Any

import psutil

from gpu_studio.hardware.cards import read_clock_event_reasons
from gpu_studio.hardware.nvml import (
    CLOCK_SM,
    CardUnreadableError,
    Nvml,
    NvmlCard,
    NvmlUnavailableError,
)


class CardSensor:
    """One card by its UUID. Every answer is None where the card or the driver gives none.

    Args:
        uuid: the card's UUID, with or without the leading ``GPU-`` (PyTorch leaves it out).
        library: a module like pynvml; None imports it.
    """

    def __init__(self, uuid: str, library: Any = None) -> None:
        self._nvml: Nvml | None = None
        self._card: NvmlCard | None = None
        with contextlib.suppress(NvmlUnavailableError, CardUnreadableError):
            self._nvml = Nvml(library)
            self._card = self._nvml.card_with(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")

    def clock_event_reasons(self) -> int | None:
        """Return why the clocks are what they are: the bits of nvmlClocksEventReasons."""
        with contextlib.suppress(CardUnreadableError):
            return read_clock_event_reasons(self._card) if self._card else None
        return None

    def sm_clock_mhz(self) -> int | None:
        """Return the clock of the multiprocessors now."""
        return self._number("nvmlDeviceGetClockInfo", CLOCK_SM)

    def sm_clock_max_mhz(self) -> int | None:
        """Return the highest clock of the multiprocessors."""
        return self._number("nvmlDeviceGetMaxClockInfo", CLOCK_SM)

    def has_other_processes(self, own_pid: int) -> bool | None:
        """Return whether another process computes on the card; None where it cannot be told.

        Programs that draw on it do not count: Windows lists its whole desktop as both.
        """
        if self._card is None:
            return None
        try:
            computing, drawing = (_process_ids(self._card, k) for k in ("Compute", "Graphics"))
        except CardUnreadableError:
            return None
        if computing is None:
            return None
        others = computing - (drawing or set()) - {own_pid}
        # In a container the driver counts by the host's numbers, under which nobody is known here.
        if own_pid not in computing and not all(psutil.pid_exists(pid) for pid in others):
            return None
        return bool(others)

    def close(self) -> None:
        """End the session with the driver."""
        if self._nvml is not None:
            self._nvml.close()
        self._nvml = self._card = None

    def _number(self, function: str, *arguments: Any) -> int | None:
        with contextlib.suppress(CardUnreadableError):
            return self._card.number(function, *arguments) if self._card else None
        return None


def _process_ids(card: NvmlCard, kind: str) -> set[int] | None:
    function = f"nvmlDeviceGet{kind}RunningProcesses"
    entries = card.ask_first(function, f"{function}_v2")
    return None if entries is None else {entry.pid for entry in entries}
