import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.patience import PATIENCE_S, outliving

ROOT = Path(__file__).resolve().parent.parent.parent

_WITH_PATIENCE = """
import sys
from gpu_studio.__main__ import main
from gpu_studio.core import limits
# No engine is ended before, and no slow start is told.
limits.current = limits.current._replace(terminal_stop_s=3600.0, terminal_slow_s=3600.0)
sys.exit(main())
"""


@pytest.fixture
def long_run(environment):
    """A benchmark that measures for an hour, in a process group like a terminal's."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WITH_PATIENCE, "bench", "matmul", "--size", "64", "--device",
         "cpu", "--time", "3600", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd=ROOT,
        env=environment, start_new_session=True,
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def wait_for(process, kind):
    for line in process.stdout:
        if json.loads(line)["type"] == kind:
            return
    pytest.fail(f"no {kind}: {process.stderr.read()}")


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a process group")
def test_ctrl_c_stops_the_run_and_leaves_no_child(long_run):
    wait_for(long_run, "samples_measured")
    children = psutil.Process(long_run.pid).children(recursive=True)
    assert children
    os.killpg(long_run.pid, signal.SIGINT)  # a terminal sends it to the engine as well
    output, errors = long_run.communicate(timeout=PATIENCE_S)
    assert long_run.returncode == 130
    assert json.loads(output.splitlines()[-1])["type"] == "run_stopped"
    (line,) = errors.splitlines()
    assert line.startswith("Stopped after ")
    assert not outliving(children)


def test_a_reader_that_leaves_ends_the_run_without_a_trace(long_run):
    wait_for(long_run, "samples_measured")
    long_run.stdout.close()
    assert long_run.wait(PATIENCE_S) == 1
    assert long_run.stderr.read() == ""
    long_run.stdout = None
