import json
import threading
from pathlib import Path

import pytest
import torch

from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed
from gpu_studio.engine import client
from gpu_studio.engine.benchmark import naive
from gpu_studio.engine.benchmark.naive_script import NaiveAnswer
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.engine.pitfalls.pitfall import Bench
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload
from gpu_studio.process.steady_memory import glibc_version, steady_variables, without_steady

STEADY = {
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "GPU_STUDIO_STEADY": "1",
}
_SHOWN = "import json, os; print(json.dumps(sorted(n for n in os.environ if 'MALLOC' in n)))"
needs_glibc = pytest.mark.skipif(glibc_version() is None, reason="the C library is not glibc")


def test_freed_memory_is_kept():
    assert steady_variables({}, (2, 39)) == STEADY


@pytest.mark.parametrize(
    "users",
    [
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"MALLOC_MMAP_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"},
    ],
    ids=["trim", "mmap", "tunables"],
)
def test_the_users_own_settings_stay_everywhere(users: dict[str, str]):
    assert steady_variables(users, (2, 39)) == {}
    assert without_steady(users) == users


def _make_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in STEADY.items():
        monkeypatch.setenv(name, value)


def test_a_pitfalls_script_gets_the_defaults(monkeypatch: pytest.MonkeyPatch):
    _make_steady(monkeypatch)
    end = Bench(torch.device("cpu"), threading.Event()).run_script(_SHOWN)
    assert json.loads(end.output) == []


def test_the_naive_script_gets_the_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    _make_steady(monkeypatch)
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os\n"
        "print(json.dumps({'failure': ' '.join(n for n in os.environ if 'MALLOC' in n)}))\n"
    )
    monkeypatch.setattr(naive, "_SCRIPT", script)
    case = make_case(find_workload("matmul").description, torch.device("cpu"), 8, "float32")
    assert naive.time_naively("matmul", case, threading.Event()) == NaiveAnswer()


@needs_glibc
def test_the_engine_keeps_its_memory(monkeypatch: pytest.MonkeyPatch):
    for name in (*STEADY, "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "_MODULE", "tests.engine.scripted_child")
    monkeypatch.setenv("CHILD_PLAN", "answer")
    engine = ProcessEngine()
    try:
        (described,) = engine.run(DescribeEngine())
        assert isinstance(described, EngineDescribed)
        shown = Path(f"/proc/{described.pid}/environ").read_bytes().split(b"\0")
    finally:
        engine.close()
    assert b"MALLOC_TRIM_THRESHOLD_=1073741824" in shown
