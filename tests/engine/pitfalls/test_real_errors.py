import threading
from unittest.mock import Mock

import pytest
import torch

from gpu_studio.engine.pitfalls import exception_keeps_tensors, out_of_memory
from gpu_studio.engine.pitfalls.pitfall import Bench
from gpu_studio.engine.pitfalls.registry import find_pitfall
from tests.engine.pitfalls.outcomes import both, run_here


def test_mixed_devices_is_a_real_error_that_names_both():
    broken, fixed, _ = both("mixed_devices")
    assert broken.error.startswith("RuntimeError")
    assert "meta" in broken.error
    assert "cpu" in broken.error
    assert not fixed.error
    assert "(32, 500)" in fixed.sentence


def test_out_of_memory_in_the_allocators_words_and_what_fits():
    broken, _, figures = both("out_of_memory")
    assert broken.error.startswith("OutOfMemoryError: CUDA out of memory. Tried to allocate")
    assert figures["batch"] == figures["batch_broke"] / 2 == figures["batch_no_grad"] / 2
    assert figures["peak_bytes"] < figures["budget_bytes"]
    assert figures["peak_no_grad_bytes"] < figures["peak_bytes"]


def test_the_modelled_batch_is_counted_as_pytorch_keeps_it():
    """Training keeps the input and each ReLU's result, and has one more for a moment."""
    peak, error = out_of_memory._fill(1024, trains=True)
    each = 1024 * 1024 * 4
    assert not error
    assert peak == (1 + out_of_memory._LAYERS + 1) * each
    without, _ = out_of_memory._fill(1024, trains=False)
    assert without == 2 * each


def test_a_kept_exception_keeps_its_tensors():
    broken, fixed, _ = both("exception_keeps_tensors")
    assert broken.figures[0].value == exception_keeps_tensors._COUNT * 4
    assert fixed.figures[0].value == 0


def test_the_old_names_of_amp_warn():
    broken, fixed, _ = both("old_amp_import")
    assert "torch.amp" in broken.error
    assert broken.error.count("FutureWarning") == broken.figures[0].value == 2
    assert not fixed.error
    assert not broken.stand_in


def test_a_variable_that_is_set_too_late_changes_nothing():
    broken, fixed, _ = both("visible_devices_too_late")
    wanted = 2 if torch.get_num_threads() == 1 else 1
    assert broken.figures[0].value == torch.get_num_threads()
    assert fixed.figures[0].value == wanted
    assert "OMP_NUM_THREADS" in broken.stand_in


def test_an_error_of_the_cpu_does_not_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Bench, "run_script", run_here)
    broken, fixed, figures = both("sticky_error")
    assert broken.error == "look_up IndexError index out of range in self"
    assert broken.figures[0].value == 1
    assert not fixed.error
    assert figures["errors"] == 0


def test_where_no_batch_broke_the_fixed_part_says_so(monkeypatch: pytest.MonkeyPatch):
    """A large card that allows much: there is no batch "that broke" to speak of."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (2 << 40, 2 << 40))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: 0)
    for name in ("get_per_process_memory_fraction", "set_per_process_memory_fraction"):
        monkeypatch.setattr(torch.cuda, name, Mock(return_value=1.0), raising=False)
    monkeypatch.setattr(out_of_memory, "_network", Mock())
    monkeypatch.setattr(out_of_memory, "_first_that_breaks", lambda *_: (1 << 23, ""))
    card = Bench(torch.device("cuda:0"), threading.Event())
    result = find_pitfall("out_of_memory").run("fixed", card)
    assert result.sentence.startswith("Even a batch of 4194304 fits")
    assert not any(figure.name == "batch_broke" for figure in result.figures)
