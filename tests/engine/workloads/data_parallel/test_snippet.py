import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engine.workloads.data_parallel.cases import PROCESSES, WORKLOAD, case_of

# PyTorch's own threads, if a busy PC lets a process end before them: rare, and after the output.
_TORN_DOWN = "terminate called without an active exception"
_TRIES = 3


def output_of(command: Sequence[str], **options: Any) -> str:
    """Return what a script prints; it has to end with 0.

    One whose end PyTorch tore down is started again.
    """
    for _ in range(_TRIES):
        found = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        if found.returncode == 0 or _TORN_DOWN not in found.stderr:
            break
    assert found.returncode == 0, found.stderr
    return found.stdout


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


# A PyTorch without libuv, as those for Windows are: what asks for it ends in an error.
NO_LIBUV = """\
import sys
import torch.distributed
from torch._C import _distributed_c10d

whole = _distributed_c10d.TCPStore

class Lacking(whole):
    def __init__(self, *arguments, use_libuv=True, **options):
        if use_libuv:
            raise RuntimeError("built without libuv")
        super().__init__(*arguments, use_libuv=False, **options)

for module in list(sys.modules.values()):
    if getattr(module, "TCPStore", None) is whole:
        module.TCPStore = Lacking
"""


def windows_snippet(processes: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as windows:
        windows.setattr("sys.platform", "win32")
        return WORKLOAD.snippet(case_of(way=PROCESSES, processes=processes))


def test_the_snippet_of_processes_runs_without_libuv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = windows_snippet("1", monkeypatch)  # it meets torchrun and itself as several would
    several = text.replace("['cpu']", "['cpu', 'cpu']").replace("node=1", "node=2")
    assert several == windows_snippet("2", monkeypatch)
    name, _, command = text.splitlines()[0].removeprefix("# Save this as ").partition(", then: ")
    assert command == f"python {name}"
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(NO_LIBUV, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    printed = output_of([sys.executable, name], cwd=tmp_path, env=environment, timeout=90)
    assert float(printed.removesuffix(" s a call\n")) > 0
