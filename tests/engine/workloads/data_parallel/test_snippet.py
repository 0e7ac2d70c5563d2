"""The lines of PyTorch, as they stand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.engine.workloads.data_parallel.cases import PROCESSES, WORKLOAD, case_of
from tests.engine.workloads.group_script import output_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("processes", ["1", "2", "4"])
def test_the_snippet_of_one_program_runs_as_it_stands(
    processes: str, capsys: pytest.CaptureFixture[str]
):
    lines = WORKLOAD.snippet(case_of(way="DataParallel", processes=processes))
    exec(compile(lines, "snippet", "exec"), {"__name__": "__main__"})
    assert float(capsys.readouterr().out.removesuffix(" s a call\n")) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="the snippet of Windows needs no torchrun")
def test_the_snippet_of_processes_runs_as_its_first_line_says(tmp_path: Path):
    texts = {
        processes: WORKLOAD.snippet(case_of(way=PROCESSES, processes=processes))
        for processes in ("1", "2", "4")
    }
    (tmp_path / "share.py").write_text(texts["1"])  # it meets torchrun as several would
    torchrun, *arguments = texts["1"].splitlines()[0].partition("then: ")[2].split()
    assert torchrun == "torchrun"
    printed = output_of(
        [sys.executable, "-m", "torch.distributed.run", *arguments], cwd=tmp_path, timeout=240
    )
    assert float(printed.removesuffix(" s a call\n")) > 0
    for processes in ("1", "4"):  # they differ in two numbers alone
        devices = ["cpu"] * int(processes)
        changed = texts["2"].replace("['cpu', 'cpu']", str(devices))
        changed = changed.replace("--nproc-per-node=2", f"--nproc-per-node={processes}")
        assert changed == texts[processes]
