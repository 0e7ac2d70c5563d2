"""Results in a file, by its ending."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("ending", "begins"),
    [(".csv", "workload,size"), (".json", "{"), (".md", "| Workload"), (".txt", "Workload")],
)
def test_an_export_is_in_the_format_of_its_ending(type_in, tmp_path, ending, begins):
    path = tmp_path / f"out{ending}"
    status, _, errors = type_in("matmul", "--size", "64", "--export", str(path))
    assert (status, errors) == (0, "")
    text = path.read_text(encoding="utf-8")
    assert text.startswith(begins)
    assert "NVIDIA GeForce GT 1030" in text


def test_an_export_that_cannot_be_written_fails(type_in, tmp_path):
    status, _, errors = type_in(
        "matmul", "--size", "64", "--device", "cpu", "--export", str(tmp_path / "no" / "out.csv")
    )
    assert status == 1
    assert "cannot be written" in errors
