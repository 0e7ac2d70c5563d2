"""Results in a file, by its ending."""

from __future__ import annotations

import pytest

from gpu_studio.core.messages.run_messages import RunWorkload
from tests.cli.bench.terminal import asked
from tests.fakes.run_answers import run_events


@pytest.mark.parametrize(
    ("ending", "begins"),
    [(".csv", "workload,size"), (".json", "{"), (".md", "| Workload")],
)
def test_an_export_is_in_the_format_of_its_ending(type_in, tmp_path, ending, begins):
    path = tmp_path / f"out{ending}"
    status, _, errors = type_in("matmul", "--size", "64", "--export", str(path))
    assert (status, errors) == (0, "")
    text = path.read_text(encoding="utf-8")
    assert text.startswith(begins)
    assert "NVIDIA GeForce GT 1030" in text


@pytest.mark.parametrize("place", ["no/out.csv", "folder.csv"])
def test_an_export_that_has_no_place_is_refused_before_anything_runs(
    engines, type_in, tmp_path, place
):
    (tmp_path / "folder.csv").mkdir()
    status, output, errors = type_in("matmul", "--export", str(tmp_path / place))
    assert (status, output) == (2, "")
    assert "folder" in errors
    assert asked(engines) == []


def test_an_export_that_cannot_be_written_fails(engines, type_in, tmp_path):
    folder = tmp_path / "going"
    folder.mkdir()

    def script(_, request):
        folder.rmdir()
        return run_events(request)

    engines.scripts[RunWorkload] = script
    status, _, errors = type_in(
        "matmul", "--size", "64", "--device", "cpu", "--export", str(folder / "out.csv")
    )
    assert status == 1
    assert "Cannot write the results" in errors
