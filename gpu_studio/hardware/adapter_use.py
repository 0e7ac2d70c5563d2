"""What programs do with one graphics adapter, as a system tells it that knows every maker's."""

from __future__ import annotations

from dataclasses import dataclass, field

_TOLERANCE = 0.02  # two counters are not of the same instant


@dataclass(slots=True)
class AdapterUse:
    """What programs do with one adapter; None for what Windows does not say.

    Attributes:
        percent: how busy its busiest engine is.
        own_bytes: the card's own memory in use.
        shared_bytes: the PC's memory in use by it.
        processes: the bytes of each process, by its id: own and shared.
        computing: the processes that were seen to compute.
        drawing: those that were seen to draw.
        tells_apart: whether it has an engine for computing alone. If not, one that draws may
            compute.
        busy_percent: how busy each process keeps the engine that it uses most.
    """

    percent: float | None = None
    own_bytes: int | None = None
    shared_bytes: int | None = None
    processes: dict[int, tuple[int, int]] | None = None
    computing: set[int] = field(default_factory=set)
    drawing: set[int] = field(default_factory=set)
    tells_apart: bool = False
    busy_percent: dict[int, float] | None = None

    def kind(self, pid: int) -> str:
        """Return what a process does here, as in `GpuProcess.kind`."""
        computes = pid in self.computing or (pid in self.drawing and not self.tells_apart)
        words = {"compute": computes, "graphics": pid in self.drawing}
        return " and ".join(word for word, is_so in words.items() if is_so)

    def held_bytes(self, total_bytes: int | None, used_bytes: int | None) -> dict[int, int | None]:
        """Return the card's own memory of each process; None where the counter cannot be right.

        That of Windows' desktop is known to grow beyond the card.

        Args:
            total_bytes: the card's memory; None if unknown.
            used_bytes: how much of it is in use; None if unknown.
        """
        held: dict[int, int | None] = {pid: own for pid, (own, _) in (self.processes or {}).items()}
        most = total_bytes if used_bytes is None else used_bytes
        if most is None:
            return held
        tolerance = _TOLERANCE * (total_bytes or most)
        known = sorted((pid for pid in held if held[pid]), key=lambda pid: held[pid] or 0)
        excess = sum(held[pid] or 0 for pid in known) - most
        while excess > tolerance and known:
            # The smallest one that explains it all; if none does, the largest is wrong too.
            enough = [pid for pid in known if (held[pid] or 0) + tolerance >= excess]
            wrong = enough[0] if enough else known.pop()
            excess -= held[wrong] or 0
            held[wrong] = None
        return held
