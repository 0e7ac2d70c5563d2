"""The pipe of a line to another PC: when it counts as silent, and what may arrive."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from gpu_studio.process.line_pipe import Budget, SilenceWatch, TooMuchError, split_lines
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

_SILENCE_S = 0.04


class _Pipe:
    """A pipe whose reader waits until the test writes; a watch looks at it."""

    def __init__(self) -> None:
        self.reading, self.written, self.silent = (threading.Event() for _ in range(3))
        self.watch = SilenceWatch(lambda: _SILENCE_S, self.silent.set)
        self._read = self.watch.watched(self._wait)

    def _wait(self, _most: int) -> bytes:
        self.reading.set()
        self.written.wait(PATIENCE_S)
        self.written.clear()
        return b"\n"

    def read_in_thread(self, times: int) -> threading.Thread:
        def read() -> None:
            for _ in range(times):
                self._read(1)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        assert self.reading.wait(PATIENCE_S)
        return thread


@pytest.fixture
def pipe() -> Iterator[_Pipe]:
    pipe = _Pipe()
    yield pipe
    pipe.watch.close()
    pipe.written.set()


def test_a_read_that_waits_too_long_is_silence(pipe: _Pipe) -> None:
    reader = pipe.read_in_thread(1)
    assert pipe.silent.wait(PATIENCE_S)
    pipe.written.set()
    reader.join(PATIENCE_S)


def test_a_reader_that_is_busy_with_what_came_does_not_make_a_silence(pipe: _Pipe) -> None:
    looks = threading.Event()
    assert not looks.wait(5 * _SILENCE_S)  # nobody reads
    assert not pipe.silent.is_set()
    reader = pipe.read_in_thread(1)
    assert pipe.silent.wait(PATIENCE_S), "the same watch notices a real one"
    pipe.written.set()
    reader.join(PATIENCE_S)


def test_a_closed_watch_says_nothing(pipe: _Pipe) -> None:
    pipe.watch.close()
    reader = pipe.read_in_thread(1)
    pipe.written.set()
    reader.join(PATIENCE_S)
    assert not pipe.silent.is_set()


def test_a_line_without_end_and_too_many_bytes_are_too_much() -> None:
    chunks = iter([b"x" * 8] * 4)
    with pytest.raises(TooMuchError):
        list(split_lines(lambda _most: next(chunks), 20))
    chunks = iter([b"ab\n"] * 4)
    with pytest.raises(TooMuchError):
        list(split_lines(lambda _most: next(chunks), 20, Budget(600, 0)))
    chunks = iter([b"a", b"b\n\n  \nc", b"d\ne", b""])
    assert list(split_lines(lambda _most: next(chunks), 20)) == [b"ab\n", b"cd\n"]
