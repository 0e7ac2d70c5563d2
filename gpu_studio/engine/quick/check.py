"""The check of an adapter: shaders write patterns and compare them, and compute again and again.

Words of 32 bits are made and compared on the adapter itself; see `check.tested_memory`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import psutil

from gpu_studio.core.check.stages import is_enough, ram_bytes, reserve_bytes
from gpu_studio.core.device_name import CPU
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.failure import StudioError, failure_from
from gpu_studio.core.messages.check_messages import CheckedDevice, MemoryCoverage
from gpu_studio.core.units import format_bytes, format_count
from gpu_studio.engine.check.stage_run import StageRun
from gpu_studio.engine.check.staged_round import StagedRound
from gpu_studio.engine.check.tested_memory import MemoryUnderTest
from gpu_studio.engine.quick import shaders
from gpu_studio.engine.quick.compute import AdapterLostError, BoundShader, Compute
from gpu_studio.engine.quick.work import QUICK_WORKS, AdapterCall

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.core.messages.message import Event

    Words = NDArray[np.uint32]
    Stage = Callable[[Any], Generator[str, None, bool]]

_MIB = 1 << 20
_LARGEST_PART, _LARGEST_RAM_PART = 128 * _MIB, 8 * _MIB
_MOST_RAM = 256 * _MIB
"""Of a software adapter, which is slow: RAM has its own check."""
_PATTERNS = ("addresses", "random words", "walking ones")
_SIZES = {"matmul": 192, "elementwise": 256, "copy": 1, "launch": 1}
_BATCH = 4


class AdapterRun(StageRun):
    """A stage on an adapter; see `stage_run.StageRun`. ``device`` is the adapter."""

    device: Any

    @property
    def is_card(self) -> bool:
        return not self.device.adapter.is_software

    @property
    def subject(self) -> str:
        return "card" if self.is_card else "software adapter"


class QuickCheck(StagedRound):
    """A round of a check on an adapter; see `staged_round.StagedRound`.

    Attributes:
        open_adapter: opens the request's adapter.
    """

    open_adapter: Callable[[str], Compute]
    _compute: Compute | None = None

    def events(self) -> Iterator[Event]:
        """Yield the events of the round; a failure of the driver is a sentence."""
        try:
            yield from super().events()
        except Exception as error:
            if self._compute is None:  # it could not be opened, and the error says why
                raise
            raise self._compute.explained(error) from error

    def _opened(self) -> CheckedDevice:
        self._compute = self.open_adapter(self._request.device)
        adapter = self._compute.adapter
        self._uuid = f"{adapter.vendor_id:x}:{adapter.device_id:x} {adapter.name} {adapter.driver}"
        return CheckedDevice(
            address=adapter.address,
            name=adapter.title,
            driver_version=adapter.driver or None,
            memory_total_bytes=psutil.virtual_memory().total if adapter.is_software else None,
            is_software=adapter.is_software,
            untested="" if adapter.is_software else untested_sentence("other"),
        )

    def _failure_of(self, error: Exception) -> Failure:
        explained = self._target.explained(error)
        is_lost = isinstance(explained, AdapterLostError)
        return msgspec.structs.replace(failure_from(explained), fatal=is_lost)

    @property
    def _identity(self) -> str | None:
        return CPU if self._target.adapter.is_software else self._target.card

    @property
    def _target(self) -> Compute:
        assert self._compute is not None
        return self._compute

    def _new_run(self, name: StageName, planned_s: float) -> StageRun:
        request = self._request
        target: Any = self._target
        return AdapterRun(
            name, target, planned_s, plant_kind=request.plant, stop=self._stop,
            read=self._read, clock=self._clock, seed=request.round, facts=self._facts,
            offset_s=self._elapsed_s,
        )  # fmt: skip


# ── compute ──────────────────────────────────────────────────────────────────────────────────────


def compute(run: AdapterRun) -> Generator[str, None, bool]:
    """Compute again and again, and compare each result with NumPy's; a stage."""
    run.vitals(at_once=True)
    calls: list[tuple[str, AdapterCall]] = []
    try:
        for work, turn in itertools.product(QUICK_WORKS, (0, 1)):
            size = _SIZES[work.description.name]
            operands = work.operands(size, "float32")
            # Two results of a kind differ: a stale one shows.
            operands = [*(np.roll(one, turn) for one in operands[:-1]), operands[-1]]
            call = AdapterCall(work, operands, run.device, size, "float32")
            calls.append((work.description.name, call))
        for checked, (name, call) in enumerate(itertools.cycle(calls), 1):
            yield f"Computing {name}"
            call.time(None, _BATCH)
            found = call.result().copy()
            run.plant.corrupt(found, key=name)
            answer = call.verified(found)
            if lost := call.missing() or ("" if answer.verified else answer.sentence):
                run.report("wrong_result", "error", f"A wrong result of {name}: {lost}.")
            run.tested = f"{format_count(checked)} results of {len(QUICK_WORKS)} kinds of work"
            has_all = checked >= 2 * len(calls)
            if run.is_over(has_tested_all=has_all):
                return has_all and not run.is_stopped
    finally:
        for _, call in calls:
            call.close()
    return False


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def memory(run: AdapterRun) -> Generator[str, None, bool]:
    """Test as much memory as the driver gives, or a part of the RAM of a software adapter."""
    run.vitals(at_once=True)
    parts = MemoryParts(run)
    try:
        yield from parts.taken()
        yield from parts.every_pass()
    finally:
        parts.close()
    has_enough = not run.is_card or (run.coverage is not None and is_enough(run.coverage))
    return parts.passes > 0 and has_enough and not run.is_stopped


class ShaderPattern(NamedTuple):
    """A pattern by its number in the shaders; see `shaders.PATTERN_WRITE`."""

    title: str
    kind: int
    is_inverse: bool


