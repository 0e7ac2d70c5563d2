"""DataParallel in one process."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gpu_studio.engine.workloads.replicated import ModuleCall
from tests.engine.workloads.data_parallel.cases import WORKLOAD, case_of

if TYPE_CHECKING:
    import pytest


def test_on_the_cpu_dataparallel_is_the_plain_network_and_says_so():
    case = case_of(way="DataParallel", processes="4")
    check = WORKLOAD.verify(case)
    assert check.verified, check.sentence
    with contextlib.closing(WORKLOAD.prepare(case)) as call:
        call()
        assert call.curves() == {}
        (found,) = call.findings()
    assert "runs the plain network" in found


def test_a_step_that_learns_wrong_is_not_verified(monkeypatch: pytest.MonkeyPatch):
    step = ModuleCall._step

    def twice(self: ModuleCall, model: Any) -> object:
        step(self, model)
        return step(self, model)

    monkeypatch.setattr(ModuleCall, "_step", twice)
    assert WORKLOAD.verify(case_of()).verified is False
