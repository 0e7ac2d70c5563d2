"""Memory: patterns are written to all free memory less a reserve, and read again.

All chunks are written before any is read, so that the caches cannot answer: upwards with a pattern,
downwards with its inverse, because a write may disturb what lies above it or below it. Before the
first words are read, the device rests: weak cells fade, and the first work after a change of the
clock is the hardest for a marginal card.

Words are made and compared on the card itself, which reads the memory at its full speed: most
errors of old cards are errors of the transfer. With each pattern, the card has to notice wrong
words that were put at the end of a chunk on purpose, each of the 64 bits. If it misses one, numpy
makes and compares them.

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
from gpu_studio.engine.device import accelerator_of, free_bytes, total_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

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
_PROOF_WORDS, _PROOF_TRIES = 64, 2  # one for each bit
# An address is in both halves of its word: 8 · (2^32 + 1) is odd but for the 8.
_BOTH_HALVES = _WORD_BYTES * ((1 << 32) + 1)
_SEED_STEP = 0x9E3779B9
_ONE_IN_EIGHT = 0x0101010101010101
# 1 + 1/8 + 1/64 + 1/512 steps for each 1 KiB: rows of 1 KiB to 1 MiB are no multiple of 8 steps.
_ROW_SHIFT, _ROW_STEPS = 7, 512 + 64 + 8 + 1
# Of the stage's time: each cell rests with one value and with the other.
_REST_SHARES = {"addresses": 0.12, "inverted addresses": 0.04}
_LONGEST_REST_S, _LOOK_S = 15.0, 0.25
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
            while words.chunks and not words.is_over:
                for doing in words.one_pass():
                    words.tell()
                    yield doing
                words.tell()
        finally:
            words.release()
    finally:
        torch.set_num_threads(threads)
    run.vitals(at_once=True)
    _report_ecc_errors(run)
    is_part = run.is_card and (run.coverage is None or not is_enough(run.coverage))
    has_enough = most_bytes is not None or not is_part
    return words.passes > 0 and has_enough and not run.is_stopped


class TestedMemory:
    """All the memory that a check may take, in chunks, and the patterns in them.

    Attributes:
        chunks: the memory under test, int64.
        passes: how often every pattern was written and read.
    """

    __test__ = False  # not a test

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
        self.chunks: list[Tensor] = []
        self.passes = self._patterns_done = 0
        self._run, self._words = run, size // _WORD_BYTES
        self._verified: set[int] = set()
        self._is_blind = self._has_read = False
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

    @property
    def is_over(self) -> bool:
        """Whether the test has to end; the first pass has overtime."""
        return self._run.is_over(has_tested_all=self.passes > 0)

    def tell(self) -> None:
        """Say what was tested so far."""
        free, tested_bytes = self._before.free_bytes, len(self._verified) * self._words * 8
        self._run.coverage = msgspec.structs.replace(self._before, tested_bytes=tested_bytes)
        share = format_percent(tested_bytes / max(free, 1))
        done = min(self._patterns_done, len(PATTERNS))
        times = f", {format_count(self.passes)} times" if self.passes > 1 else ""
        self._run.tested = (
            f"{format_bytes(tested_bytes)} of {'VRAM' if self._run.is_card else 'RAM'}, {share} of "
            f"the free {format_bytes(free)}, {done} of {len(PATTERNS)} patterns{times}"
        )

    def release(self) -> None:
        """Give the memory back."""
        self.chunks.clear()
        self._places = self._expected = self._spare = torch.empty(0)
        accelerator_of(self._run.device).empty_cache()

    def one_pass(self) -> Iterator[str]:
        """Write and read every pattern once; yield after each chunk what was done, in words."""
        for pattern in PATTERNS:
            numbers = range(len(self.chunks))
            in_order = numbers[::-1] if pattern.is_inverse else numbers
            for number in in_order:
                if self.is_over:
                    return
                self._write(pattern, number)
                yield f"Writing {pattern.title}"
            yield from self._prove(pattern)
            yield from self._rest(pattern)
            for number in in_order:
                if self.is_over:
                    break
                self._read(pattern, number)
                yield f"Reading {pattern.title}"
            else:
                self._patterns_done += 1
        self.passes += 1

    def _rest(self, pattern: Pattern) -> Iterator[str]:
        """Let the device rest before the first words and their inverse are read, once."""
        share = _REST_SHARES.get(pattern.title, 0.0)
        if self.passes or not share or not self.chunks:
            return
        run = self._run
        begun_s = run.elapsed_s
        end_s = begun_s + min(_LONGEST_REST_S, share * run.planned_s)
        while run.elapsed_s < end_s and not run.is_stopped:
            run.rest(_LOOK_S)
            yield "A rest before the words are read"
        if run.rested is None:
            run.rested = (begun_s, run.elapsed_s)

    def _write(self, pattern: Pattern, number: int) -> None:
        chunk, plant = self.chunks[number], self._run.plant
        before = chunk.to("cpu", copy=True) if plant.kind is not None else None
        self._make(pattern, number)
        chunk.copy_(self._expected)
        self._run.synchronize()
        if self._has_read:
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

    def _read(self, pattern: Pattern, number: int) -> None:
        """Report the wrong bits of a chunk, if there are any."""
        counted = self._count_wrong(pattern, number)
        self._verified.add(number)
        if not counted:
            return
        run, first_byte = self._run, number * self._words * _WORD_BYTES
        run.report_wrong_bits(
            "video memory" if run.is_card else "RAM of this process",
            pattern.title,
            self.chunks[number].cpu().numpy(),
            self._known(pattern, number),
            first_byte,
            counted=counted,
            second_look="it read them once more",
        )

    def _count_wrong(self, pattern: Pattern, number: int) -> int:
        """Return the number of wrong words in a chunk, counted where they are compared."""
        chunk = self.chunks[number]
        if self._is_blind:
            return int(np.count_nonzero(chunk.cpu().numpy() != self._known(pattern, number)))
        self._make(pattern, number)
        self._expected.bitwise_xor_(chunk)
        return int(torch.count_nonzero(self._expected))

    def _known(self, pattern: Pattern, number: int, last: int | None = None) -> Words:
        """Return the words of a chunk, or its last ones, by numpy."""
        first, end = number * self._words, (number + 1) * self._words
        places = np.arange(first if last is None else end - last, end, dtype=np.int64)
        out, spare = np.empty_like(places), np.empty_like(places)
        pattern.fill(places, out, spare, self._seed)
        return out

    @property
    def _seed(self) -> int:
        return self._run.seed + self.passes

    def _prove(self, pattern: Pattern) -> Iterator[str]:
        """See whether wrong words are noticed, in one chunk; if not, numpy compares from now on."""
        self._has_read = True
        count = len(self.chunks)
        if self._is_blind or not count:
            return
        number = (0, count - 1, count // 2)[self._patterns_done % 3]
        yield f"Proof with {pattern.title}"
        if any(self._notices(pattern, number) for _ in range(_PROOF_TRIES)):
            return
        self._is_blind = True
        self._run.report(
            "blind", "doubt",
            f"The {self._run.subject} does not notice each wrong word that was put into its "
            f"memory on purpose, with {pattern.title}, so numpy compared the words.",
        )  # fmt: skip
        for again in range(count):
            if self.is_over:
                return
            self._write(pattern, again)
            yield f"Writing {pattern.title}"

    def _notices(self, pattern: Pattern, number: int) -> bool:
        """Return whether the last 64 words of a chunk are counted if each has a wrong bit.

        A bad card may have wrong words there already, so numpy compares them as well.
        """
        last = self.chunks[number][-_PROOF_WORDS:]
        before, known = last.cpu().numpy().copy(), self._known(pattern, number, _PROOF_WORDS)
        self._make(pattern, number)
        if not np.array_equal(self._expected[-_PROOF_WORDS:].cpu().numpy(), known):
            return False  # a card that computes nothing counts no wrong word, before and after
        after = before ^ np.left_shift(np.int64(1), np.arange(_PROOF_WORDS, dtype=np.int64))
        clean = self._count_wrong(pattern, number)
        last.copy_(torch.from_numpy(after))
        counted = self._count_wrong(pattern, number)
        last.copy_(torch.from_numpy(before))
        more = np.count_nonzero(after != known) - np.count_nonzero(before != known)
        return bool(counted - clean == more)


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
