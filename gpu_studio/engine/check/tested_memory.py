"""Memory under test in chunks: patterns are written to all of it, and read again. No torch here.

All chunks are written before any is read, so that the caches cannot answer: upwards with a pattern,
downwards with its inverse, because a write may disturb what lies above it or below it. Before the
first words are read, the device rests: weak cells fade, and the first work after a change of the
clock is the hardest for a marginal card.

Words are made and compared on the device itself, which reads the memory at its full speed. With
each pattern, it has to notice wrong words that were put at the end of a chunk on purpose, each of
the bits. If it misses one, NumPy makes and compares them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from gpu_studio.core.units import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpu_studio.engine.check.stage_run import StageRun

    Words = NDArray[np.int64]

_PROOF_TRIES = 2
# Of the stage's time: each cell rests with one value and with the other.
_REST_SHARES = {"addresses": 0.12, "inverted addresses": 0.04}
_LONGEST_REST_S, _LOOK_S = 15.0, 0.25
_WORD_BYTES = 8
_MOST_NAMED = 8  # wrong bits of a word


class AnyPattern(Protocol):
    """The words of a pattern; ``is_inverse``: every bit is the other way round."""

    @property
    def title(self) -> str: ...

    @property
    def is_inverse(self) -> bool: ...


P = TypeVar("P", bound=AnyPattern)


class MemoryUnderTest(ABC, Generic[P]):
    """All the memory that a check may take, in chunks, and the patterns in them.

    Attributes:
        patterns: a pattern comes before its inverse.
        chunks: the memory under test.
        passes: how often every pattern was written and read.
    """

    patterns: ClassVar[Sequence[Any]]
    second_look: ClassVar[str]
    """How NumPy gets the words, in a sentence."""

    def __init__(self, run: StageRun, chunk_bytes: int) -> None:
        self._run, self._chunk_bytes = run, chunk_bytes
        self.chunks: list[Any] = []
        self.passes = self._patterns_done = 0
        self._verified: set[int] = set()
        self._is_blind = False

    @abstractmethod
    def tell(self) -> None:
        """Say what was tested so far."""

    @abstractmethod
    def _write(self, pattern: P, number: int) -> None:
        """Write the words of a chunk, and the run's fault made on purpose."""

    @abstractmethod
    def _count_by_device(self, pattern: P, number: int) -> int:
        """Return the number of wrong words in a chunk, counted by the device."""

    @abstractmethod
    def _seen(self, number: int, last: int = 0) -> NDArray[Any]:
        """Return a copy of the words of a chunk, or of its last ones."""

    @abstractmethod
    def _known(self, pattern: P, number: int, last: int = 0) -> NDArray[Any]:
        """Return the right words of a chunk, or its last ones, by NumPy."""

    @abstractmethod
    def _put_last(self, number: int, words: NDArray[Any]) -> None:
        """Replace the last words of a chunk."""

    @property
    def is_over(self) -> bool:
        """Whether the test has to end; the first pass has overtime."""
        return self._run.is_over(has_tested_all=self.passes > 0)

    @property
    def _tested_bytes(self) -> int:
        return len(self._verified) * self._chunk_bytes

    @property
    def _patterns_text(self) -> str:
        done, count = min(self._patterns_done, len(self.patterns)), len(self.patterns)
        times = f", {format_count(self.passes)} times" if self.passes > 1 else ""
        return f"{done} of {count} patterns{times}"

    def every_pass(self) -> Iterator[str]:
        """Test until the stage is over; yield after each chunk what was done, in words."""
        while self.chunks and not self.is_over:
            for doing in self.one_pass():
                self.tell()
                yield doing
            self.tell()

    def one_pass(self) -> Iterator[str]:
        """Write and read every pattern once; yield after each chunk what was done, in words."""
        for pattern in self.patterns:
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

    def _rest(self, pattern: P) -> Iterator[str]:
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

    def _read(self, pattern: P, number: int) -> None:
        """Report the wrong bits of a chunk, if there are any."""
        counted = self._count_wrong(pattern, number)
        self._verified.add(number)
        if not counted:
            return
        run, seen = self._run, self._seen(number).view(np.int64)
        known = self._known(pattern, number).view(np.int64)
        count, where = wrong_bits(seen, known, number * self._chunk_bytes)
        memory = "video memory" if run.is_card else "RAM of this process"
        sentence = f"Wrong bits in the {memory} with {pattern.title}, {where}."
        if not count:
            sentence = (
                f"Wrong words when the {run.subject} read {pattern.title} back, and right when "
                f"{self.second_look}: {format_count(counted)}."
            )
        run.report("wrong_bits", "error", sentence, count=count or counted)

    def _count_wrong(self, pattern: P, number: int) -> int:
        """Return the number of wrong words in a chunk, counted where they are compared."""
        if self._is_blind:
            return int(np.count_nonzero(self._seen(number) != self._known(pattern, number)))
        return self._count_by_device(pattern, number)

    def _prove(self, pattern: P) -> Iterator[str]:
        """See whether wrong words are noticed, in one chunk; if not, NumPy compares from now on."""
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
            f"memory on purpose, with {pattern.title}, so NumPy compared the words.",
        )  # fmt: skip
        for again in range(count):
            if self.is_over:
                return
            self._write(pattern, again)
            yield f"Writing {pattern.title}"

    def _notices(self, pattern: P, number: int) -> bool:
        """Return whether the last words of a chunk are counted if each has another wrong bit.

        A bad card may have wrong words there already, so NumPy compares them as well.
        """
        word = self._seen(number, 1).dtype
        bits = 8 * word.itemsize
        before, known = self._seen(number, bits), self._known(pattern, number, bits)
        after = before ^ np.left_shift(word.type(1), np.arange(bits, dtype=word))
        clean = self._count_wrong(pattern, number)
        self._put_last(number, after)
        counted = self._count_wrong(pattern, number)
        self._put_last(number, before)
        more = np.count_nonzero(after != known) - np.count_nonzero(before != known)
        return bool(counted - clean == more)


def wrong_bits(seen: Words, expected: Words, first_byte: int) -> tuple[int, str]:
    """Return how many bits of words from an address on are wrong, and which, in words."""
    difference = seen ^ expected
    wrong = np.flatnonzero(difference)
    if not len(wrong):
        return 0, ""
    first, last = (first_byte + _WORD_BYTES * int(at) for at in wrong[[0, -1]])
    to_one, to_zero = _ones(difference & seen), _ones(difference & expected)
    every = int(np.bitwise_or.reduce(difference))
    bits = [str(bit) for bit in range(64) if every >> bit & 1]
    which = f"{len(bits)} of 64" if len(bits) > _MOST_NAMED else ", ".join(bits)
    return to_one + to_zero, (
        f"from {format_bytes(first)} to {format_bytes(last + _WORD_BYTES - 1)} of the tested part: "
        f"{format_count(to_one)} went from 0 to 1, {format_count(to_zero)} from 1 to 0. "
        f"The first is at byte {first:#x}; bits of a word: {which}"
    )


def _ones(words: Words) -> int:
    return int(np.unpackbits(words.view(np.uint8)).sum())
