"""``gpu-studio bench`` over a PC with a card, whose engine answers from a script."""

from __future__ import annotations

import json

import msgspec
import pytest

from gpu_studio.cli import answers, bench, bench_lists
from gpu_studio.cli import main as cli
from gpu_studio.cli.answers import Interrupt
from gpu_studio.cli.bench_runs import BenchRuns
from gpu_studio.cli.screen import Progress
from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import WorkloadOption
from gpu_studio.core.protocol import (
    DescribeEngine,
    NaiveTime,
    RunFailed,
    RunWorkload,
    WorkloadDescription,
)
from tests.fakes.descriptions import described, described_with_cuda, elementwise, matmul
from tests.fakes.run_answers import call_time_s, finished, run_events
from tests.fakes.scripted_engine import Engines

CROSSING = 471.4  # of call_time_s: 0.9e-9 × size² = 200 µs


def conv2d():
    return msgspec.structs.replace(
        matmul(), name="conv2d", sizes=(1, 8, 64), size_text="{size} pictures",
        size_title="Pictures in a batch", dtypes=("float16", "float64"),
        options=(
            WorkloadOption(
                name="cudnn", title="cuDNN", sentence="How.", values=("default", "benchmark")
            ),
        ),
        refuses={"cold": "conv2d is never cold.", "naive": "conv2d is never naive."},
    )  # fmt: skip


def custom_kernel():
    return msgspec.structs.replace(
        elementwise(), name="custom_kernel", device_kinds=("cuda",), skipped="It needs a card.",
    )  # fmt: skip


def card_only():
    return msgspec.structs.replace(elementwise(), name="card_only", device_kinds=("cuda",))


WORKLOADS = (elementwise(), matmul(), conv2d(), custom_kernel(), card_only())


