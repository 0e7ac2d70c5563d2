import json
import re

import msgspec
import pytest

from gpu_studio.cli.command import DONE, DOUBTFUL
from gpu_studio.core.benchmark import workloads
from gpu_studio.core.benchmark.workloads import CONV2D
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import (
    Limit,
    NaiveTime,
    RunFailed,
    RunWorkload,
    WorkloadDescription,
)
from gpu_studio.core.parameter import parameters_of
from tests.cli.bench.terminal import CROSSING, WORKLOADS, asked, conv2d, custom_kernel
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.run_answers import run_events


def test_what_is_asked_reaches_the_engine(engines, type_in):
    status, _, errors = type_in(
        "conv2d", "--option", "cudnn=benchmark", "--time", "0.25", "--device", "cuda:0,cpu"
    )
    assert (status, errors) == (0, "")
    runs = asked(engines)
    # its own sizes and its own dtype where the usual ones are not the workload's; the CPU first
    assert [(run.size, run.device) for run in runs] == [
        (size, device) for size in (1, 8, 64) for device in ("cpu", "cuda:0")
    ]
    assert {(run.dtype, run.budget_s, run.cache, run.naive) for run in runs} == {
        ("float16", 0.25, "hot", False)
    }
    assert all(run.options == {"cudnn": "benchmark"} for run in runs)
    type_in("matmul", "--cold", "--naive", "--size", "64")
    assert {(run.cache, run.naive) for run in asked(engines)[6:]} == {("cold", True)}


