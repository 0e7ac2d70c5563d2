import msgspec
import pytest

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.run_messages import RunFailed
from gpu_studio.engine.benchmark import admission
from gpu_studio.engine.workloads.elementwise import Elementwise
from gpu_studio.engine.workloads.matmul import Matmul
from tests.engine.answers import ask, run_request


def failure_of(**changes: object):
    events = ask(run_request(**changes))
    assert isinstance(events[-1], RunFailed)
    assert events[-1].run_id == "r1"
    return events[-1].failure


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"workload": "crunch"}, FailureKind.BAD_REQUEST, ["crunch", "elementwise, matmul"]),
        ({"dtype": "float8"}, FailureKind.BAD_REQUEST, ["float8", "bfloat16"]),
        ({"size": 0}, FailureKind.BAD_REQUEST, ["size 0", "1048576"]),
        ({"size": -5}, FailureKind.BAD_REQUEST, ["-5"]),
        ({"size": 1 << 40}, FailureKind.BAD_REQUEST, [str(1 << 40)]),
        ({"budget_s": 0.0}, FailureKind.BAD_REQUEST, ["Time per run", "3600"]),
        ({"rest_s": -0.1}, FailureKind.BAD_REQUEST, ["rest"]),
        ({"rest_s": 2.0}, FailureKind.BAD_REQUEST, ["rest"]),
        ({"budget_s": float("nan")}, FailureKind.BAD_REQUEST, ["Time per run", "3600"]),
        ({"calls": 0}, FailureKind.BAD_REQUEST, ["0 calls", "1 to 1000000"]),
        ({"calls": 1_000_001}, FailureKind.BAD_REQUEST, ["1000001 calls"]),
        ({"device": "gpu"}, FailureKind.NO_SUCH_DEVICE, ["There is no gpu here", "cpu"]),
        ({"device": "cpu:1"}, FailureKind.NO_SUCH_DEVICE, ["There is no cpu:1 here"]),
    ],
)
def test_a_bad_request_gets_a_sentence_that_says_what_is_possible(
    changes: dict[str, object], kind: FailureKind, words: list[str]
):
    failure = failure_of(**changes)
    assert failure.kind is kind
    assert not failure.fatal
    for word in words:
        assert word in failure.message


def test_what_cannot_fit_is_refused_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Elementwise, "verify", lambda *arguments: pytest.fail("allocated"))
    monkeypatch.setattr(admission, "free_bytes", lambda device: 23 << 30)
    failure = failure_of(size=1 << 20)
    assert failure.kind is FailureKind.TOO_LARGE
    message = failure.message.replace("\u202f", " ")
    assert "1,048,576 × 1,048,576 in float32 needs 44 TiB, 23 GiB are free" in message


def test_a_workload_without_a_dtype_says_so(monkeypatch: pytest.MonkeyPatch):
    description = msgspec.structs.replace(Matmul.description, dtypes=("float32",))
    monkeypatch.setattr(Matmul, "description", description)
    failure = failure_of(workload="matmul", dtype="float16")
    assert failure.kind is FailureKind.DTYPE_UNSUPPORTED
    assert "choose float32" in failure.message


def test_an_unexpected_error_is_a_value_with_its_trace_for_the_log(
    monkeypatch: pytest.MonkeyPatch,
):
    def broken(*arguments: object) -> object:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr(Elementwise, "prepare", broken)
    failure = failure_of()
    assert failure.kind is FailureKind.INTERNAL
    assert failure.message == "ZeroDivisionError: by design"
    assert "in broken" in failure.traceback_text
    assert "Traceback" not in failure.message
