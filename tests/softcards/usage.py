"""The table in which every process on a soft PC writes what it does (``c/softcards.h``)."""

import struct
from dataclasses import dataclass
from pathlib import Path

MAX_CARDS = 16
_PROCESSES = 64
_HEADER = struct.Struct("<Q56x")
_PID = struct.Struct("<i12x")
_SHARE = struct.Struct("<8Q")
_PROCESS_SIZE = _PID.size + MAX_CARDS * _SHARE.size


@dataclass(frozen=True)
class CardUse:
    """What one process did with one card, in the order the table keeps it."""

    size_bytes: int
    launches: int
    waits: int
    allocations: int
    busy_until_ns: int
    copied_in_bytes: int
    copied_out_bytes: int
    contexts: int


@dataclass(frozen=True)
class ProcessUse:
    """A process that used CUDA on the soft PC; `cards` is in PCI bus order."""

    pid: int
    cards: tuple[CardUse, ...]


class UsageTable:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(bytes(_HEADER.size + _PROCESSES * _PROCESS_SIZE))

    def raise_generation(self) -> None:
        """Tells the programs that the configuration has changed."""
        with self._path.open("r+b") as table:
            (generation,) = _HEADER.unpack(table.read(_HEADER.size))
            table.seek(0)
            table.write(_HEADER.pack(generation + 1))

    def processes(self, cards: int) -> list[ProcessUse]:
        """Every process that has used CUDA, those that have ended included."""
        raw = self._path.read_bytes()
        found = []
        for index in range(_PROCESSES):
            start = _HEADER.size + index * _PROCESS_SIZE
            (pid,) = _PID.unpack_from(raw, start)
            if pid != 0:
                shares = (
                    _SHARE.unpack_from(raw, start + _PID.size + card * _SHARE.size)
                    for card in range(cards)
                )
                found.append(ProcessUse(pid, tuple(CardUse(*share) for share in shares)))
        return found
