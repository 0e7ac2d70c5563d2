from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import torch

from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.data_parallel import DataParallel
from tests.engine.workloads.group_script import output_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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


def snippet_of(processes: str, monkeypatch: pytest.MonkeyPatch) -> str:
    workload = DataParallel()
    options = {"way": "DistributedDataParallel", "processes": processes}
    case = make_case(workload.description, torch.device("cpu"), 16, options=options)
    with monkeypatch.context() as windows:
        windows.setattr("sys.platform", "win32")
        return workload.snippet(case)


def test_the_snippet_of_processes_runs_without_libuv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = snippet_of("1", monkeypatch)  # it meets torchrun and itself as several would
    several = text.replace("['cpu']", "['cpu', 'cpu']").replace("node=1", "node=2")
    assert several == snippet_of("2", monkeypatch)
    name, _, command = text.splitlines()[0].removeprefix("# Save this as ").partition(", then: ")
    assert command == f"python {name}"
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(NO_LIBUV, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    printed = output_of([sys.executable, name], cwd=tmp_path, env=environment, timeout=90)
    assert float(printed.removesuffix(" s a call\n")) > 0