SWITCHES = [one for one in parameters_of(RunWorkload) if one.is_switch]


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda one: one.name)
def test_every_switch_reaches_the_engine_and_a_workload_may_refuse_it(engines, type_in, switch):
    type_in("matmul", "--size", "64", switch.flag)
    assert [switch.is_on(run) for run in asked(engines)][-1]
    others = [one for one in SWITCHES if one is not switch]
    assert not any(one.is_on(run) for run in asked(engines) for one in others)
    proud = msgspec.structs.replace(conv2d(), refuses={switch.name: "Not with me."})
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=(proud,))]
    status, _, errors = type_in("conv2d", switch.flag)
    assert (status, "Not with me." in errors) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["matmul", "--sweep", "512:64"], "512:64"),
        (["matmul", "--sweep", "512"], "64:4096"),
        (["matmul", "--sweep", "64:512", "--size", "64"], "--sweep"),
        (["matmul", "--time", "1day"], "6min"),
        (["matmul", "--save", "a.csv", "--save", "b.csv"], "ending"),
        (["matmul", "--option", "cudnn"], "NAME=VALUE"),
        (["matmul", "--option", "=x"], "NAME=VALUE"),
        (["matmul", "--option", "a=b"], "matmul"),
        (["conv2d", "--option", "a=b"], "cudnn"),
        (["conv2d", "--option", "cudnn=fast"], "default or benchmark"),
        (["conv2d", "--cold"], "never cold"),
        (["conv2d", "--naive"], "never naive"),
        (["conv2d", "--dtype", "float32"], "float16, float64"),
        (["card_only", "--device", "cpu"], "NVIDIA cards"),
        (["nothing"], "elementwise, matmul"),
        (["matmul", "--save", "results.exe"], ".csv"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(engines, type_in, arguments, words):
    status, output, errors = type_in(*arguments)
    assert (status, output) == (2, "")
    (line,) = errors.splitlines()
    assert words in line
    assert asked(engines) == []


def test_a_doubt_about_a_time_is_in_json_and_in_the_status(engines, type_in):
    engines.scripts[RunWorkload] = lambda _, request: run_events(request, other_processes=True)
    alone, _, _ = type_in("matmul", "--size", "64", "--device", "cpu")
    status, output, _ = type_in("matmul", "--size", "64", "--json", "-q")
    finished = json.loads(output.splitlines()[-1])
    assert (alone, status) == (DONE, DOUBTFUL), "nothing is compared with one device alone"
    assert (finished["type"], finished["schema"]) == ("run_finished", 1)
    assert [doubt["kind"] for doubt in finished["in_doubt"]] == ["shared card"]
    assert "program" in finished["in_doubt"][0]["sentence"]


def test_a_quiet_command_says_what_failed_and_nothing_else(engines, type_in):
    failure = Failure(FailureKind.TOO_LARGE, "Too large.")
    engines.scripts[RunWorkload] = lambda _, request: [
        RunFailed(run_id=request.run_id, failure=failure)
    ]
    status, _, errors = type_in("matmul", "--size", "64", "--device", "cpu", "-q")
    assert (status, len(errors.splitlines())) == (1, 1)
    assert "Too large." in errors


def test_a_workload_that_cannot_run_here_says_what_would_make_it_run(engines, type_in):
    status, output, errors = type_in("custom_kernel")
    assert (status, output) == (1, "")
    assert "custom_kernel" in errors
    assert custom_kernel().skipped in errors
    engines.scripts[DescribeEngine] = [without_cuda := described(workloads=WORKLOADS)]
    status, _, errors = type_in("card_only")
    assert status == 1
    assert "card_only" in errors
    assert without_cuda.cuda_reason in errors


REFUSED = Failure(FailureKind.BAD_REQUEST, "It has no other memory.")
SMALLEST_ON_CPU = ("matmul", "64 × 64", "float32", "cpu")


def refuse_the_cpu(request):
    if request.device != "cpu":
        return run_events(request)
    return [RunFailed(run_id=request.run_id, failure=REFUSED)]


@pytest.mark.parametrize(
    ("named", "status"),
    [([], 0), (["--device", "cpu,cuda:0"], 1)],
    ids=["every device", "the CPU by its name"],
)
def test_what_is_not_for_every_device_is_skipped_unless_it_was_named(
    engines, type_in, named, status
):
    engines.scripts[RunWorkload] = lambda _, request: refuse_the_cpu(request)
    created, output, errors = type_in("matmul", "--size", "64", *named)
    assert created == status
    (line,) = errors.splitlines()
    assert all(fact in line for fact in (*SMALLEST_ON_CPU, REFUSED.message))
    assert ("skipped" in line) == (status == 0)
    assert "cuda:0" in output


def test_the_list_has_sizes_options_and_where_they_run_and_starts_no_engine(engines, type_in):
    status, output, errors = type_in("list")
    assert (status, errors) == (0, "")
    assert CONV2D.size_title in output
    assert all(f"batch of {size}" in output for size in CONV2D.sizes)
    assert "--option cudnn=default|benchmark" in output
    assert "runs only on NVIDIA cards" in output
    _, output, _ = type_in("list", "--json")
    listed = [msgspec.convert(one, WorkloadDescription) for one in json.loads(output)["workloads"]]
    assert tuple(listed) == workloads.WORKLOADS
    assert engines.made == []


def test_a_sweep_takes_powers_of_two_with_both_ends_and_then_refines(engines, type_in):
    status, output, errors = type_in("matmul", "--sweep", "100:3000", "--json")
    assert status == 0
    sizes = [run.size for run in asked(engines) if run.device == "cuda:0"]
    assert sizes[:7] == [100, 128, 256, 512, 1024, 2048, 3000]
    finer = sizes[7:]
    assert finer
    assert all(256 < size < 1024 for size in finer)
    events = [json.loads(line) for line in output.splitlines()]
    ends = [event for event in events if event["type"] == "run_finished"]
    assert [(end["size"], end["device"]) for end in ends] == [
        (run.size, run.device) for run in asked(engines)
    ]
    assert len({event["run_id"] for event in ends}) == len(ends)
    assert events[-1]["type"] == "run_finished"
    (crossover,) = (line for line in errors.splitlines() if "overtakes" in line)
    assert "GT 1030" in crossover
    about = re.search(r"about (\d+) × \1\b", crossover)
    assert about
    assert int(about[1]) == pytest.approx(CROSSING, rel=0.03)


def test_a_sweep_in_words_ends_with_verdict_and_crossover(type_in):
    status, output, errors = type_in("matmul", "--sweep", "64:1024")
    assert (status, errors) == (0, "")
    *_, blank, verdict = output.splitlines()
    assert blank == ""
    assert "3.4 × faster at 1024 × 1024" in verdict
    assert "It overtakes the CPU at about" in verdict


def test_transfers_are_timed_beside_and_have_a_verdict(engines, type_in):
    _, output, _ = type_in("matmul", "--size", "64,2048", "--transfers")
    modes = [(run.device, run.transfers) for run in asked(engines)]
    assert modes == [("cpu", False), ("cuda:0", False), ("cuda:0", True)] * 2
    assert "cuda:0+copies" in output
    verdict = output.splitlines()[-1].replace("\u202f", " ")
    assert verdict.startswith("The GeForce GT 1030 against the CPU (matmul, float32): 6.8 ×")
    assert "The GeForce GT 1030 with copies against the CPU: " in verdict


def test_each_dtype_is_finished_before_the_next(engines, type_in):
    _, output, _ = type_in("matmul", "--size", "64", "--dtype", "float32,float16")
    assert [(run.dtype, run.device) for run in asked(engines)] == [
        ("float32", "cpu"), ("float32", "cuda:0"), ("float16", "cpu"), ("float16", "cuda:0"),
    ]  # fmt: skip
    assert output.count("against the CPU") == 2
    assert sum(line.startswith("matmul, ") for line in output.splitlines()) == 1


# ── exports ──────────────────────────────────────────────────────────────────────────────────────


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
