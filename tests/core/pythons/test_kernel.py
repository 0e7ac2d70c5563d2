"""The small kernel in another Python: it runs there, changes nothing there, and is believed."""

from __future__ import annotations

import os
import sys

import pytest

from gpu_studio.core.pythons.coverage import PcCard, ThisPc
from gpu_studio.core.pythons.kernel import (
    MOST_BYTES,
    after_kernel,
    kernel_command,
    kernel_variables,
)
from gpu_studio.core.pythons.verdict import PythonVerdict, judged
from gpu_studio.process.child_call import ChildAnswer
from gpu_studio.process.command_call import call_command
from tests.core.pythons.made_pythons import find_pythons, make_venv, put_torch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="made of this system's Python")
PC = ThisPc((PcCard("RTX 3060", "RTX 3060 (8.6)", "NVIDIA", (8, 6)),), "580.95")
_TORCH = """
from torch import version
__version__ = version.__version__
float32 = 0
class Numbers:
    def to(self, device): return self
    def add_(self, one): return self
    def sum(self): {failure}; return self
    def __float__(self): return 524800.0
def arange(*_, **__): return Numbers()
class cuda:
    is_available = staticmethod(lambda: {count} > 0)
    device_count = staticmethod(lambda: {count})
    get_device_name = staticmethod(lambda at: "RTX 3060")
"""


@pytest.fixture
def tried(tmp_path):
    """Return what runs the kernel with a PyTorch that does what a test says."""

    def tried(version="2.20.0+cu129", *, count=1, failure="pass", code="", longest_s=60.0):
        site = make_venv(tmp_path / "app" / "venv")
        put_torch(site, version)
        (site / "torch" / "__init__.py").write_text(
            _TORCH.format(count=count, failure=failure) + code
        )
        before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
        (one,) = judged(find_pythons(str(tmp_path)).environments, PC)
        ended = call_command(
            kernel_command(one.environment), kernel_variables(os.environ),
            longest_s=longest_s, most_bytes=MOST_BYTES,
        )  # fmt: skip
        assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before
        return one, after_kernel(one, ended)

    return tried


def test_a_kernel_that_ran_is_believed_and_nothing_is_written(tried):
    before, after = tried()
    assert before.verdict is PythonVerdict.UNSURE
    assert (after.verdict, after.reason) == (PythonVerdict.RIGHT, "A kernel ran on RTX 3060.")


def test_a_kernel_that_ran_takes_the_line_back(tried):
    before, after = tried("2.7.1+cu118", code="cuda.get_device_name = lambda at: 'RTX 3060'")
    assert before.verdict is PythonVerdict.RIGHT
    assert after.reason == "A kernel ran on RTX 3060."
    wrong = before._replace(verdict=PythonVerdict.WRONG, covers=(("RTX 3060 (8.6)", False),))
    answer = b'{"version": "2", "cards": [{"name": "RTX 3060", "failed": ""}]}\n'
    assert after_kernel(wrong, ChildAnswer(answer, 0)).verdict is PythonVerdict.RIGHT


@pytest.mark.parametrize(
    ("does", "reason"),
    [({"failure": 'raise RuntimeError("no kernel image\\nmore")'},
      "No kernel ran: no kernel image"),
     ({"count": 0}, "No kernel ran: PyTorch there sees no card"),
     ({"code": 'print("chatter"); raise ImportError("libcudart.so.12 is missing")'},
      "PyTorch did not start there: ImportError: libcudart.so.12 is missing")],
)  # fmt: skip
def test_a_kernel_that_did_not_run_says_why(tried, does, reason):
    _, after = tried(**does)
    assert (after.verdict, after.reason) == (PythonVerdict.WRONG, reason)


def test_a_python_that_hangs_is_ended(tried):
    _, after = tried(code="import time; time.sleep(600)", longest_s=1.0)
    assert "did not answer" in after.reason


def test_the_variables_of_this_python_are_not_handed_on():
    given = {"PYTHONPATH": "p", "GPU_STUDIO_PACKAGES": "g", "VIRTUAL_ENV": "v", "PATH": "kept"}
    assert kernel_variables(given) == {"PATH": "kept"}
