import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.engine.pitfalls.pitfall import Bench, error_of
from tests.patience import until

# Never ends by itself, and says in a file that it began: its starter has gone by then.
_ENDLESS = """
import os, pathlib, time
pathlib.Path({begun!r}).with_suffix(".new").write_text(f"{{os.getpid()}} {{os.getcwd()}}")
pathlib.Path({begun!r}).with_suffix(".new").rename({begun!r})
time.sleep(3600)
"""
_ENGINE = """
import threading
import torch
from gpu_studio.engine.pitfalls.pitfall import Bench
Bench(torch.device("cpu"), threading.Event()).run_script({script!r})
"""


def _is_over(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def bench() -> Bench:
    return Bench(torch.device("cpu"), threading.Event())


def test_a_stop_ends_a_fresh_process():
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    with pytest.raises(StudioError, match="stopped"):
        Bench(torch.device("cpu"), stop).run_script("import time; time.sleep(60)")
    timer.join()


def test_a_fresh_process_reports_its_output_and_its_error():
    end = bench().run_script("print('é'); raise ValueError('no')")
    assert (end.output, end.error) == ("é", "ValueError: no")
    end = bench().run_script("import os; os._exit(3)")
    assert end.output == ""
    assert "exit status 3" in end.error


def test_a_fresh_process_does_not_outlive_a_killed_engine(tmp_path):
    begun = tmp_path / "begun"
    script = _ENDLESS.format(begun=str(begun))
    engine = subprocess.Popen([sys.executable, "-c", _ENGINE.format(script=script)])
    until(begun.exists)
    pid, folder = begun.read_text().split(" ", 1)
    fresh = psutil.Process(int(pid))
    engine.kill()
    engine.wait()
    until(lambda: _is_over(fresh))
    assert not Path(folder).exists()


def test_a_fresh_process_is_as_one_that_a_person_starts():
    end = bench().run_script(
        "import os, sys\n"
        "print(__name__, sys.argv == [__file__], sys.path[0] == os.path.dirname(__file__))\n"
        "print(repr(sys.stdin.read()), 'torch' in sys.modules, 'gpu_studio' in sys.modules)"
    )
    assert (end.output.splitlines(), end.error) == (["__main__ True True", "'' False False"], "")


def test_an_error_is_reported_without_its_frames():
    collected = []

    def fail() -> None:
        x = torch.ones(3)
        collected.append(x)
        raise KeyError("x")

    assert error_of(fail) == "KeyError: 'x'"
    assert error_of(lambda: None) == ""
