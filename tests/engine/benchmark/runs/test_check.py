import pytest

from gpu_studio.core.benchmark.trust import doubts_of
from gpu_studio.core.messages.run_messages import RunFinished, RunPhaseChanged
from gpu_studio.engine.benchmark import admission
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.elementwise import Elementwise
from tests.engine.answers import ask, only, run_request


def test_a_large_result_is_checked_small_and_whole_then_by_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "_LONGEST_CHECK_S", 3600.0)
    events = ask(run_request(size=600, workload="matmul"))
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert "all of 512 × 512" in result.verification
    assert "16 rows of 600" in result.verification
    warm_up = only(RunPhaseChanged, events)[2]
    assert warm_up.expected_call_s > 0  # a long call is announced before the first one


def test_a_large_result_that_would_take_long_to_check_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admission, "_LONGEST_CHECK_S", 0.0)
    result = ask(run_request(size=600, workload="matmul"))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is None
    assert "too long to check" in result.verification
    assert "all of 512 × 512" in result.verification
    assert "not checked" in [doubt.word for doubt in doubts_of(result)]


def test_a_wrong_small_result_condemns_a_large_one_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(admission, "_LONGEST_CHECK_S", 0.0)
    wrong = Verification(False, "off by 3", ("all of it",))
    monkeypatch.setattr(Elementwise, "verify", lambda *arguments: wrong)
    result = ask(run_request(workload="elementwise", size=600))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is False


def test_a_wrong_result_ends_the_run_as_not_verified(monkeypatch: pytest.MonkeyPatch):
    wrong = Verification(False, "off by 3", ("all of it",))
    monkeypatch.setattr(Elementwise, "verify", lambda *arguments: wrong)
    result = ask(run_request())[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is False
    assert result.verification == "off by 3: all of it"
