"""The check of an adapter: shaders write patterns and compare them, and compute again and again.

Words of 32 bits are made and compared on the adapter itself. With each pattern it has to notice
wrong words that were put at the end of a part on purpose; if it misses one, NumPy compares.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import psutil

from gpu_studio.core.check.stages import is_enough, ram_bytes, reserve_bytes
from gpu_studio.core.device_name import CPU
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.failure import StudioError, failure_from
from gpu_studio.core.messages.check_messages import CheckedDevice, MemoryCoverage
from gpu_studio.core.units import format_bytes, format_count
from gpu_studio.engine.check.stage_run import Plant, StageRun
from gpu_studio.engine.check.staged_round import StagedRound
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
_PROOF_WORDS = 32
_REST_SHARE, _LONGEST_REST_S, _LOOK_S = 0.12, 15.0, 0.25
_SIZES = {"matmul": 192, "elementwise": 256, "copy": 1, "launch": 1}
_BATCH = 4


class AdapterRun(StageRun):
    """A stage on an adapter; see `stage_run.StageRun`. ``device`` is the adapter."""

    device: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plant = ArrayPlant(self.plant_kind)

    @property
    def is_card(self) -> bool:
        return not self.device.adapter.is_software

    @property
    def subject(self) -> str:
        return "card" if self.is_card else "software adapter"


class ArrayPlant(Plant):
    """Makes faults in arrays of NumPy; see `stage_run.Plant`."""

    def corrupt(  # type: ignore[override]
        self, now: NDArray[Any], key: object = None, before: NDArray[Any] | None = None
    ) -> None:
        """Change what came back, in place; see `Plant.corrupt`."""
        if self.kind is None:
            return
        if key is not None:
            before, self._before[key] = self._before.get(key), now.copy()  # type: ignore[assignment]
        flat = now.reshape(-1).view(np.uint8)
        old = np.zeros_like(flat) if before is None else before.reshape(-1).view(np.uint8)
        count = len(flat) // 16 * 4  # a quarter, in whole words
        if self.kind == "bit":
            flat[len(flat) // 3] ^= 1 << 3
        elif self.kind == "stuck" and before is not None:
            flat[:] = old
        elif self.kind == "swap":
            flat[:count], flat[-count:] = flat[-count:].copy(), flat[:count].copy()
        elif self.kind == "drop":
            flat[count : 2 * count] = old[count : 2 * count]


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
        while parts.buffers and not parts.is_over:
            for doing in parts.one_pass():
                parts.tell()
                yield doing
            parts.tell()
    finally:
        parts.close()
    has_enough = not run.is_card or (run.coverage is not None and is_enough(run.coverage))
    return parts.passes > 0 and has_enough and not run.is_stopped


class MemoryParts:
    """The buffers under test and the patterns in them.

    Attributes:
        passes: how often every pattern was written and read.
    """

    def __init__(self, run: AdapterRun) -> None:
        self._run, self._compute = run, run.device
        self.buffers: list[Any] = []
        self.passes = self._done = 0
        self._verified: set[int] = set()
        self._is_blind = False
        largest = _LARGEST_PART if run.is_card else _LARGEST_RAM_PART
        self._part_bytes = min(largest, run.device.adapter.largest_buffer_bytes // 4 * 4)
        available = self._available_bytes = int(psutil.virtual_memory().available)
        # What a driver cannot keep in a card's memory goes to the RAM.
        self._most_bytes = available // 2 if run.is_card else min(ram_bytes(available), _MOST_RAM)
        self._reserve_bytes = reserve_bytes(self._most_bytes) if run.is_card else 0
        self._what = self._compute.buffer(np.zeros(4, np.uint32))
        self._wrong = self._compute.buffer(16)
        self._bound: list[tuple[BoundShader, BoundShader]] = []

    @property
    def is_over(self) -> bool:
        return self._run.is_over(has_tested_all=self.passes > 0)

    def taken(self) -> Iterator[str]:
        """Take the memory, and yield after each part."""
        words = self._part_bytes // 4
        while (len(self.buffers) + 1) * self._part_bytes <= self._most_bytes - self._reserve_bytes:
            try:
                buffer = self._compute.buffer(self._part_bytes)
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
            self.buffers.append(buffer)
            self._bound.append(pair)  # type: ignore[arg-type]
            yield "Taking memory"
            if self._run.elapsed_s > self._run.planned_s / 4:
                return

    def tell(self) -> None:
        """Say what was tested so far."""
        tested = len(self._verified) * self._part_bytes
        taken, run = len(self.buffers) * self._part_bytes, self._run
        if not run.is_card:
            total = int(psutil.virtual_memory().total)
            run.coverage = MemoryCoverage(
                tested_bytes=tested, free_bytes=self._available_bytes,
                total_bytes=max(total, tested),
                reserve_bytes=max(0, self._available_bytes - taken),
            )  # fmt: skip
        done = min(self._done, 2 * len(_PATTERNS))
        times = f", {format_count(self.passes)} times" if self.passes > 1 else ""
        run.tested = (
            f"{format_bytes(tested)} of {format_bytes(taken)} that the driver gave, {done} of "
            f"{2 * len(_PATTERNS)} patterns{times}"
        )

    def close(self) -> None:
        """Give the memory back."""
        for buffer in (*self.buffers, self._what, self._wrong):
            buffer.destroy()
        self.buffers = []

    def one_pass(self) -> Iterator[str]:
        """Write and read every pattern once; yield after each part what was done, in words."""
        for kind, inverse in itertools.product(range(len(_PATTERNS)), (0, 1)):
            title = f"{'inverted ' * inverse}{_PATTERNS[kind]}"
            numbers = range(len(self.buffers))
            in_order = numbers[::-1] if inverse else numbers
            for number in in_order:
                if self.is_over:
                    return
                self._write(kind, inverse, number)
                yield f"Writing {title}"
            if not self._is_blind and not self._notices(kind, inverse):
                self._is_blind = True
                self._run.report(
                    "blind", "doubt",
                    f"The {self._run.subject} does not notice each wrong word that was put into "
                    f"its memory on purpose, with {title}, so NumPy compared the words.",
                )  # fmt: skip
            yield from self._rest()
            for number in in_order:
                if self.is_over:
                    break
                self._read(kind, inverse, number, title)
                yield f"Reading {title}"
            else:
                self._done += 1
        self.passes += 1

    def _rest(self) -> Iterator[str]:
        """Let the first words rest before they are read: weak cells fade."""
        run = self._run
        if self._done or self.passes:
            return
        end_s = run.elapsed_s + min(_LONGEST_REST_S, _REST_SHARE * run.planned_s)
        while run.elapsed_s < end_s and not run.is_stopped:
            run.rest(_LOOK_S)
            yield "A rest before the words are read"

    def _ask(self, kind: int, inverse: int, number: int) -> None:
        """Say which pattern follows, for which part."""
        first = number * (self._part_bytes // 4) & 0xFFFFFFFF
        what = np.array([kind, first, self._seed, 0xFFFFFFFF * inverse], np.uint32)
        self._compute.device.queue.write_buffer(self._what, 0, what)

    def _write(self, kind: int, inverse: int, number: int) -> None:
        plant, buffer = self._run.plant, self.buffers[number]
        before = self._compute.read(buffer, "uint32").copy() if plant.kind is not None else None
        self._ask(kind, inverse, number)
        self._compute.submit([self._bound[number][0]])
        self._compute.device.queue.on_submitted_work_done_sync()
        if before is not None:
            now = self._compute.read(buffer, "uint32").copy()
            plant.corrupt(now, before=before)
            self._compute.device.queue.write_buffer(buffer, 0, now)

    def _count_wrong(self, kind: int, inverse: int, number: int) -> int:
        """Return the wrong words of a part, counted where they are compared."""
        if self._is_blind:
            seen = self._compute.read(self.buffers[number], "uint32")
            return int(np.count_nonzero(seen != self._known(kind, inverse, number)))
        self._ask(kind, inverse, number)
        self._compute.device.queue.write_buffer(self._wrong, 0, np.zeros(4, np.uint32))
        self._compute.submit([self._bound[number][1]])
        return int(self._compute.read(self._wrong, "uint32")[0])

    def _read(self, kind: int, inverse: int, number: int, title: str) -> None:
        """Report the wrong bits of a part, if there are any."""
        counted = self._count_wrong(kind, inverse, number)
        self._verified.add(number)
        if not counted:
            return
        self._run.report_wrong_bits(
            "memory",
            title,
            self._compute.read(self.buffers[number], "uint32").copy().view(np.int64),
            self._known(kind, inverse, number).view(np.int64),
            number * self._part_bytes,
            counted=counted,
            second_look="they were copied",
        )

    def _notices(self, kind: int, inverse: int) -> bool:
        """Return whether the last words of the first part are counted if each has a wrong bit."""
        buffer, offset = self.buffers[0], self._part_bytes - 4 * _PROOF_WORDS
        known = self._known(kind, inverse, 0)[-_PROOF_WORDS:]
        before = self._compute.read(buffer, "uint32")[-_PROOF_WORDS:].copy()
        after = before ^ np.left_shift(np.uint32(1), np.arange(_PROOF_WORDS, dtype=np.uint32))
        clean = self._count_wrong(kind, inverse, 0)
        self._compute.device.queue.write_buffer(buffer, offset, after)
        counted = self._count_wrong(kind, inverse, 0)
        self._compute.device.queue.write_buffer(buffer, offset, before)
        more = np.count_nonzero(after != known) - np.count_nonzero(before != known)
        return bool(counted - clean == more)

    def _known(self, kind: int, inverse: int, number: int) -> Words:
        """Return the words of a part, by NumPy; see `shaders.PATTERN_WRITE`."""
        words = self._part_bytes // 4
        first = number * words & 0xFFFFFFFF
        place: Words = np.arange(words, dtype=np.uint32) + np.uint32(first)
        seed = np.uint32(self._seed)
        if kind == 1:
            place += np.uint32(self._seed * 2654435761 & 0xFFFFFFFF)
            for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
                place ^= place >> np.uint32(shift)
                place *= np.uint32(factor)
            place ^= place >> np.uint32(16)
        elif kind == 2:
            shift_by = place + (place >> np.uint32(5)) + seed
            place = np.uint32(1) << (shift_by & np.uint32(31))
        return ~place if inverse else place

    @property
    def _seed(self) -> int:
        return (self._run.seed + self.passes) & 0xFFFF


QuickCheck.stages = {"compute": compute, "memory": memory}
