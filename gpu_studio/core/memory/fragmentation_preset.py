"""The experiment ``fragmentation``: memory enough is free, and yet a tensor does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.memory_bench import ALLOCATED, FREED, FULL, HELD
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Generator

    from gpu_studio.core.memory.memory_bench import Bench
    from gpu_studio.core.messages.memory_messages import StageBegan

    Moments = Generator[str | StageBegan, None, None]

_MIB = 1 << 20
_PAGE_BYTES = 2 * _MIB
_PIN_BYTES = 8 * _MIB
_PARTS = 7
_LEAST_ROOM_BYTES = 224 * _MIB


def fragmentation(bench: Bench) -> Moments:
    """End with one part of seven free at the driver, and six large holes that are pinned.

    A tensor of two parts is then smaller than what is free. With expandable segments the holes'
    pages go back to the driver, and it fits.
    """
    if bench.room_bytes < _LEAST_ROOM_BYTES:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"This experiment needs {format_bytes(_LEAST_ROOM_BYTES)}, and "
            f"{format_bytes(bench.room_bytes)} are allowed.",
        )
    part_bytes = bench.room_bytes // _PARTS // _PAGE_BYTES * _PAGE_BYTES
    pins: list[object] = []
    yield bench.begin("scattering", "Small tensors settle in the front of freed large ones.")
    if not (yield from _scattered(bench, part_bytes, pins)):
        return
    bench.note_stage("scattering", f"{len(pins)} small tensors are left, one in each segment.")
    yield bench.begin("asking", f"Now a tensor of {format_bytes(2 * part_bytes)} is asked for.")
    last = bench.take(2 * part_bytes)
    yield FULL if last is None else HELD


def _scattered(bench: Bench, part_bytes: int, pins: list[object]) -> Generator[str, None, bool]:
    """Leave a small tensor in the front of each part; returns whether there was memory for it.

    The rests hold the holes until the end, so that every part is a segment of its own.
    """
    rests: list[object] = []
    for _ in range(_PARTS - 1):
        for kept, size_bytes in (
            (None, part_bytes),
            (pins, _PIN_BYTES),
            (rests, part_bytes - _PIN_BYTES),
        ):
            tensor = bench.take(size_bytes)
            if tensor is None:
                yield FULL
                return False
            yield ALLOCATED
            if kept is None:
                del tensor
                bench.drop()
                yield FREED
            else:
                kept.append(tensor)
                del tensor
    bench.drop(len(rests))
    rests.clear()
    yield FREED
    return True
