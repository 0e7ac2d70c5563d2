"""What runs on this PC, and since when."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from gpu_studio.hardware.running import is_program_running, pc_started_at_s


def test_the_pc_started_before_this_program() -> None:
    assert 0 < pc_started_at_s() <= time.time()


def test_this_program_runs_and_did_not_run_in_1970() -> None:
    assert is_program_running(os.getpid(), time.time() + 60)
    assert not is_program_running(os.getpid(), 1000.0)


def test_a_program_that_has_ended_does_not_run() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_program_running(ended.pid, time.time() + 60)
