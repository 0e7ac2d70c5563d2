"""What may arrive on a line from another PC."""

from __future__ import annotations

import pytest

from gpu_studio.process.line_child import TooMuchError, split_lines


def test_lines_are_whole_and_a_line_without_end_is_too_much() -> None:
    chunks = iter([b"x" * 8] * 4)
    with pytest.raises(TooMuchError):
        list(split_lines(lambda _most: next(chunks), 20))
    chunks = iter([b"a", b"b\r", b"\n\n  \nc", b"d\ne", b""])
    assert list(split_lines(lambda _most: next(chunks), 20)) == [b"ab\n", b"cd\n"]