@pytest.fixture
def engines(monkeypatch, tmp_path):
    """A PC with a card; the commands' engine, log and history are the test's own."""
    engines = Engines({DescribeEngine: [described_with_cuda(workloads=WORKLOADS)]})
    for module in (bench, answers):
        monkeypatch.setattr(
            module, "ProcessEngine", lambda environment, log_path: engines(environment)
        )
    monkeypatch.setattr(bench_lists.platformdirs, "user_data_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(cli, "_start_log", lambda: tmp_path / "log")
    return engines


@pytest.fixture
def type_in(engines, capsys):
    def type_in(*arguments):
        status = cli.main(["bench", *arguments])
        output, errors = capsys.readouterr()
        return status, output, errors

    return type_in


def asked(engines):
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


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
    assert "Computing only, the GeForce GT 1030 and the CPU change places at about " in errors
    about = int(errors.split("at about ")[1].split()[0])
    assert about == pytest.approx(CROSSING, rel=0.03)


def test_a_sweep_in_words_ends_with_crossover_and_verdict(type_in):
    status, output, errors = type_in("matmul", "--sweep", "64:1024")
    assert (status, errors) == (0, "")
    *_, crossover, blank, verdict = output.splitlines()
    assert crossover.startswith("Computing only, the GeForce GT 1030 and the CPU change places")
    assert blank == ""
    assert verdict.startswith("On this PC the GeForce GT 1030 wins from ")
    assert "of the sizes measured" not in verdict


def test_a_sweep_without_a_crossing_says_so(type_in):
    _, output, _ = type_in("matmul", "--sweep", "64:256")
    assert (
        "Computing only, the GeForce GT 1030 is never faster from 64 x 64 to 256 x 256: the "
        "curves do not cross." in output.replace("×", "x")
    )
    _, output, _ = type_in("matmul", "--sweep", "64:256", "--device", "cpu")
    assert "only one device was measured" in output


def test_transfers_are_timed_beside_and_have_a_verdict(engines, type_in):
    _, output, _ = type_in("matmul", "--size", "64,2048", "--with-transfers")
    modes = [(run.device, run.transfers) for run in asked(engines)]
    assert modes == [("cpu", False), ("cuda:0", False), ("cuda:0", True)] * 2
    assert "cuda:0+copies" in output
    assert "With the transfers the GeForce GT 1030 wins from 2048 × 2048 on" in output


def test_each_dtype_is_finished_before_the_next(engines, type_in):
    _, output, _ = type_in("matmul", "--size", "64", "--dtype", "float32,float16")
    assert [(run.dtype, run.device) for run in asked(engines)] == [
        ("float32", "cpu"), ("float32", "cuda:0"), ("float16", "cpu"), ("float16", "cuda:0"),
    ]  # fmt: skip
    assert output.count("On this PC") == 2
    assert output.count("matmul, time of one call") == 1


def test_what_is_asked_reaches_the_engine(engines, type_in):
    status, _, errors = type_in(
        "conv2d", "--option", "cudnn=benchmark", "--budget-s", "0.25", "--device", "cuda:0,cpu"
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
    type_in("matmul", "--mode", "cold", "--naive", "--size", "64")
    assert {(run.cache, run.naive) for run in asked(engines)[6:]} == {("cold", True)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["matmul", "--sweep", "512:64"], "empty"),
        (["matmul", "--sweep", "512"], "64:4096"),
        (["matmul", "--sweep", "64:512", "--size", "64"], "not allowed with"),
        (["matmul", "--mode", "warm"], "hot or cold"),
        (["matmul", "--option", "cudnn"], "NAME=VALUE"),
        (["matmul", "--option", "=x"], "NAME=VALUE"),
        (["matmul", "--option", "a=b"], "it has none"),
        (["conv2d", "--option", "a=b"], "it has cudnn"),
        (["conv2d", "--option", "cudnn=fast"], "default, benchmark"),
        (["conv2d", "--mode", "cold"], "never cold"),
        (["conv2d", "--naive"], "never naive"),
        (["conv2d", "--dtype", "float32"], "float16, float64"),
        (["card_only", "--device", "cpu"], "it is for cuda"),
        (["nothing"], "elementwise, matmul"),
        (["matmul", "--export", "results.exe"], ".csv"),
        (["--preset", "gtx"], "gt1030"),
        (["--full-length"], "--preset"),
        (["matmul", "--preset", "gt1030"], "leave WORKLOAD out"),
        (["--preset", "gt1030", "--sweep", "1:2"], "leave --sweep out"),
        (["--preset", "gt1030", "--mode", "cold"], "leave --mode out"),
        (["--preset", "gt1030", "--with-transfers"], "leave --with-transfers out"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(engines, type_in, arguments, words):
    status, output, errors = type_in(*arguments)
    assert (status, output) == (2, "")
    (line,) = errors.splitlines()
    assert words in line
    assert asked(engines) == []


def test_a_workload_that_cannot_run_here_says_what_would_make_it_run(engines, type_in):
    assert type_in("custom_kernel") == (
        1, "", "gpu-studio: custom_kernel cannot run here: It needs a card.\n",
    )  # fmt: skip
    engines.scripts[DescribeEngine] = [described(workloads=WORKLOADS)]
    status, _, errors = type_in("card_only")
    assert status == 1
    assert "card_only needs a card: This PyTorch was built without CUDA." in errors


def test_what_a_result_has_to_say_stands_under_its_row(engines, type_in):
    naive = NaiveTime(printed_s=1.0, finished_s=2.0, sentence="A script would print 1 s.")
    engines.scripts[RunWorkload] = lambda _, request: run_events(
        request, throttled=True, share_of_ceiling=0.1, ceiling="memory bandwidth, 48 GB/s",
        parts_s={"copy in": 1e-3, "compute": 2e-3}, peak_allocated_bytes=3 << 20, naive=naive,
        findings=("Found it.",),
    )  # fmt: skip
    _, output, _ = type_in("matmul", "--size", "64", "--device", "cuda:0")
    row, *lines = [line.strip() for line in output.splitlines()[2:]]
    assert "10 %" in row
    assert lines[:6] == [
        "in doubt: the card slowed itself down during the run",
        "10 % of this card's memory bandwidth, 48 GB/s: low. The card slowed itself down: it was "
        "too hot, or at its power limit.",
        "of one call: copy in 1.00 ms, compute 2.00 ms",
        "peak memory: 3.0 MiB",
        "a naive script: A script would print 1 s.",
        "Found it.",
    ]


def test_a_finding_is_told_once_and_not_under_every_row(engines, type_in):
    engines.scripts[RunWorkload] = lambda _, request: run_events(
        request, throttled=True, findings=("It is so.", f"At {request.size} it is so."),
    )  # fmt: skip
    _, output, _ = type_in("matmul", "--size", "64,128", "--device", "cuda:0")
    assert output.count("It is so.") == 1
    assert output.count("At 64 it is so.") == output.count("At 128 it is so.") == 1
    assert output.count("in doubt: the card slowed itself down") == 2


def test_faster_than_memory_is_called_cached(engines, type_in):
    engines.scripts[RunWorkload] = lambda _, request: run_events(
        request, share_of_ceiling=3.7, ceiling="memory bandwidth, 48 GB/s"
    )
    _, output, _ = type_in("matmul", "--size", "64", "--device", "cpu")
    assert "cached" in output
    assert "370" not in output


def test_finished_runs_are_kept_and_listed(engines, type_in, tmp_path):
    type_in("matmul", "--size", "64", "--with-transfers")
    assert len(list((tmp_path / "history").iterdir())) == 3
    type_in("matmul", "--size", "64", "--no-history")
    assert len(list((tmp_path / "history").iterdir())) == 3
    (tmp_path / "history" / "broken.json").write_text("{")
    status, output, errors = type_in("--history")
    assert status == 0
    assert len(output.splitlines()) == 3
    assert output.count("with transfers") == 1
    assert "GeForce GT 1030" in output
    assert "broken.json: This file is refused" in errors
    _, output, _ = type_in("--history", "--json")
    listed = json.loads(output)
    assert len(listed["entries"]) == 3
    assert listed["refused"][0]["file_name"] == "broken.json"


def listed(type_in):
    return [line.split()[0] for line in type_in("--history")[1].splitlines()]


def test_a_kept_run_is_named_and_deleted_by_its_key_or_the_end_of_it(type_in):
    type_in("matmul", "--size", "64,128", "--device", "cpu")
    first, second = listed(type_in)
    status, output, _ = type_in("--rename", first, "before")
    assert (status, "“before”" in output) == (0, True)
    assert "“before”" in type_in("--history")[1].splitlines()[0]
    assert type_in("--rename", first[-8:], "")[0] == 0
    assert "“" not in type_in("--history")[1]
    status, output, _ = type_in("--delete", first[-8:])
    assert (status, output.startswith(f"deleted: {first}")) == (0, True)
    assert listed(type_in) == [second]


def test_an_unknown_or_ambiguous_key_deletes_nothing(type_in, tmp_path):
    type_in("matmul", "--size", "64,128", "--device", "cpu")
    keys = listed(type_in)
    folder = tmp_path / "history"
    twin = "20260101000000-" + keys[0].split("-")[1]
    (folder / f"{twin}.json").write_bytes((folder / f"{keys[0]}.json").read_bytes())
    for key, said in (
        ("nothing", "No kept run has the key “nothing”"),
        ("", "No kept run has the key “”"),
        ("../../etc/passwd", "No kept run has the key"),
        (keys[0][-8:], "is the end of 2 runs' keys"),
    ):
        status, output, errors = type_in("--delete", keys[1], "--delete", key)
        assert (status, output) == (2, "")
        assert said in errors
    assert len(listed(type_in)) == 3


def test_results_from_another_pc_are_kept_as_recordings(type_in, tmp_path):
    path = tmp_path / "theirs.json"
    type_in("matmul", "--size", "64,128", "--device", "cpu", "--no-history", "--export", str(path))
    assert type_in("--import", str(path)) == (
        0, "2 results kept, labelled “imported from theirs.json”.\n", "",
    )  # fmt: skip
    _, output, _ = type_in("--history")
    assert output.count("imported from theirs.json") == 2
    path.write_text("{")
    status, output, errors = type_in("--import", str(path))
    assert (status, output) == (1, "")
    assert "This file is refused" in errors


def test_after_ctrl_c_nothing_else_begins(engines, capsys):
    interrupt = Interrupt()

    def script(_, request):
        interrupt.is_asked = True
        yield from run_events(request)

    engines.scripts[RunWorkload] = script
    runs = BenchRuns(engines(EngineEnvironment()), interrupt, Progress())
    for dtypes in (("float32",), ("float16",)):
        runs.make(
            Plan(workload="matmul", sizes=(64, 128), dtypes=dtypes, devices=("cpu",), budget_s=1.0)
        )
    assert len(runs.runs) == 1
    _, errors = capsys.readouterr()
    assert errors.startswith("Stopped after ")
    assert len(errors.splitlines()) == 1


def test_an_empty_history_says_where_it_would_be(type_in, tmp_path):
    status, output, _ = type_in("--history")
    assert (status, output) == (0, f"Nothing is kept yet in {tmp_path / 'history'}.\n")


def test_a_history_that_takes_nothing_is_said_once(type_in, tmp_path):
    (tmp_path / "history").write_text("in the way")
    status, output, errors = type_in("matmul", "--size", "64,128")
    assert status == 0
    assert output.count("128 × 128") == 2
    assert len(errors.splitlines()) == 1
    assert "kept in memory only" in errors


def test_a_failed_run_is_not_kept(engines, type_in, tmp_path):
    failure = Failure(FailureKind.OUT_OF_MEMORY, "No room.")
    engines.scripts[RunWorkload] = lambda _, request: [
        RunFailed(run_id=request.run_id, failure=failure)
    ]
    status, _, errors = type_in("matmul", "--size", "64", "--device", "cpu")
    assert (status, errors) == (1, "matmul 64 × 64 float32 on cpu: No room.\n")
    assert not (tmp_path / "history").exists()


def test_a_run_that_cannot_begin_is_told_in_its_workloads_sizes(engines, type_in):
    failure = Failure(FailureKind.BAD_REQUEST, "No.")
    engines.scripts[RunWorkload] = lambda _, request: [
        RunFailed(run_id=request.run_id, failure=failure)
    ]
    _, _, errors = type_in("conv2d", "--size", "8", "--device", "cpu")
    assert errors == "conv2d 8 pictures float16 on cpu: No.\n"


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


def test_the_list_tells_sizes_options_and_what_cannot_run(type_in):
    status, output, errors = type_in("--list")
    assert (status, errors) == (0, "")
    assert "Pictures in a batch: 1 pictures, 8 pictures, 64 pictures" in output
    assert "--option cudnn=default|benchmark  How." in output
    assert "cannot run here: It needs a card." in output
    _, output, _ = type_in("--list", "--json")
    listed = [msgspec.convert(one, WorkloadDescription) for one in json.loads(output)["workloads"]]
    assert listed == list(WORKLOADS)


def test_the_gt_1030_experiment_sets_this_pc_beside_the_published_table(engines, type_in):
    status, output, errors = type_in("--preset", "gt1030", "--budget-s", "0.5")
    assert (status, errors) == (0, "")
    assert [(run.size, run.dtype, run.device, run.budget_s) for run in asked(engines)] == [
        (size, "float16", device, 0.5) for size in (512, 2048, 4096) for device in ("cpu", "cuda:0")
    ]
    assert "by Radosław Śmigielski, 2025-03-01" in output.splitlines()[0]
    table = output.replace("×", "x").split("\n\n")[1].splitlines()
    assert table[1].split()[:5] == ["512", "x", "512", "512", "64.0"]
    assert sum("(published)" in line for line in table) == 6
    scaled = [line for line in table if "scaled from 160 calls to 4096" in line]
    assert len(scaled) == 2
    cpu_s = 4096 * call_time_s(asked(engines)[4])
    assert f"{cpu_s:.1f} s" in scaled[0]


def test_the_full_length_is_told_before_it_begins(engines, type_in):
    _, output, _ = type_in("--preset", "gt1030", "--full-length", "--device", "cpu")
    runs = asked(engines)
    assert len(runs) == 6
    for short, long in zip(runs[:3], runs[3:], strict=True):
        assert long.size == short.size
        assert long.budget_s == pytest.approx(long.size * call_time_s(long), rel=0.01)
    lines = output.splitlines()
    told = next(n for n, line in enumerate(lines) if line.startswith("The program in full length"))
    assert sum("4096 × 4096" in line for line in lines[:told]) == 1
    assert "about 77.4 s here" in lines[told]


def test_the_full_length_is_not_begun_after_a_failure(engines, type_in):
    failure = Failure(FailureKind.TOO_LARGE, "Too large.")

    def script(_, request):
        if request.size == 4096:
            return [RunFailed(run_id=request.run_id, failure=failure)]
        return run_events(request)

    engines.scripts[RunWorkload] = script
    status, output, _ = type_in("--preset", "gt1030", "--full-length", "--device", "cpu")
    assert status == 1
    assert len(asked(engines)) == 3
    assert "4096" in output  # the published rows stand without this PC


def test_a_refined_size_that_fails_ends_the_sweep_with_what_is_known(engines, type_in):
    failure = Failure(FailureKind.OUT_OF_MEMORY, "No room.")

    def script(_, request):
        if request.size not in (64, 128, 256, 512, 1024):
            return [RunFailed(run_id=request.run_id, failure=failure)]
        return [finished(request, (call_time_s(request),) * 10)]

    engines.scripts[RunWorkload] = script
    status, output, _ = type_in("matmul", "--sweep", "64:1024")
    assert status == 1
    assert "(measured: between 256 × 256 and 512 × 512)" in output
