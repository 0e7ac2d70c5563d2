"""What a pitfall may use: a fresh process, and an error without its frames."""

from __future__ import annotations

import threading

import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.engine.pitfalls.pitfall import Bench, error_of


def bench() -> Bench:
    return Bench(torch.device("cpu"), threading.Event())


def test_a_stop_ends_a_fresh_process():
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    with pytest.raises(StudioError, match="stopped"):
        Bench(torch.device("cpu"), stop).run_script("import time; time.sleep(60)")
    timer.join()


def test_a_fresh_process_tells_its_output_and_its_error():
    end = bench().run_script("print('é'); raise ValueError('no')")
    assert (end.output, end.error) == ("é", "ValueError: no")
    end = bench().run_script("import os; os._exit(3)")
    assert (end.output, end.error) == ("", "The process ended with 3.")


def test_an_error_is_told_without_its_frames():
    kept = []

    def fail() -> None:
        x = torch.ones(3)
        kept.append(x)
        raise KeyError("x")

    assert error_of(fail) == "KeyError: 'x'"
    assert error_of(lambda: None) == ""
