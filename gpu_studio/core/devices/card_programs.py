"""The programs on a card: what each one does there, in one true line, and with what memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpu_studio.core.devices.devices import GpuProcess

_SEPARATORS = re.compile(r"[/\\]")
UNKNOWN = "unknown"
_TITLES = {
    UNKNOWN: "A hidden program",
    "vmmem": "WSL (Linux programs)",
    "vmmemwsl": "WSL (Linux programs)",
    "vmwp.exe": "A virtual machine",
    "dwm.exe": "Windows' desktop (dwm.exe)",
}
_IDLE_PERCENT, _BUSY_PERCENT = 1.0, 20.0
_LARGE_SHARE = 0.5  # of the card's memory
# Buffers in the PC's RAM are usual. They are what found no place only if the card is about full:
# Windows lets no program have all of it.
_FULL_SHARE, _LEAST_SPILL_BYTES = 0.8, 256 << 20
_LEAST_UNNAMED_BYTES, _LEAST_UNNAMED_SHARE = 128 << 20, 0.05


class CardState(NamedTuple):
    """The card that the programs are on; None is unknown.

    Attributes:
        total_bytes: its own memory.
        used_bytes: how much of that is in use.
        better: another card's name, if this one is a part of the processor.
        on_better: the processes on that one.
    """

    total_bytes: int | None = None
    used_bytes: int | None = None
    better: str = ""
    on_better: Collection[int] = ()

    @property
    def is_full(self) -> bool:
        if not self.total_bytes or self.used_bytes is None or self.better:
            return False
        return self.used_bytes >= _FULL_SHARE * self.total_bytes

    def spilled_bytes(self, processes: Iterable[GpuProcess]) -> int:
        """Return what found no place on the card and is in the PC's RAM instead."""
        shared = sum(one.shared_bytes or 0 for one in processes) if self.is_full else 0
        return shared if shared >= _LEAST_SPILL_BYTES else 0


def program_name(process: GpuProcess) -> str:
    """Return the name of a process without its folder."""
    return _SEPARATORS.split(process.name)[-1] or process.name


def program_title(process: GpuProcess) -> str:
    """Return what a process is called in a sentence, with its container or service."""
    name = program_name(process)
    title = _TITLES.get(name.lower(), name)
    if process.unit:
        return f"{title} ({process.unit})"
    return f"{title} of {process.user}" if process.user and process.is_yours is False else title


def by_program(
    processes: Iterable[GpuProcess], own: Mapping[int, str]
) -> dict[str, list[GpuProcess]]:
    """Return the processes of each program by its title, the one with the most memory first.

    Args:
        processes: all processes on the card.
        own: this program's, with what they are.
    """
    found: dict[str, list[GpuProcess]] = {}
    for one in processes:
        found.setdefault(own.get(one.pid) or program_title(one), []).append(one)
    return dict(sorted(found.items(), key=lambda named: -(_memory(named[1]) or 0)))


def program_notices(
    processes: Sequence[GpuProcess], own: Mapping[int, str], card: CardState, most: int
) -> list[Notice]:
    """Return a sentence for each program, first those that slow the others down.

    Args:
        processes: all processes on the card.
        own: this program's, with what they are.
        card: the card.
        most: how many sentences there are: the last one may be about all other programs.
    """
    mine, programs = set(own.values()), by_program(processes, own)
    found = [
        (program_notice(title, of_one, card, is_mine=title in mine), of_one)
        for title, of_one in programs.items()
    ]
    found.sort(key=lambda one: one[0].tone is not Tone.AMBER)
    shown = most if len(found) <= most else most - 1
    notices = [notice for notice, _ in found[:shown]]
    if others := [process for _, of_one in found[shown:] for process in of_one]:
        used = _size(others)
        notices.append(Notice(f"{len(found) - shown} other programs{f': {used}' if used else ''}."))
    if unnamed := _unnamed(processes, card):  # in the last line: nothing moves if it comes
        notices[-1] = Notice(f"{notices[-1].sentence} {unnamed}", notices[-1].tone)
    return notices


def program_notice(
    title: str,
    of_one: Sequence[GpuProcess],
    card: CardState,
    *,
    is_mine: bool = False,
    on: str = "",
) -> Notice:
    """Return the sentence of a program; this one's own is never what slows others down.

    Args:
        title: what it is called.
        of_one: its processes on the card.
        card: the card.
        is_mine: whether it is this program.
        on: the card's name, where nothing beside the sentence says it.
    """
    computes, busy = any("compute" in one.kind for one in of_one), _busy(of_one)
    spilled, memory = card.spilled_bytes(of_one), _memory(of_one) or 0
    sentence = f"{title} {_doing(of_one, on)}{_shared_words(of_one, spilled)}"
    unknown = "; its load is not known" if busy is None else ""
    if spilled:
        end = ", so it is slow" if busy is not None and busy >= _IDLE_PERCENT else ""
        return Notice(f"{sentence}{end}{unknown}.", Tone.AMBER)
    if not computes or is_mine:
        return Notice(f"{sentence}{unknown}.")
    if card.better and (busy or 0) >= _IDLE_PERCENT and not _is_on(of_one, card.on_better):
        return Notice(f"{sentence}. It does not use the {card.better}.", Tone.AMBER)
    if (busy or 0) >= _BUSY_PERCENT:
        return Notice(f"{sentence}. What else you run on it is slower.", Tone.AMBER)
    if card.total_bytes and memory > _LARGE_SHARE * card.total_bytes:
        return Notice(f"{sentence}, more than half of the card{unknown}.", Tone.AMBER)
    return Notice(f"{sentence}{unknown}.")


