import pytest
import torch

from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.tensors import DTYPES
from gpu_studio.engine.workloads import launch
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.launch import Launch
from tests.engine.answers import ask, run_request

CPU, CARD = torch.device("cpu"), torch.device("cuda", 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_asking_runs_and_is_verified(dtype: str):
    result = ask(run_request(workload="launch", size=1, dtype=dtype))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True
    assert result.verification.endswith("all of 1 number")
    assert result.calls_per_sample > 1
    assert result.details.findings == ()  # no launch is asked of the CPU


def test_on_a_card_asking_and_waiting_are_told_apart(monkeypatch: pytest.MonkeyPatch):
    now_s = [0.0]

    def asked() -> None:
        now_s[0] += 4e-6

    def waited(device: torch.device) -> None:
        now_s[0] += 8e-6

    monkeypatch.setattr(launch.time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(torch.cuda, "synchronize", waited)
    (finding,) = Launch().findings(Case(device=CARD, size=1), asked)
    text = finding.replace("\u202f", " ")
    assert text.index("4.00 µs of the CPU's time") < text.index("12.0 µs")
