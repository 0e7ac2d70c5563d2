import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine.benchmark import ceilings
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.copy import Copy
from tests.engine.answers import ask, run_request

CPU, CARD = torch.device("cpu"), torch.device("cuda", 0)


def case_of(device: torch.device, size: int = 1, **options: str) -> Case:
    return make_case(Copy.description, device, size, options=options)


def test_a_cpu_copies_within_its_memory(monkeypatch: pytest.MonkeyPatch):
    # On a busy PC, a peak is disturbed, and a disturbed one is none.
    monkeypatch.setattr(ceilings.UndisturbedRate, "get", lambda _rate, measure: measure())
    result = ask(run_request(workload="copy", size=1))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True
    assert result.verification.replace("\u202f", " ").endswith("all of 1 MiB")
    assert result.options == {"direction": "d2d", "memory": "pageable"}
    assert result.details.bytes_per_call == 2 << 20  # read and written
    assert result.throughput == (2 << 20) / result.median_s
    assert list(result.details.parts_s) == ["copy"]
    assert result.reached.ceiling.startswith("memory bandwidth")


@pytest.mark.parametrize(
    ("device", "options", "words"),
    [
        (CPU, {"direction": "h2d"}, "The CPU has no second memory"),
        (CPU, {"direction": "d2h"}, "choose the direction d2d, or a card"),
        (CARD, {"memory": "pinned"}, "would not use pinned memory"),
    ],
)
def test_a_copy_that_goes_nowhere_is_refused(
    device: torch.device, options: dict[str, str], words: str
):
    with pytest.raises(StudioError, match=words):
        Copy().check(case_of(device, **options))
    Copy().check(case_of(CARD, direction="h2d", memory="pinned"))


def test_over_pcie_what_is_sent_counts_once():
    within = Copy().work(case_of(CARD, 3))
    sent = Copy().work(case_of(CARD, 3, direction="d2h"))
    assert (within.bytes_moved, within.link_bytes, within.memory_bytes) == (6 << 20, 0, 6 << 20)
    assert (sent.throughput_work, sent.link_bytes) == (3 << 20, 3 << 20)
    assert (sent.memory_bytes, sent.host_bytes) == (3 << 20, 3 << 20)


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({}, ['source = torch.zeros(count, device="cuda:0")', "non_blocking=False"]),
        ({"direction": "h2d"}, ['source = torch.zeros(count, device="cpu")']),
        (
            {"direction": "d2h", "memory": "pinned"},
            ['target = torch.zeros(count, device="cpu", pin_memory=True)', "non_blocking=True"],
        ),
    ],
)
def test_the_snippet_copies_the_same_way(options: dict[str, str], lines: list[str]):
    snippet = Copy().snippet(case_of(CARD, **options))
    for line in [*lines, 'torch.cuda.synchronize("cuda:0")']:
        assert line in snippet
