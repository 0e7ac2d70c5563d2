"""Video memory: patterns are written to all free memory less a reserve, and read again.

All chunks are written before any is read, so that the caches cannot answer: upwards with a pattern,
downwards with its inverse, because a write may disturb what lies above it or below it. Before the
first words are read, the device rests: weak cells fade, and the first work after a change of the
clock is the hardest for a marginal card.

Words are made and compared on the card itself, which reads the memory at its full speed: most
errors of old cards are errors of the transfer. With each pattern, the card has to notice wrong
words that were put there on purpose: in the first, last or middle chunk or one more, in turns,
around the first, middle and last word, each of the 64 bits. If it misses one, or if its words are
not the pattern's, numpy makes and compares them.

No chunk has more than 2^27 words: PyTorch 2.11 to 2.14 leave zeros behind element 2^32 of `arange`
on a card (pytorch/pytorch issue 197673).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch

from gpu_studio.core.check.thresholds import (
    SPILLED_SHARE,
    is_enough,
    ram_bytes,
    reserve_bytes,
)
from gpu_studio.core.messages.check_messages import MOST_CHUNKS, MemoryCoverage, WrongBits
from gpu_studio.core.units import format_bytes, format_count, format_duration, format_percent
from gpu_studio.engine.check.detectors import joined, wrong_bits
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import accelerator_of, free_bytes, total_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.core.telemetry import Telemetry

    Words = NDArray[np.int64]

_MIB = 1 << 20
_WORD_BYTES = 8
_SMALLEST_CHUNK, _LARGEST_CHUNK = 4 * _MIB, 256 * _MIB
_CHUNKS = 128
# A slow CPU makes, writes and compares a larger one in more than a second.
_LARGEST_RAM_CHUNK = 8 * _MIB
_FEWEST_RAM_CHUNKS = 3
# Less is not written as a share: it was not meant to be one.
_LEAST_SHARE = 0.005
# Of the stage's time, for the first pass over RAM: other programs may take the rest.
_FIRST_PASS_SHARE = 0.6
# Places, expected words, and a spare.
_SCRATCH_CHUNKS = 3
# Counting makes a byte per word. PyTorch takes at least 20 MiB for that, and 2 MiB for the sum.
_COUNTING_BYTES = 22 * _MIB
_FEWEST_FOR_SPEED = 8
# Around the first, the middle and the last word of a chunk, one for each bit.
_PROOF_WORDS = 64
_PROOF_TRIES = 2
_STEP_OF_PROOF = 7
# An address is in both halves of its word: 8 · (2^32 + 1) is odd but for the 8.
_BOTH_HALVES = _WORD_BYTES * ((1 << 32) + 1)
# Turns a word of the addresses back into its place: the inverse of its odd part.
_OF_BOTH_HALVES = pow((1 << 32) + 1, -1, 1 << 61)
_MOVED_SHARE = 0.9
_SEED_STEP = 0x9E3779B9
_ONE_IN_EIGHT = 0x0101010101010101
# 1 + 1/8 + 1/64 + 1/512 steps for each 1 KiB: rows of 1 KiB to 1 MiB are no multiple of 8 steps.
_ROW_SHIFT, _ROW_STEPS = 7, 512 + 64 + 8 + 1
# Of the stage's time: each cell rests with one value and with the other.
_REST_SHARES = {"addresses": 0.12, "inverted addresses": 0.04}
_LONGEST_REST_S, _LOOK_S = 15.0, 0.25
# SplitMix64 (Sebastiano Vigna, public domain): its two multipliers, as signed numbers.
_MIX_1, _MIX_2 = 0xBF58476D1CE4E5B9 - (1 << 64), 0x94D049BB133111EB - (1 << 64)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The words of a pattern.

    Attributes:
        title: in words.
        make: fills ``out`` with the words of the numbers in ``places``, by PyTorch or by numpy; a
            spare of the same shape may be used, and a seed makes other words.
        is_inverse: whether every bit is the other way round.
    """

    title: str
    make: Callable[[Any, Any, Any, int], None]
    is_inverse: bool = False

    def fill(self, places: Tensor, out: Tensor, spare: Tensor, seed: int) -> None:
        """Write the words of places in the tested memory to ``out``, on the device."""
        self.make(places, out, spare, seed)
        if self.is_inverse:
            out.bitwise_not_()

    def known(self, places: Words, seed: int) -> Words:
        """Return the same words without PyTorch."""
        out, spare = np.empty_like(places), np.empty_like(places)
        self.make(places, out, spare, seed)
        return ~out if self.is_inverse else out


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


