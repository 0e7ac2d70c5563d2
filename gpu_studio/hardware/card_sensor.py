"""What an engine watches on the card it measures on, so that a number can be trusted."""

from __future__ import annotations

import contextlib
from typing import Any

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
        """Return whether another process computes on the card.

        Programs that only draw on it, as a desktop does, are not counted.
        """
        if self._card is None:
            return None
        function = "nvmlDeviceGetComputeRunningProcesses"
        try:
            entries = self._card.ask_first(function, f"{function}_v2")
        except CardUnreadableError:
            return None
        return None if entries is None else any(entry.pid != own_pid for entry in entries)

    def close(self) -> None:
        """End the session with the driver."""
        if self._nvml is not None:
            self._nvml.close()
        self._nvml = self._card = None

    def _number(self, function: str, *arguments: Any) -> int | None:
        with contextlib.suppress(CardUnreadableError):
            return self._card.number(function, *arguments) if self._card else None
        return None
