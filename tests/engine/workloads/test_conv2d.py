import contextlib
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
import torch

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


@pytest.mark.parametrize(("dtype", "size"), [("float32", 3), ("float64", 1), ("float16", 1)])
def test_a_device_that_computes_right_is_verified(dtype: str, size: int, small: None):
    check = WORKLOAD.verify(case_of(size, dtype))
    assert check.verified, check.sentence


@pytest.mark.parametrize("choice", CHOICES)
def test_the_switches_are_set_while_a_call_is_open_and_set_back(choice: str, small: None):
    before = flags()
    with call_of(cudnn=choice):
        assert flags() == CHOICES[choice]
        assert flags() == ("benchmark" in choice, "deterministic" in choice)
    assert flags() == before
    WORKLOAD.verify(case_of(cudnn=choice))
    assert flags() == before


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


@pytest.mark.parametrize("which", [0, 2])
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


def test_its_snippet_runs_as_it_stands(capsys: pytest.CaptureFixture[str]):
    choice = "benchmark+deterministic"
    lines = WORKLOAD.snippet(case_of(cudnn=choice))
    with cudnn_flags("default"):
        exec(compile(lines, "snippet", "exec"), {"__name__": "__main__"})
        assert flags() == CHOICES[choice]
    printed = capsys.readouterr().out.splitlines()
    assert float(printed[0].removesuffix(" s a call")) > 0
    assert printed[1] == "same bits: True"
