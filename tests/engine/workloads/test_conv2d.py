import contextlib
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gpu_studio.engine.workloads import conv2d
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.conv2d import CHOICES, Conv2d, cudnn_flags

CPU = torch.device("cpu")
WORKLOAD = Conv2d()


def case_of(size: int = 1, dtype: str = "float32", cudnn: str = "default") -> Case:
    return make_case(WORKLOAD.description, CPU, size, dtype, options={"cudnn": cudnn})


@contextlib.contextmanager
def call_of(**changes: Any) -> Iterator[Any]:
    with contextlib.closing(WORKLOAD.prepare(case_of(**changes))) as call:
        yield call


def flags() -> tuple[bool, bool]:
    return torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic


@pytest.fixture(autouse=True)
def flags_stay() -> Iterator[None]:
    before = flags()
    yield
    assert flags() == before


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """float16 takes a second a call on a CPU without instructions for it."""
    monkeypatch.setattr(conv2d, "SIDE", 8)
    monkeypatch.setattr(conv2d, "CHANNELS", 8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("size", [1, 3])
def test_a_device_that_computes_right_is_verified(dtype: str, size: int, small: None):
    check = WORKLOAD.verify(case_of(size, dtype))
    assert check.verified, check.sentence


def test_the_size_that_is_timed_is_verified():
    check = WORKLOAD.verify(case_of(3))
    assert check.verified, check.sentence
    (compared,) = check.compared
    assert compared.startswith("two of 3 ")


def test_its_bytes_are_those_of_its_tensors_and_a_kernel_has_a_third_of_the_work():
    """Each is read or written once per pass; the images, twice, and the gradients they get."""
    with call_of(size=2) as call:
        pictures, weights = call._pictures, call._weights
        result, input_gradient, weight_gradient = call()
    forward = (pictures, weights, result)
    backward = (pictures, weights, result, input_gradient, weight_gradient)
    work = WORKLOAD.work(case_of(2))
    assert work.bytes_moved == sum(one.nbytes for one in (*forward, *backward))
    assert work.throughput_work == work.operations
    kept = (pictures, weights, result, result, input_gradient, weight_gradient)
    assert work.memory_bytes == sum(one.nbytes for one in kept) + 4 * pictures.nbytes
    with FlopCounterMode(display=False) as counted:
        torch.nn.functional.conv2d(pictures, weights, padding="same")
    assert work.longest_kernel * work.operations == pytest.approx(counted.get_total_flops())


@pytest.mark.parametrize("choice", CHOICES)
def test_the_switches_are_set_while_a_call_is_open_and_set_back(choice: str, small: None):
    before = flags()
    with call_of(cudnn=choice):
        assert flags() == CHOICES[choice]
        assert flags() == ("benchmark" in choice, "deterministic" in choice)
    assert flags() == before
    WORKLOAD.verify(case_of(cudnn=choice))
    assert flags() == before


@pytest.mark.parametrize("before", [(True, True), (False, True)])
def test_what_was_set_before_is_what_is_set_back(before: tuple[bool, bool], small: None):
    initial = flags()
    try:
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = before
        with call_of(cudnn="benchmark"):
            pass
        assert flags() == before
        with pytest.raises(KeyError), cudnn_flags("benchmark"):
            raise KeyError
        assert flags() == before
    finally:
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = initial


def test_a_call_that_fails_at_once_sets_the_switches_back(monkeypatch: pytest.MonkeyPatch):
    def fail(self: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(conv2d.Conv2dCall, "__call__", fail)
    before = flags()
    with pytest.raises(MemoryError) as raised:
        WORKLOAD.prepare(case_of(cudnn="benchmark+deterministic"))
    # Now, and not when the garbage collector finds what the error's traceback holds.
    assert flags() == before
    assert raised.tb is not None


def test_equal_bits_are_reported_after_comparing_them(small: None):
    with call_of(cudnn="deterministic") as call:
        found = call.findings()
    assert found[0].startswith("With “deterministic”, ")
    assert "gave the same bits as the first" in found[0]
    assert "CPU's convolutions" in found[1]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_other_bits_are_counted(which: int, small: None, monkeypatch: pytest.MonkeyPatch):
    right = conv2d.Conv2dCall.__call__
    noise = cycle([0.0, 0.0, 0.5])  # every third call is off

    def unsteady(self: Any) -> tuple[torch.Tensor, ...]:
        results = tuple(one.detach().clone() for one in right(self))
        results[which].view(-1)[-1] += next(noise)
        return results

    with call_of() as call:
        monkeypatch.setattr(conv2d.Conv2dCall, "__call__", unsteady)
        monkeypatch.setattr(conv2d, "_LONGEST_REPEATING_S", 60.0)
        (sentence, _) = call.findings()
    # The first of nine is right; of the eight that follow, the third, sixth and ninth call are off.
    assert "3 of 8 repeated calls" in sentence
    assert "off by up to 5.0e-01" in sentence


def test_zeros_of_another_sign_are_other_bits():
    zero = torch.zeros(3)
    assert torch.equal(zero, -zero)
    assert not torch.equal(conv2d._bits(zero), conv2d._bits(-zero))
    none = torch.full((3,), torch.nan)
    assert torch.equal(conv2d._bits(none), conv2d._bits(none))


@pytest.mark.parametrize("choice", CHOICES)
def test_its_snippet_runs_as_it_stands(choice: str, capsys: pytest.CaptureFixture[str]):
    lines = WORKLOAD.snippet(case_of(cudnn=choice))
    with cudnn_flags("default"):
        exec(compile(lines, "snippet", "exec"), {"__name__": "__main__"})
        assert flags() == CHOICES[choice]
    printed = capsys.readouterr().out.splitlines()
    assert float(printed[0].removesuffix(" s a call")) > 0
    assert printed[1] == "same bits: True"