def _doing(of_one: Sequence[GpuProcess], on: str) -> str:
    """Return what it does and with which memory: “computes: 83 % of the last 10 s, 4.1 GiB”."""
    draws = any("graphics" in one.kind for one in of_one)
    computes = any("compute" in one.kind for one in of_one)
    busy, over_s = _busy(of_one), max(one.busy_over_s for one in of_one)
    memory, span = _size(of_one), f"the last {over_s:.0f} s"
    place = f" on the {on}" if on else ""
    held = memory or "memory of unknown size"
    if busy is not None and busy < _IDLE_PERCENT:
        return f"did nothing{place} in {span} and holds {held}"
    both = draws == computes
    does = f"uses the {on or 'card'}" if both else f"{'draws' if draws else 'computes'}{place}"
    if busy is None:
        purpose = "" if both else " to draw" if draws else " to compute"
        return f"has {held}{place}{purpose}"
    of_memory = memory and on and f"{memory} of its memory"
    figures = (f"{busy:.0f}\u202f% of {span}", of_memory or memory or held)
    return f"{does}: {', '.join(figures)}"


def _shared_words(of_one: Sequence[GpuProcess], spilled: int) -> str:
    if spilled:
        return f" and {format_bytes(spilled)} spilled into RAM"
    shared = sum(one.shared_bytes or 0 for one in of_one)
    return f" and {format_bytes(shared)} of the PC's RAM" if shared >= _LEAST_SPILL_BYTES else ""


def _unnamed(processes: Sequence[GpuProcess], card: CardState) -> str:
    """Return a sentence about memory that no listed program has; empty if there is none."""
    held = [one.memory_bytes for one in processes]
    if not processes or card.used_bytes is None or not card.total_bytes or None in held:
        return ""
    rest = card.used_bytes - sum(size or 0 for size in held)
    least = max(_LEAST_UNNAMED_BYTES, _LEAST_UNNAMED_SHARE * card.total_bytes)
    if rest < least:
        return ""
    return f"{format_bytes(rest)} more are the system's or hidden programs'."


def spill_notice(
    processes: Sequence[GpuProcess], own: Mapping[int, str], card: CardState
) -> Notice | None:
    """Return the sentence about what spilled into RAM; None if nothing did."""
    found = {
        title: size
        for title, of_one in by_program(processes, own).items()
        if (size := card.spilled_bytes(of_one))
    }
    if not found:
        return None
    title, most = max(found.items(), key=lambda one: one[1])
    others = f", {len(found) - 1} more did too" if len(found) > 1 else ""
    sentence = f"{title} spilled {format_bytes(most)} into the PC's RAM{others}."
    return Notice(f"{sentence} It is slow until the card has room.", Tone.AMBER)


def memory_by_program(
    processes: Iterable[GpuProcess], most: int, own: Collection[int] = ()
) -> list[tuple[str, int]]:
    """Return programs with their bytes, the largest first; the driver may report none.

    Args:
        processes: all processes on the card.
        most: how many are named; the others are one last row.
        own: processes that are left out.
    """
    others = [one for one in processes if one.pid not in own and one.memory_bytes]
    ranked = [(title, _memory(of_one) or 0) for title, of_one in by_program(others, {}).items()]
    named, rest = ranked[:most], ranked[most:]
    if rest:
        named.append((f"{len(rest)} others", sum(size for _, size in rest)))
    return named


def _memory(processes: Sequence[GpuProcess]) -> int | None:
    known = [one.memory_bytes for one in processes if one.memory_bytes is not None]
    return sum(known) if known else None


def _size(processes: Sequence[GpuProcess]) -> str:
    memory = _memory(processes)
    return "" if memory is None else format_bytes(memory)


def _busy(processes: Sequence[GpuProcess]) -> float | None:
    known = [one.busy_percent for one in processes if one.busy_percent is not None]
    return min(100.0, sum(known)) if known else None


def _is_on(processes: Sequence[GpuProcess], there: Collection[int]) -> bool:
    return any(one.pid in there for one in processes)


def do_others_compute(processes: Sequence[GpuProcess], own_pid: int) -> bool | None:
    """Return whether another process computes on a card that this one uses; None if unknown.

    Programs that also draw do not count: Windows lists its whole desktop as both. In a container,
    the driver reports the host's process ids, and this process is among them.
    """
    if not any("compute" in one.kind for one in processes):
        return None
    others = [one for one in processes if one.kind == "compute" and one.pid != own_pid]
    return len(others) > (0 if _is_listed(processes, own_pid) else 1)


def busiest_other(processes: Sequence[GpuProcess], own_pid: int) -> int | None:
    """Return the process that worked most in the last second, or else the only other one listed.

    A game and a desktop count here. The driver does not tell the parts of processes for every card
    and system. In a container, its numbers are the host's, which name other processes here.
    """
    has_computing = any("compute" in one.kind for one in processes)
    if has_computing and not _is_listed(processes, own_pid):
        return None
    others = [one for one in processes if one.pid != own_pid]
    busiest = max(others, key=lambda one: one.busy_percent or 0.0, default=None)
    if busiest is not None and (busiest.busy_percent or len(others) == 1):
        return busiest.pid
    return None


def _is_listed(processes: Sequence[GpuProcess], pid: int) -> bool:
    return any(one.pid == pid for one in processes)
