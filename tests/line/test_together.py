"""Devices of this PC and of another one train together: real engines, torchrun and gloo."""

from __future__ import annotations

import threading

import psutil
import pytest

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.engine import together_group
from gpu_studio.engine.dispatcher import Dispatcher
from tests.engine.answers import run_request
from tests.patience import outliving

_TOGETHER = ("cpu", "attic/cpu")


def request_of(there, **changes):
    options = {"way": "DistributedDataParallel", "processes": "2"}
    return run_request(
        **{
            "workload": "data_parallel", "size": 64, "options": options, "budget_s": 0.2,
            "together": _TOGETHER, "other_pcs": (there,), **changes,
        }
    )  # fmt: skip


def last_event(request):
    *_, last = Dispatcher().run(request, threading.Event())
    return last


def test_two_pcs_train_together_and_nothing_of_them_is_left(there):
    last = last_event(request_of(there))
    assert isinstance(last, RunFinished), last
    assert last.verified, last.verification
    assert last.together == _TOGETHER
    assert 0 < last.training.efficiency.low <= last.training.efficiency.high < 2
    assert last.training.network_bytes_per_s.median > 0
    assert set(last.training.waiting) == set(_TOGETHER)
    assert "32 on cpu, 32 on attic/cpu" in " ".join(last.findings)
    assert there.host not in str(last)
    assert outliving(psutil.Process().children(recursive=True)) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"other_pcs": ()}, "no way to attic"),
        ({"together": ("attic/cpu", "cpu")}, "comes first"),
        ({"together": ("cpu",)}, "Two or four"),
        ({"size": 63}, "63 samples"),
        ({"workload": "matmul", "options": {}}, "several PCs"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts(there, monkeypatch, changes, words):
    monkeypatch.setattr(together_group, "TogetherGroup", None)
    last = last_event(request_of(there, **changes))
    assert isinstance(last, RunFailed)
    assert last.failure.kind is FailureKind.BAD_REQUEST
    assert words in last.failure.message
