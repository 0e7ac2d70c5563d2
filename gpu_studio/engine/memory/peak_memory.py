"""How much memory a run's tensors took on a card at their peak."""

from __future__ import annotations

import torch


class PeakMemory:
    """Follows PyTorch's allocator on a card from here on; knows nothing of the CPU's.

    Args:
        device: what is measured; what is allocated there already does not count.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._ignored_bytes = 0
        if device.type == "cuda":
            self._ignored_bytes = torch.cuda.memory_allocated(device)
            torch.cuda.reset_peak_memory_stats(device)

    def ignore(self, size_bytes: int) -> None:
        """Leave out something that was allocated for the measurement and stays."""
        self._ignored_bytes += size_bytes

    def peak_bytes(self) -> int | None:
        """Return the most that was allocated at once; None on the CPU, where nobody counts."""
        if self._device.type != "cuda":
            return None
        return int(torch.cuda.max_memory_allocated(self._device)) - self._ignored_bytes
