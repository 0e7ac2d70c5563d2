import json
import subprocess
import sys
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


def test_an_older_glibc_gets_the_largest_threshold_that_it_accepts():
    """A larger one would be ignored, and every result over 128 KiB would then be new."""
    assert steady_variables({}, (2, 31)) == {**STEADY, "MALLOC_MMAP_THRESHOLD_": "33554432"}


def test_another_c_library_gets_no_settings():
    assert steady_variables({}, None) == {}


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


def test_an_engine_started_by_an_engine_is_steady_too():
    assert steady_variables(STEADY, (2, 39)) == STEADY


def test_a_users_script_gets_the_defaults_back():
    assert without_steady({"PATH": "/bin", **STEADY}) == {"PATH": "/bin"}


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


# A freed piece of 8 MiB raises the threshold of glibc, unless it is set: then the next one also
# comes from the system by itself.
_SCRIPT = """
import ctypes
from gpu_studio.process.steady_memory import give_large_back
give_large_back()
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]
class Counts(ctypes.Structure):
    names = "arena ordered small mapped mapped_bytes a b c d e".split()
    _fields_ = [(name, ctypes.c_size_t) for name in names]
c.mallinfo2.restype = Counts
c.free(c.malloc(8 << 20))
before = c.mallinfo2().mapped
c.malloc(8 << 20)
print(c.mallinfo2().mapped - before)
"""


@pytest.mark.skipif((glibc_version() or ()) < (2, 33), reason="mallinfo2 is of glibc 2.33")
@pytest.mark.parametrize(
    ("variables", "mapped"), [({}, "1"), ({"GLIBC_TUNABLES": "glibc.malloc.arena_max=4"}, "0")]
)
def test_a_large_piece_is_the_systems_again(variables, mapped, monkeypatch):
    monkeypatch.delenv("GPU_STUDIO_STEADY", raising=False)
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True)
    assert done.stdout.strip() == mapped, done.stderr
