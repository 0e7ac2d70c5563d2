"""Memory: patterns are written to all free memory less a reserve, and read again.

Words are made and compared on the card itself: most errors of old cards are errors of the transfer.
See `tested_memory`.

No chunk has more than 2^27 words: PyTorch 2.11 to 2.14 leave zeros behind element 2^32 of `arange`
on a card (pytorch/pytorch issue 197673).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import torch

from gpu_studio.core.check.stages import is_enough, ram_bytes, reserve_bytes
from gpu_studio.core.messages.check_messages import MemoryCoverage
from gpu_studio.core.units import format_bytes, format_count, format_percent
from gpu_studio.engine.check.tested_memory import MemoryUnderTest
from gpu_studio.engine.device import accelerator_of, free_bytes, total_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray

    from gpu_studio.core.messages.check_messages import Severity
    from gpu_studio.engine.check.stage_run import StageRun

    Words = NDArray[np.int64]

_MIB = 1 << 20
_WORD_BYTES = 8
_SMALLEST_CHUNK, _LARGEST_CHUNK = 4 * _MIB, 256 * _MIB
_CHUNKS = 128
# A slow CPU makes, writes and compares a larger one in more than a second.
_LARGEST_RAM_CHUNK = 8 * _MIB
_FEWEST_RAM_CHUNKS = 3
# Of the stage's time, for the first pass over RAM: other programs may take the rest.
_FIRST_PASS_SHARE = 0.6
# Places, expected words, and a spare.
_SCRATCH_CHUNKS = 3
# Counting makes a byte per word. PyTorch takes at least 20 MiB for that, and 2 MiB for the sum.
_COUNTING_BYTES = 22 * _MIB
_PROOF_WORDS = 64  # one for each bit
# An address is in both halves of its word: 8 · (2^32 + 1) is odd but for the 8.
_BOTH_HALVES = _WORD_BYTES * ((1 << 32) + 1)
_SEED_STEP = 0x9E3779B9
_ONE_IN_EIGHT = 0x0101010101010101
# 1 + 1/8 + 1/64 + 1/512 steps for each 1 KiB: rows of 1 KiB to 1 MiB are no multiple of 8 steps.
_ROW_SHIFT, _ROW_STEPS = 7, 512 + 64 + 8 + 1
# SplitMix64 (Sebastiano Vigna, public domain): its two multipliers, as signed numbers.
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64)


class Pattern(NamedTuple):
    """The words of a pattern; ``is_inverse``: every bit is the other way round."""

    title: str
    make: Callable[[Any, Any, Any, int], None]
    is_inverse: bool = False

    def fill(self, places: Any, out: Any, spare: Any, seed: int) -> None:
        """Write the words of places in the memory to ``out``, by PyTorch or by numpy; all int64."""
        self.make(places, out, spare, seed)
        if self.is_inverse:
            out ^= -1


def _address(places: Any, out: Any, _spare: Any, _seed: int) -> None:
    out[:] = places
    out *= _BOTH_HALVES


def _walking(places: Any, out: Any, spare: Any, seed: int) -> None:
    # A one in eight bits, moved on by one with each word, each row and each pass.
    spare[:] = places
    spare >>= _ROW_SHIFT
    spare *= _ROW_STEPS
    spare >>= _ROW_SHIFT + 2
    spare += places
    spare += seed
    spare &= 7
    out[:] = _ONE_IN_EIGHT
    out <<= spare


def _random(places: Any, out: Any, spare: Any, seed: int) -> None:
    out[:] = places
    out += seed * _SEED_STEP
    for multiplier in (_MIX_1, _MIX_2):
        spare[:] = out
        spare >>= 29
        out ^= spare
        out *= multiplier


# The one that finds most comes first: an address finds words in the wrong place as well.
PATTERNS: tuple[Pattern, ...] = (
    Pattern("addresses", _address), Pattern("inverted addresses", _address, is_inverse=True),
    Pattern("random words", _random), Pattern("inverted random words", _random, is_inverse=True),
    Pattern("walking ones", _walking), Pattern("walking zeros", _walking, is_inverse=True),
)  # fmt: skip


def memory(run: StageRun, most_bytes: int | None = None) -> Generator[str, None, bool]:
    """Test all free memory of a card, or as much RAM as there is time for; a stage, see `StageRun`.

    ``most_bytes`` is a smaller limit.
    """
    run.vitals(at_once=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on a busy PC, threads wait for each other
    try:
        words = TestedMemory(run, most_bytes)
        try:
            yield from words.every_pass()
        finally:
            words.release()
    finally:
        torch.set_num_threads(threads)
    run.vitals(at_once=True)
    _report_ecc_errors(run)
    is_part = run.is_card and (run.coverage is None or not is_enough(run.coverage))
    has_enough = most_bytes is not None or not is_part
    return words.passes > 0 and has_enough and not run.is_stopped


class TestedMemory(MemoryUnderTest[Pattern]):
    """The memory of a card, or a part of the RAM, in tensors of int64."""

    __test__ = False  # not a test
    patterns = PATTERNS
    second_look = "it read them once more"

    def __init__(self, run: StageRun, most_bytes: int | None = None) -> None:
        accelerator_of(run.device).empty_cache()
        free = free_bytes(run.device)
        reserve = reserve_bytes(free) if run.is_card else free - ram_bytes(free)
        wanted = min(max(0, free - reserve), most_bytes or free)
        size, largest = _SMALLEST_CHUNK, _LARGEST_CHUNK if run.is_card else _LARGEST_RAM_CHUNK
        while size < largest and size * _CHUNKS < wanted:
            size *= 2
        self._before = MemoryCoverage(
            tested_bytes=0, free_bytes=free, total_bytes=total_bytes(run.device),
            reserve_bytes=reserve,
        )  # fmt: skip
        super().__init__(run, size)
        self._words = size // _WORD_BYTES
        self._places = torch.arange(self._words, dtype=torch.int64, device=run.device)
        self._expected, self._spare = (torch.empty_like(self._places) for _ in range(2))
        # The words to compare with need memory, too.
        counting = max(self._words, _COUNTING_BYTES) if run.is_card else size
        count = (wanted - counting) // size - _SCRATCH_CHUNKS
        if not run.is_card and most_bytes is None:
            self.add_chunks(min(count, 1))
            count = min(count, self._count_in_time())
        self.add_chunks(count)

    def add_chunks(self, count: int) -> None:
        """Allocate chunks, as many as there is memory for."""
        while len(self.chunks) < count and not self._run.is_stopped:
            try:
                chunk = torch.empty(self._words, dtype=torch.int64, device=self._run.device)
            except torch.OutOfMemoryError:
                return
            self.chunks.append(chunk)

    def _count_in_time(self) -> int:
        """Return how many chunks one pass covers in the stage's time, from the time of the first.

        RAM is larger than a CPU can test in a short check, and half a pass has no verdict.
        """
        if not self.chunks:
            return 0
        begun_s = self._run.elapsed_s
        for pattern in PATTERNS:
            self._write(pattern, 0)
            self._count_wrong(pattern, 0)
        one_s = max(self._run.elapsed_s - begun_s, 1e-6)
        room_s = _FIRST_PASS_SHARE * self._run.planned_s - self._run.elapsed_s
        return max(int(room_s / one_s), _FEWEST_RAM_CHUNKS)

    def tell(self) -> None:
        """Say what was tested so far."""
        free, tested_bytes = self._before.free_bytes, self._tested_bytes
        self._run.coverage = msgspec.structs.replace(self._before, tested_bytes=tested_bytes)
        share = format_percent(tested_bytes / max(free, 1))
        self._run.tested = (
            f"{format_bytes(tested_bytes)} of {'VRAM' if self._run.is_card else 'RAM'}, {share} of "
            f"the free {format_bytes(free)}, {self._patterns_text}"
        )

    def release(self) -> None:
        """Give the memory back."""
        self.chunks.clear()
        self._places = self._expected = self._spare = torch.empty(0)
        accelerator_of(self._run.device).empty_cache()

    def _write(self, pattern: Pattern, number: int) -> None:
        chunk, plant = self.chunks[number], self._run.plant
        before = chunk.to("cpu", copy=True) if plant.kind is not None else None
        self._make(pattern, number)
        chunk.copy_(self._expected)
        self._run.synchronize()
        if self._patterns_done:
            plant.corrupt(chunk, before=before)

    def _make(self, pattern: Pattern, number: int) -> None:
        """Make the words of a chunk, where they are compared."""
        if self._is_blind:
            self._expected.copy_(torch.from_numpy(self._known(pattern, number)))
            return
        first = number * self._words
        self._places.add_(first)
        pattern.fill(self._places, self._expected, self._spare, self._seed)
        self._places.sub_(first)

    def _count_by_device(self, pattern: Pattern, number: int) -> int:
        self._make(pattern, number)
        self._expected.bitwise_xor_(self.chunks[number])
        return int(torch.count_nonzero(self._expected))

    def _seen(self, number: int, last: int = 0) -> Words:
        words: Words = self.chunks[number][-last:].to("cpu", copy=True).numpy()
        return words

    def _known(self, pattern: Pattern, number: int, last: int = 0) -> Words:
        first, end = number * self._words, (number + 1) * self._words
        places = np.arange(end - last if last else first, end, dtype=np.int64)
        out, spare = np.empty_like(places), np.empty_like(places)
        pattern.fill(places, out, spare, self._seed)
        return out

    def _put_last(self, number: int, words: Words) -> None:
        self.chunks[number][-len(words) :].copy_(torch.from_numpy(words))

    @property
    def _seed(self) -> int:
        return self._run.seed + self.passes

    def _notices(self, pattern: Pattern, number: int) -> bool:
        """A card that computes nothing counts no wrong word, before and after."""
        self._make(pattern, number)
        made = self._expected[-_PROOF_WORDS:].cpu().numpy()
        known = self._known(pattern, number, _PROOF_WORDS)
        return np.array_equal(made, known) and super()._notices(pattern, number)


def _report_ecc_errors(run: StageRun) -> None:
    """Report memory errors that the card counted in this stage."""
    rows: tuple[tuple[str, Severity, str], ...] = (
        ("ecc_uncorrected", "error", "that it could not correct"),
        ("ecc_corrected", "doubt", "and corrected them"),
    )
    for counter, severity, what in rows:
        count = run.rise(counter)
        if count:
            sentence = f"The card counted {format_count(count)} memory errors {what}."
            run.report("ecc_errors", severity, sentence, count=count * (severity == "error"))
    if run.readings and run.readings[-1].has_pending_remap:
        run.report(
            "ecc_errors", "doubt",
            "The card waits for a restart to replace rows of its memory that failed.",
        )  # fmt: skip
