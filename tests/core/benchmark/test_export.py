import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.benchmark.export import to_csv, to_json, to_markdown
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    Limit,
    NaiveTime,
    RunFailed,
    RunStopped,
    RunWorkload,
)
from tests.fakes.descriptions import described
from tests.fakes.run_answers import batch, finished, run_events, samples_of, started


def request(device: str = "cpu", size: int = 512) -> RunWorkload:
    return RunWorkload(
        run_id=f"{device}-{size}", workload="elementwise", device=device, size=size,
        dtype="float32",
    )  # fmt: skip


def finished_run(asked: RunWorkload, **changes: Any) -> Run:
    run = Run(asked)
    for event in run_events(asked, **changes):
        run.apply(event)
    return run


def partial_run(asked: RunWorkload, ending: Event) -> Run:
    run = Run(asked)
    run.apply(started(asked))
    run.apply(batch(asked, (0.001, 0.002, 0.003), spent_s=0.1))
    run.apply(ending)
    return run


def failed_run(message: str) -> Run:
    asked = request(size=4096)
    failure = Failure(FailureKind.TOO_LARGE, message)
    return partial_run(asked, RunFailed(run_id=asked.run_id, failure=failure))


def some_runs() -> list[Run]:
    stopped = request("cuda:0", 1024)
    return [
        finished_run(request("cpu"), turns="turns", rounds_s=(1.2,) * 12),
        finished_run(request("cuda:0"), turns="turns", rounds_s=(1.0,) * 12),
        partial_run(stopped, RunStopped(run_id=stopped.run_id)),
        failed_run("It needs 64 GiB, 3 GiB are free."),
    ]


def lines(runs: list[Run]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(runs), newline="")))


def test_csv_has_a_line_a_run_with_full_precision() -> None:
    runs = some_runs()
    cpu, card, stopped, failed = lines(runs)
    assert runs[0].result is not None
    assert float(cpu["median_s"]) == runs[0].result.median_s
    assert (float(cpu["ci95_low_s"]), float(cpu["ci95_high_s"])) == runs[0].result.ci95_s
    assert (cpu["device_name"], cpu["verified"], cpu["speed_up"]) == ("Ryzen 7 5700G", "true", "")
    assert float(card["speed_up"]) > 0
    assert (stopped["state"], stopped["samples"], stopped["median_s"]) == ("stopped", "3", "0.002")
    assert (stopped["throughput"], stopped["device"], stopped["size"]) == ("", "cuda:0", "1024")
    assert failed["reason"] == "It needs 64 GiB, 3 GiB are free."
    assert [line["budget_s"] for line in lines(runs)] == ["2.0"] * 4


def test_an_export_claims_no_more_than_the_verdict() -> None:
    cpu = request("cpu")
    for changes, claim in (
        ({}, "faster"),
        ({"samples": 3}, "about: few samples"),
        ({"verified": False}, "wrong results"),
        ({"ci95_s": (1e-9, 1.0)}, "cannot be told"),
    ):
        runs = [finished_run(cpu), finished_run(request("cuda:0"), median_s=1e-6, **changes)]
        if "ci95_s" not in changes:
            runs[1] = finished_run(
                request("cuda:0"), median_s=1e-6, iqr_s=0.0, ci95_s=(1e-6, 1e-6), **changes
            )
        _, card = lines(runs)
        assert card["speed_up_claim"] == claim
        assert bool(card["speed_up"]) == (claim in ("faster", "about: few samples"))
        exported = json.loads(to_json(runs, None, "2025-06-01T12:00:00+02:00"))["runs"][1]
        assert exported["speed_up_claim"] == claim
        assert (exported["speed_up"] is None) == (not card["speed_up"])
        assert ("| about" in to_markdown(runs)) == claim.startswith("about")


@pytest.mark.parametrize(("samples", "is_told"), [(1, False), (5, False), (6, True)])
def test_an_interval_of_too_few_samples_is_left_blank(samples: int, is_told: bool) -> None:
    asked = request()
    run = Run(asked)
    run.apply(started(asked))
    run.apply(batch(asked, (0.001,) * samples, spent_s=0.1))
    run.apply(finished(asked, (0.001,) * samples))
    (line,) = lines([run])
    assert [bool(line[name]) for name in ("ci95_low_s", "ci95_high_s")] == [is_told] * 2
    assert bool(line["iqr_s"]) is (samples > 1)


