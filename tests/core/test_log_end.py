from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.shared_texts import log_end, without_names

if TYPE_CHECKING:
    from pathlib import Path


def test_the_last_lines_of_a_log_are_read(tmp_path: Path):
    path = tmp_path / "program.log"
    path.write_bytes(b"\xff\n" + b"".join(b"line %d\n" % number for number in range(100_000)))
    lines = log_end(path).splitlines()
    assert lines[-1] == "line 99999"
    assert len(lines) == 60
    assert log_end(tmp_path / "none") == ""
    assert log_end(tmp_path) == ""


def test_names_of_the_user_and_the_pc_are_masked_and_parts_of_words_are_not():
    text = "Ana's PC is ANA-PC; banana; /home/ana/x.py; GPU-12345678-1234-1234-1234-123456789abc"
    result = without_names(text, ("ana", "ana-pc", "", "pc"))
    for secret in ("Ana", "ANA-PC", "/home/ana", "12345678"):
        assert secret not in result
    assert "banana" in result
    assert "PC is" in result
