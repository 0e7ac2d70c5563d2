"""``bench --script``: the question before it, and the same runs, table and verdict as ever."""

import io

import msgspec
import pytest

from gpu_studio.cli import runs as command
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import (
    OpenOwnCode,
    OwnCodeOpened,
    OwnCodePrinted,
    RunWorkload,
)
from tests.cli.bench.terminal import WORKLOADS, asked
from tests.fakes.descriptions import described_with_cuda, matmul
from tests.fakes.run_answers import run_events

LOST = RequestFailed(failure=Failure(FailureKind.OWN_CODE, "Line 2: it ends itself."))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import torch\ndef work(device): ...\n")
    return path


@pytest.fixture
def engines(engines_of):
    described = described_with_cuda(workloads=WORKLOADS)
    workload = msgspec.structs.replace(
        matmul(), name="mine.py", sizes=(8,), dtypes=("float16",), size_text="size {size}"
    )
    opened = [OwnCodePrinted(text="hello\x1b[31m\n"), OwnCodeOpened(workload=workload, call_s=0.1)]
    return engines_of(
        {
            DescribeEngine: [described],
            OpenOwnCode: opened,
            RunWorkload: lambda _, run: run_events(run),
        }
    )


def test_it_runs_as_a_workload_on_every_device(engines, typed, script):
    status, output, errors = typed("bench", "--script", str(script), "--yes", "--time", "1s")
    assert status == 0, errors
    assert "mine.py" in output
    assert "│ hello" in errors
    assert "\x1b" not in errors
    runs = asked(engines)
    assert [(run.workload, run.device, run.size, run.dtype) for run in runs] == [
        ("mine.py", "cpu", 8, "float16"), ("mine.py", "cuda:0", 8, "float16"),
    ]  # fmt: skip
    assert {run.code.text for run in runs} == {script.read_text()}


@pytest.mark.parametrize(("words", "budget_s"), [((), 18.0), (("--time", "2"), 2.0)])
def test_slow_code_gets_the_time_that_it_needs_unless_one_is_typed(
    engines, typed, script, words, budget_s
):
    opened = engines.scripts[OpenOwnCode][-1]
    engines.scripts[OpenOwnCode] = [msgspec.structs.replace(opened, call_s=1.5)]
    assert typed("bench", "--script", str(script), "--yes", *words)[0] == 0
    assert {run.budget_s for run in asked(engines)} == {budget_s}


def test_nothing_runs_before_it_is_allowed_and_then_nobody_is_asked_again(
    engines, typed, script, monkeypatch
):
    status, _, errors = typed("bench", "--script", str(script))
    assert status == 2
    assert str(script) in errors
    assert "--yes" in errors
    assert engines.requests == []
    assert typed("bench", "--script", str(script), "--yes")[0] == 0
    assert typed("bench", "--script", str(script))[0] == 0
    script.write_text("import torch  # another\ndef work(device): ...\n")
    assert typed("bench", "--script", str(script))[0] == 2

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(command.sys, "stdin", Terminal("no\n"))
    assert typed("bench", "--script", str(script))[0] == 2
    monkeypatch.setattr(command.sys, "stdin", Terminal("y\n"))
    assert typed("bench", "--script", str(script))[0] == 0


@pytest.mark.parametrize(
    ("last", "words"),
    [(LOST, "mine.py: Line 2: it ends itself."), (EngineEnded(exit_code=-11), "mine.py: PyTorch")],
)
def test_why_it_cannot_run_is_said(engines, typed, script, last, words):
    engines.scripts[OpenOwnCode] = [last]
    status, _, errors = typed("bench", "--script", str(script), "--yes")
    assert status == 1
    assert words in errors


def test_either_a_workload_or_a_script(engines, typed, script):
    for words in ((), ("matmul", "--script", str(script), "--yes")):
        status, _, errors = typed("bench", "run", *words)
        assert status == 2
        assert "--script" in errors