def test_a_share_above_its_ceiling_is_left_blank() -> None:
    (line,) = lines([finished_run(request(), share_of_ceiling=58.31, ceiling="arithmetic, 1 B/s")])
    assert (line["share_of_ceiling"], line["ceiling"]) == ("", "arithmetic, 1 B/s")


def test_csv_says_how_a_run_was_measured_even_where_it_did_not_finish() -> None:
    asked = RunWorkload(
        run_id="1", workload="train_step", device="cuda:0", size=64, dtype="float32",
        options={"amp": "on", "amp_dtype": "float16"}, cache="cold", transfers=True,
    )  # fmt: skip
    naive = NaiveTime(printed_s=0.5, finished_s=1.0, sentence="It printed less.")
    full, stopped = lines(
        [
            finished_run(
                asked, naive=naive, ceiling="memory bandwidth, 48 GB/s", limit=Limit.MEMORY,
                share_of_ceiling=0.62, peak_allocated_bytes=4096,
            ),
            partial_run(asked, RunStopped(run_id="1")),
        ]
    )  # fmt: skip
    for line in (full, stopped):
        assert line["options"] == "amp=on; amp_dtype=float16"
        assert (line["cache"], line["transfers"]) == ("cold", "true")
    assert (full["ceiling"], full["share_of_ceiling"]) == ("memory bandwidth, 48 GB/s", "0.62")
    assert (full["naive_printed_s"], full["peak_allocated_bytes"]) == ("0.5", "4096")
    assert (stopped["ceiling"], stopped["naive_printed_s"]) == ("", "")


@given(st.text(max_size=40))
def test_any_text_survives_csv(name: str) -> None:
    (line,) = lines([finished_run(request(), device_name=name)])
    assert line["device_name"].removeprefix("'") == name.replace("\0", "").removeprefix("'")
    assert not line["device_name"].startswith(("=", "+", "-", "@"))


def test_json_has_every_sample_and_its_pc() -> None:
    runs = some_runs()
    exported = json.loads(to_json(runs, described(), "2025-03-01T12:00:00+00:00"))
    assert exported["engine"]["torch_version"] == "2.13.0+cpu"
    assert exported["exported_at"] == "2025-03-01T12:00:00+00:00"
    cpu, card, stopped, failed = exported["runs"]
    assert cpu["samples_s"] == list(samples_of(request()))
    assert cpu["result"]["type"] == "run_finished"
    assert (cpu["speed_up"], card["speed_up"] > 0) == (None, True)
    assert (stopped["state"], stopped["result"]) == ("stopped", None)
    assert stopped["samples_s"] == [0.001, 0.002, 0.003]
    assert (failed["failure_kind"], failed["failure"]) == (
        "too_large", "It needs 64 GiB, 3 GiB are free.",
    )  # fmt: skip
    assert json.loads(to_json([], None, ""))["runs"] == []


def test_markdown_is_a_table_of_what_people_read() -> None:
    text = to_markdown([*some_runs(), finished_run(request(), device_name="A|B")])
    head, rule, *rows = text.strip().split("\n")
    assert len(rows) == 5
    assert head.startswith("| Workload | Size | Precision | Device | Median |")
    assert set(rule) == set("|-: ")
    assert "| 512\u202f×\u202f512 | float32 | Ryzen 7 5700G | 262\u202fµs |" in rows[0]
    assert "| – | ✔ checked" in rows[0]
    assert rows[2].endswith("| 3 | – | – | stopped |")
    assert rows[3].endswith("| failed: It needs 64 GiB, 3 GiB are free. |")
    assert "A\\|B" in rows[4]


def test_markdown_renders_no_html_and_keeps_a_name_in_its_cell() -> None:
    text = to_markdown([finished_run(request(), device_name="<img onerror=x>\n# A & B\\|C")])
    *_, row = text.strip().split("\n")
    assert "&lt;img onerror=x\\> \\# A &amp; B\\\\\\|C" in row
    assert "<" not in text
