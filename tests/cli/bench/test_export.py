import pytest

from gpu_studio.core.messages.run_messages import Limit, NaiveTime, RunWorkload
from tests.cli.bench.terminal import asked
from tests.fakes.run_answers import run_events


@pytest.mark.parametrize(
    ("ending", "begins"),
    [(".csv", "workload,size"), (".json", "{"), (".md", "| Workload")],
)
def test_an_export_is_in_the_format_of_its_ending(type_in, tmp_path, ending, begins):
    path = tmp_path / f"out{ending}"
    status, _, errors = type_in("matmul", "--size", "64", "--save", str(path))
    assert (status, errors) == (0, f"Saved as {path}.\n")
    text = path.read_text(encoding="utf-8")
    assert text.startswith(begins)
    assert "NVIDIA GeForce GT 1030" in text


@pytest.mark.parametrize("place", ["no/out.csv", "folder.csv"])
def test_an_export_that_has_no_place_is_refused_before_anything_runs(
    engines, type_in, tmp_path, place
):
    (tmp_path / "folder.csv").mkdir()
    status, output, errors = type_in("matmul", "--save", str(tmp_path / place))
    assert (status, output) == (2, "")
    assert "folder" in errors
    assert asked(engines) == []


AMBER = "in doubt: "


def test_what_a_result_has_to_say_stands_under_its_row(engines, type_in):
    naive = NaiveTime(printed_s=1.0, finished_s=2.0, sentence="A script would print 1 s.")
    engines.scripts[RunWorkload] = lambda _, request: run_events(
        request, throttled=True, share_of_ceiling=0.1, ceiling="memory bandwidth, 48 GB/s",
        limit=Limit.MEMORY,
        parts_s={"copy in": 1e-3, "compute": 2e-3}, peak_allocated_bytes=3 << 20, naive=naive,
        computed_in="float16",
        findings=("Found it.",),
    )  # fmt: skip
    _, output, _ = type_in("matmul", "--size", "64", "--device", "cuda:0")
    row, *lines = [line.strip() for line in output.splitlines()[2:]]
    assert "10 %" in row
    doubt, ceiling, computed, parts, memory, told_naive, finding = lines[:7]
    assert AMBER in doubt
    assert ceiling.startswith("10 %")
    assert "memory bandwidth, 48 GB/s" in ceiling
    assert "float16" in computed
    assert all(part in parts for part in ("copy in 1.00 ms", "compute 2.00 ms"))
    assert "3.0 MiB" in memory
    assert told_naive.endswith(naive.sentence)
    assert finding == "Found it."


def test_a_finding_is_reported_once_and_not_under_every_row(engines, type_in):
    engines.scripts[RunWorkload] = lambda _, request: run_events(
        request, throttled=True, findings=("It is so.", f"At {request.size} it is so."),
    )  # fmt: skip
    _, output, _ = type_in("matmul", "--size", "64,128", "--device", "cuda:0")
    assert output.count("It is so.") == 1
    assert output.count("At 64 it is so.") == output.count("At 128 it is so.") == 1
    assert output.count(AMBER) == 2