class VideoMemory:
    """All free memory of a card, or a part of the RAM, as much as there is time for.

    Args:
        most_bytes: a smaller limit, None for all free memory.
        passes: how many passes to make at most; None for as many as there is time for.
    """

    name: StageName = "memory"

    def __init__(self, most_bytes: int | None = None, passes: int | None = None) -> None:
        self._most_bytes = most_bytes
        self._most_passes = passes

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Write and read the patterns again and again; see `stage.Stage`."""
        first = bench.vitals(at_once=True)
        memory = TestedMemory.allocate(bench, self._most_bytes)
        try:
            while memory.chunks and memory.passes != self._most_passes and not memory.is_over:
                for doing in memory.one_pass():
                    bench.vitals()
                    yield Step(doing=doing, tested=memory.tested, coverage=memory.coverage)
            if memory.chunks:
                yield Step(doing="", tested=memory.tested, coverage=memory.coverage)
        finally:
            memory.release()
        bench.vitals(at_once=True)
        _report_ecc_errors(bench, first)
        if not bench.is_card:
            return memory.passes > 0 and not bench.is_stopped
        is_whole = self._most_bytes is not None or is_enough(memory.coverage)
        return memory.passes > 0 and is_whole and not bench.is_stopped


class TestedMemory:
    """Chunks of memory, and the patterns in them.

    Args:
        bench: gets the findings.
        words: the 64-bit words in a chunk.
        before: the coverage so far: nothing of the free memory.

    Attributes:
        chunks: the memory under test, int64.
        passes: how often every pattern was written and read.
    """

    __test__ = False  # not a test

    def __init__(self, bench: StageBench, words: int, before: MemoryCoverage) -> None:
        self.chunks: list[Tensor] = []
        self.passes = 0
        self._bench = bench
        self._words = words
        self._before = before
        self._verified: set[int] = set()
        self._bad: list[int] = []
        self._patterns_done = 0
        self._is_blind = False
        self._has_read = False
        self._rested = ""
        self._threads = torch.get_num_threads()
        self._seconds: dict[int, float] = {}
        self._misread = 0
        self._moved: Counter[int] = Counter()
        device = bench.device
        self._places = torch.arange(words, dtype=torch.int64, device=device)
        self._expected = torch.empty_like(self._places)
        self._spare = torch.empty_like(self._places)

    @classmethod
    def allocate(cls, bench: StageBench, most_bytes: int | None = None) -> TestedMemory:
        """Return all the memory that a check may take, without the reserve."""
        if bench.is_card:
            accelerator_of(bench.device).empty_cache()
        free = free_bytes(bench.device)
        reserve = reserve_bytes(free) if bench.is_card else free - ram_bytes(free)
        wanted = max(0, free - reserve)
        if most_bytes is not None:
            wanted = min(wanted, most_bytes)
        size = _chunk_bytes(wanted)
        if not bench.is_card:
            size = min(size, _LARGEST_RAM_CHUNK)
        before = MemoryCoverage(
            tested_bytes=0, free_bytes=free, total_bytes=total_bytes(bench.device),
            reserve_bytes=reserve, chunk_bytes=size,
        )  # fmt: skip
        memory = cls(bench, size // _WORD_BYTES, before)
        # The words to compare with need memory, too.
        counting = max(size // _WORD_BYTES, _COUNTING_BYTES) if bench.is_card else size
        count = (wanted - counting) // size - _SCRATCH_CHUNKS
        if not bench.is_card and most_bytes is None:
            memory.add_chunks(min(count, 1))
            memory.choose_threads()
            count = min(count, memory.count_in_time())
        memory.add_chunks(count)
        return memory

    def add_chunks(self, count: int) -> None:
        """Allocate chunks, as many as there is memory for."""
        while len(self.chunks) < count and not self._bench.is_stopped:
            try:
                chunk = torch.empty(self._words, dtype=torch.int64, device=self._bench.device)
            except torch.OutOfMemoryError:
                return
            self.chunks.append(chunk)

    def choose_threads(self) -> None:
        """Work in one thread if that is faster: on a busy PC, threads wait for each other."""
        seconds: dict[int, float] = {}
        for threads in {self._threads, 1}:
            torch.set_num_threads(threads)
            begun_s = self._bench.elapsed_s
            for number in range(len(self.chunks)):
                self._count_wrong(PATTERNS[0], number)
            seconds[threads] = self._bench.elapsed_s - begun_s
        torch.set_num_threads(min(seconds, key=lambda threads: seconds[threads]))

    def count_in_time(self) -> int:
        """Return how many chunks one pass covers in the stage's time, from the time of the first.

        RAM is larger than a CPU can test in a short check, and half a pass has no verdict.
        """
        if not self.chunks:
            return 0
        begun_s = self._bench.elapsed_s
        for pattern in PATTERNS:
            self._write(pattern, 0)
            self._count_wrong(pattern, 0)
        one_s = max(self._bench.elapsed_s - begun_s, 1e-6)
        room_s = _FIRST_PASS_SHARE * self._bench.budget_s - self._bench.elapsed_s
        return max(int(room_s / one_s), _FEWEST_RAM_CHUNKS)

    @property
    def is_over(self) -> bool:
        """Whether the test has to end; the first pass has overtime."""
        return self._bench.is_over(has_tested_all=self.passes > 0)

    @property
    def coverage(self) -> MemoryCoverage:
        """How much was tested."""
        tested = len(self._verified) * self._words * _WORD_BYTES
        return msgspec.structs.replace(
            self._before, tested_bytes=tested, passes=self.passes, bad_chunks=tuple(self._bad)
        )

    @property
    def tested(self) -> str:
        """What was tested so far, in words."""
        coverage, free = self.coverage, self._before.free_bytes
        kind = "of VRAM" if self._bench.is_card else "of RAM"
        text = f"{format_bytes(coverage.tested_bytes)} {kind}"
        if coverage.tested_bytes >= _LEAST_SHARE * free > 0:
            share = format_percent(coverage.tested_bytes / free)
            text += f", {share} of the free {format_bytes(free)}"
        done = min(self._patterns_done, len(PATTERNS))
        times = f", {format_count(self.passes)} times" if self.passes > 1 else ""
        return f"{text}, {done} of {len(PATTERNS)} patterns{times}{self._rested}"

    def release(self) -> None:
        """Give the memory back."""
        torch.set_num_threads(self._threads)
        self.chunks.clear()
        self._places = self._expected = self._spare = torch.empty(0)
        accelerator_of(self._bench.device).empty_cache()

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
            wrong: WrongBits | None = None
            for number in in_order:
                if self.is_over:
                    break
                wrong = joined(wrong, self._read(pattern, number))
                yield f"Reading {pattern.title}"
            else:
                self._patterns_done += 1
            if wrong is not None:
                self._report(pattern, wrong)
            self._report_misread(pattern)
        self.passes += 1
        self._find_spilled()

    def _rest(self, pattern: Pattern) -> Iterator[str]:
        """Let the device rest before the first words and their inverse are read, once."""
        share = _REST_SHARES.get(pattern.title, 0.0)
        if self.passes or not share or not self.chunks:
            return
        bench = self._bench
        begun_s = bench.elapsed_s
        end_s = begun_s + min(_LONGEST_REST_S, share * bench.budget_s)
        while bench.elapsed_s < end_s and not bench.is_stopped:
            bench.rest(_LOOK_S)
            yield "A rest before the words are read"
        if bench.pause is None:
            bench.pause = (begun_s, bench.elapsed_s)
            vitals = bench.vitals(at_once=True)
            clock = vitals.sm_clock_mhz if vitals is not None else None
            at = "" if clock is None else f" at {clock:.0f}\u202fMHz"
            self._rested = (
                f", read after a rest of {format_duration(bench.elapsed_s - begun_s)}{at}"
            )

    def _write(self, pattern: Pattern, number: int) -> None:
        chunk = self.chunks[number]
        has_plant = self._bench.plant.kind is not None
        before = chunk.to("cpu", copy=True) if has_plant else None
        self._make(pattern, number)

        def copy() -> None:
            chunk.copy_(self._expected)

        seconds = self._bench.timed(copy, number)
        self._seconds[number] = min(seconds, self._seconds.get(number, seconds))
        if has_plant and self._has_read:
            self._bench.plant.corrupt(chunk, before)

    def _make(self, pattern: Pattern, number: int) -> None:
        """Make the words of a chunk, where they are compared."""
        if self._is_blind:
            self._expected.copy_(torch.from_numpy(self._known(pattern, number)))
            return
        first = number * self._words
        self._places.add_(first)
        pattern.fill(self._places, self._expected, self._spare, self._seed)
        self._places.sub_(first)

    def _read(self, pattern: Pattern, number: int) -> WrongBits | None:
        """Return the wrong bits of a chunk."""
        counted = self._count_wrong(pattern, number)
        self._verified.add(number)
        if not counted:
            return None
        first_byte = number * self._words * _WORD_BYTES
        seen = self.chunks[number].cpu().numpy()
        found = wrong_bits(seen, self._known(pattern, number), first_byte, pattern.title)
        if pattern is PATTERNS[0]:
            self._moved.update(self._distances(seen, number))
        if number not in self._bad and len(self._bad) < MOST_CHUNKS:
            self._bad.append(number)
        if found is None:
            self._misread += counted
        return found

    def _distances(self, seen: Words, number: int) -> Counter[int]:
        """Return how far from its place each word is that has another word's address, in bytes."""
        words = np.ascontiguousarray(seen).view(np.uint64)
        places = (words >> np.uint64(3)) * np.uint64(_OF_BOTH_HALVES) & np.uint64((1 << 61) - 1)
        own = np.arange(self._words, dtype=np.uint64) + np.uint64(number * self._words)
        last = np.uint64(len(self.chunks) * self._words)
        is_moved = (words & np.uint64(7) == 0) & (places < last) & (places != own)
        moved = places[is_moved].astype(np.int64) - own[is_moved].astype(np.int64)
        distances, counts = np.unique(moved * _WORD_BYTES, return_counts=True)
        return Counter(dict(zip(distances.tolist(), counts.tolist(), strict=True)))

    def _count_wrong(self, pattern: Pattern, number: int) -> int:
        """Return the number of wrong words in a chunk, counted where they are compared."""
        chunk = self.chunks[number]
        if self._is_blind:
            return int(np.count_nonzero(chunk.cpu().numpy() != self._known(pattern, number)))
        self._make(pattern, number)
        self._expected.bitwise_xor_(chunk)
        return int(torch.count_nonzero(self._expected))

    def _known(self, pattern: Pattern, number: int, part: slice = slice(None)) -> Words:
        """Return the words of a chunk, or of a part of it, by numpy."""
        places = np.arange(*part.indices(self._words), dtype=np.int64)
        return pattern.known(places + number * self._words, self._seed)

    @property
    def _seed(self) -> int:
        return self._bench.seed + self.passes

    def _prove(self, pattern: Pattern) -> Iterator[str]:
        """See whether wrong words are noticed, in one chunk; if not, numpy compares from now on."""
        self._has_read = True
        if self._is_blind or not self.chunks:
            return
        count = len(self.chunks)
        places = (0, count - 1, count // 2, _STEP_OF_PROOF % count)
        number = places[self._patterns_done % len(places)]
        yield f"Proof with {pattern.title}"
        if not any(self._notices(pattern, number) for _ in range(_PROOF_TRIES)):
            self._report_blind(pattern)
            for again in range(count):
                if self.is_over:
                    return
                self._write(pattern, again)
                yield f"Writing {pattern.title}"

    def _report_blind(self, pattern: Pattern) -> None:
        self._is_blind = True
        subject = "card" if self._bench.is_card else "CPU"
        self._bench.report(
            "blind", "doubt",
            f"The {subject} does not notice each wrong word that was put into its memory on "
            f"purpose, with {pattern.title}, so numpy compared the words.",
        )  # fmt: skip

    def _notices(self, pattern: Pattern, number: int) -> bool:
        """Return whether each wrong word in three places of a chunk is counted.

        Each place has 64 words, of which each has another bit turned round.
        """
        chunk, middle = self.chunks[number], self._words // 2
        parts = [
            slice(first, first + _PROOF_WORDS)
            for first in (0, middle, self._words - _PROOF_WORDS)
        ]  # fmt: skip
        self._make(pattern, number)
        known = [self._known(pattern, number, part) for part in parts]
        computed = [self._expected[part].cpu().numpy() for part in parts]
        if not all(np.array_equal(*pair) for pair in zip(computed, known, strict=True)):
            return False
        before = [chunk[part].to("cpu", copy=True).numpy() for part in parts]
        clean = self._count_wrong(pattern, number)
        turned = np.left_shift(np.int64(1), np.arange(_PROOF_WORDS, dtype=np.int64))
        after = [words ^ np.roll(turned, number) for words in before]
        for part, words in zip(parts, after, strict=True):
            chunk[part].copy_(torch.from_numpy(words))
        counted = self._count_wrong(pattern, number)
        for part, words in zip(parts, before, strict=True):
            chunk[part].copy_(torch.from_numpy(words))
        # A bad card may have wrong words there already; they are found afterwards.
        more = sum(
            int(np.count_nonzero(new != right)) - int(np.count_nonzero(old != right))
            for new, old, right in zip(after, before, known, strict=True)
        )
        return counted == clean + more

    def _repetition_words(self, wrong_words: int) -> str:
        """Return whether the memory repeats: what is written far on is read here, in words."""
        ((distance, count),) = self._moved.most_common(1) or [(0, 0)]
        self._moved.clear()
        size = abs(distance)
        if size < self._words * _WORD_BYTES or count < _MOVED_SHARE * wrong_words:
            return ""
        return (
            f" These words have what was written {format_bytes(size)} further on, so the memory "
            "repeats: the card may have less than it reports."
        )

    def _report(self, pattern: Pattern, wrong: WrongBits) -> None:
        count = wrong.zero_to_one + wrong.one_to_zero
        noun = "bit is" if count == 1 else "bits are"
        first = format_bytes(wrong.first_byte)
        where = (
            f"at {first}" if wrong.words == 1 else
            f"between {first} and {format_bytes(wrong.last_byte)}"
        )  # fmt: skip
        kind = "video memory" if self._bench.is_card else "RAM of this process"
        self._bench.report(
            "wrong_bits", "error",
            f"{format_count(count)} {noun} wrong in the {kind}, {where} of the tested part, with "
            f"{pattern.title}: {format_count(wrong.zero_to_one)} went from 0 to 1, "
            f"{format_count(wrong.one_to_zero)} from 1 to 0."
            f"{self._repetition_words(wrong.words)}",
            count=count, bits=wrong,
        )  # fmt: skip

    def _report_misread(self, pattern: Pattern) -> None:
        count, self._misread = self._misread, 0
        if count:
            noun = "word was" if count == 1 else "words were"
            self._bench.report(
                "wrong_bits", "error",
                f"{format_count(count)} {noun} wrong when the card read {pattern.title} back, and "
                "right when it read them once more.",
                count=count, came_back=False,
            )  # fmt: skip

    def _find_spilled(self) -> None:
        """Report chunks that are slow as RAM, and test them no more."""
        if not self._bench.is_card or len(self._seconds) < _FEWEST_FOR_SPEED:
            return
        usual_s = median(self._seconds.values())
        slow = [
            number for number, seconds in self._seconds.items()
            if seconds * SPILLED_SHARE > usual_s > 0
        ]  # fmt: skip
        if slow:
            size = format_bytes(len(slow) * self._words * _WORD_BYTES)
            self._bench.report(
                "memory_spilled", "doubt",
                f"{size} of the tested memory is as slow as RAM: the driver moved it out of the "
                "card.",
            )  # fmt: skip
            self._verified -= set(slow)
            self._seconds.clear()


def _chunk_bytes(wanted: int) -> int:
    """Return the size of a chunk: a power of two, so that there are about 128 of them."""
    size = _SMALLEST_CHUNK
    while size < _LARGEST_CHUNK and size * _CHUNKS < wanted:
        size *= 2
    return size


def _report_ecc_errors(bench: StageBench, first: Telemetry | None) -> None:
    """Report memory errors that the card counted since a first reading."""
    lost = bench.rise(first, lambda vitals: vitals.ecc_uncorrected)
    if lost:
        bench.report(
            "ecc_errors", "error",
            f"The card counted {format_count(lost)} memory errors that it could not correct.",
            count=lost,
        )  # fmt: skip
    corrected = bench.rise(first, lambda vitals: vitals.ecc_corrected)
    if corrected:
        bench.report(
            "ecc_errors", "doubt",
            f"The card counted {format_count(corrected)} memory errors and corrected them.",
        )  # fmt: skip
    if bench.readings and bench.readings[-1].has_pending_remap:
        bench.report(
            "ecc_errors", "doubt",
            "The card waits for a restart to replace rows of its memory that failed.",
        )  # fmt: skip