class MemoryParts(MemoryUnderTest[ShaderPattern]):
    """The memory that a driver gives, in buffers of words of 32 bits."""

    patterns = tuple(
        ShaderPattern(f"{'inverted ' * inverse}{title}", kind, bool(inverse))
        for kind, title in enumerate(_PATTERNS)
        for inverse in (0, 1)
    )
    second_look = "they were copied"

    def __init__(self, run: AdapterRun) -> None:
        largest = _LARGEST_PART if run.is_card else _LARGEST_RAM_PART
        super().__init__(run, min(largest, run.device.adapter.largest_buffer_bytes // 8 * 8))
        self._compute: Compute = run.device
        available = self._available_bytes = int(psutil.virtual_memory().available)
        # What a driver cannot keep in a card's memory goes to the RAM.
        self._most_bytes = available // 2 if run.is_card else min(ram_bytes(available), _MOST_RAM)
        self._reserve_bytes = reserve_bytes(self._most_bytes) if run.is_card else 0
        self._what = self._compute.buffer(np.zeros(4, np.uint32))
        self._wrong = self._compute.buffer(16)
        self._bound: list[tuple[BoundShader, BoundShader]] = []

    def taken(self) -> Iterator[str]:
        """Take the memory, and yield after each part."""
        words = self._chunk_bytes // 4
        while (len(self.chunks) + 1) * self._chunk_bytes <= self._most_bytes - self._reserve_bytes:
            try:
                buffer = self._compute.buffer(self._chunk_bytes)
                groups = -(-words // shaders.GROUP)
                pair = tuple(
                    BoundShader(self._compute, code, [self._what, buffer, *others], groups)
                    for code, others in (
                        (shaders.PATTERN_WRITE, []), (shaders.PATTERN_READ, [self._wrong]),
                    )
                )  # fmt: skip
                # Only used memory is really there.
                self._compute.submit([pair[0]])
                self._compute.device.queue.on_submitted_work_done_sync()
            except Exception as error:
                if isinstance(self._compute.explained(error), AdapterLostError):
                    raise
                if isinstance(error, StudioError) or self._compute.is_own(error):
                    return
                raise
            self.chunks.append(buffer)
            self._bound.append(pair)  # type: ignore[arg-type]
            yield "Taking memory"
            if self._run.elapsed_s > self._run.planned_s / 4:
                return

    def tell(self) -> None:
        tested, taken, run = self._tested_bytes, len(self.chunks) * self._chunk_bytes, self._run
        if not run.is_card:
            total = int(psutil.virtual_memory().total)
            run.coverage = MemoryCoverage(
                tested_bytes=tested, free_bytes=self._available_bytes,
                total_bytes=max(total, tested),
                reserve_bytes=max(0, self._available_bytes - taken),
            )  # fmt: skip
        run.tested = (
            f"{format_bytes(tested)} of {format_bytes(taken)} that the driver gave, "
            f"{self._patterns_text}"
        )

    def close(self) -> None:
        """Give the memory back."""
        for buffer in (*self.chunks, self._what, self._wrong):
            buffer.destroy()
        self.chunks = []

    def _ask(self, pattern: ShaderPattern, number: int) -> None:
        """Say which pattern follows, for which part."""
        first = number * (self._chunk_bytes // 4) & 0xFFFFFFFF
        inverse = 0xFFFFFFFF * pattern.is_inverse
        what = np.array([pattern.kind, first, self._seed, inverse], np.uint32)
        self._compute.device.queue.write_buffer(self._what, 0, what)

    def _write(self, pattern: ShaderPattern, number: int) -> None:
        plant = self._run.plant
        before = self._seen(number) if plant.kind is not None else None
        self._ask(pattern, number)
        self._compute.submit([self._bound[number][0]])
        self._compute.device.queue.on_submitted_work_done_sync()
        if before is not None:
            now = self._seen(number)
            plant.corrupt(now, before=before)
            self._compute.device.queue.write_buffer(self.chunks[number], 0, now)

    def _count_by_device(self, pattern: ShaderPattern, number: int) -> int:
        self._ask(pattern, number)
        self._compute.device.queue.write_buffer(self._wrong, 0, np.zeros(4, np.uint32))
        self._compute.submit([self._bound[number][1]])
        return int(self._compute.read(self._wrong, "uint32")[0])

    def _seen(self, number: int, last: int = 0) -> Words:
        words: Words = self._compute.read(self.chunks[number], "uint32")[-last:].copy()
        return words

    def _put_last(self, number: int, words: Words) -> None:
        offset = self._chunk_bytes - words.nbytes
        self._compute.device.queue.write_buffer(self.chunks[number], offset, words)

    def _known(self, pattern: ShaderPattern, number: int, last: int = 0) -> Words:
        """Return the words of a part, by NumPy; see `shaders.PATTERN_WRITE`."""
        words = self._chunk_bytes // 4
        first = (number + 1) * words - last if last else number * words
        place: Words = np.arange(last or words, dtype=np.uint32) + np.uint32(first & 0xFFFFFFFF)
        seed = np.uint32(self._seed)
        if pattern.kind == 1:
            place += np.uint32(self._seed * 2654435761 & 0xFFFFFFFF)
            for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
                place ^= place >> np.uint32(shift)
                place *= np.uint32(factor)
            place ^= place >> np.uint32(16)
        elif pattern.kind == 2:
            shift_by = place + (place >> np.uint32(5)) + seed
            place = np.uint32(1) << (shift_by & np.uint32(31))
        return ~place if pattern.is_inverse else place

    @property
    def _seed(self) -> int:
        return (self._run.seed + self.passes) & 0xFFFF


QuickCheck.stages = {"compute": compute, "memory": memory}
