from __future__ import annotations

import pytest

from gpu_studio.core.engine import describe_exit


@pytest.mark.parametrize(
    ("exit_code", "sentence"),
    [
        (None, "stopped answering"),
        (-9, "ran out of memory (RAM)"),
        (137, "ran out of memory (RAM)"),
        (-6, "signal 6"),
        (3, "exit code 3"),
    ],
)
def test_an_engines_end_in_words(exit_code: int | None, sentence: str) -> None:
    assert sentence in describe_exit(exit_code)
