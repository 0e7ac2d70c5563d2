import pkgutil

import msgspec
import pytest

from gpu_studio.core import messages, protocol
from gpu_studio.core.engine import EngineEnvironment, describe_exit
from gpu_studio.core.failure import Failure, FailureKind, StudioError, failure_from
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead
from gpu_studio.core.messages.message import Event, LastEvent, Request
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunInTurns,
    RunStarted,
    RunStopped,
    RunWorkload,
)
from gpu_studio.core.parameter import parameters_of, refusal_of

_RUN = RunWorkload(workload="matmul", device="cpu", size=8, dtype="float32", run_id="1")
_FATAL = Failure(FailureKind.ENGINE_ENDED, "gone", fatal=True)


def test_every_file_of_messages_is_known_to_the_decoders():
    names = {
        f"{messages.__name__}.{module.name}" for module in pkgutil.iter_modules(messages.__path__)
    }
    assert {file.__name__ for file in protocol.FILES} == names


@pytest.mark.parametrize("kind", [Request, Event])
def test_no_two_messages_have_the_same_tag(kind):
    tags = [message.__struct_config__.tag for message in protocol.messages_of(kind)]
    assert len(tags) > 10
    assert len(set(tags)) == len(tags)


def test_a_last_event_ends_every_request():
    ends = [kind for kind in protocol.messages_of(Event) if issubclass(kind, LastEvent)]
    assert EngineEnded in ends
    assert EngineEnded(exit_code=None).ends(_RUN)
    assert not MemoryRead(device="cpu", taken_at_s=0.0).ends(_RUN)


def test_runs_in_turns_go_on_after_the_end_of_one_unless_the_engine_is_lost():
    together = RunInTurns(runs=(_RUN,))
    assert RunStopped(run_id="1").ends(_RUN)
    assert not RunStopped(run_id="1").ends(together)
    failed = RunFailed(run_id="1", failure=_FATAL)
    assert failed.ends(together)
    assert failed.ends_engine
    assert RequestFailed(failure=_FATAL).ends_engine


def request(**changes: object) -> RunWorkload:
    asked = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")
    return msgspec.structs.replace(asked, **changes)


def test_a_request_has_every_setting_and_a_result_those_that_decide_it() -> None:
    names = {one.name for one in parameters_of(RunWorkload)}
    assert {"cold", "transfers", "sustained", "time", "naive", "stop_early"} <= names
    assert parameters_of(RunStarted) == parameters_of(RunWorkload)
    decisive = {one.name for one in parameters_of(RunFinished)}
    assert {"cold", "transfers", "sustained"} <= decisive < names
    assert all(one.words for one in parameters_of(RunFinished))
    assert "time" in {one.name for one in parameters_of(RunWorkload, "race")} < names


def test_a_setting_knows_its_field_and_the_field_s_default() -> None:
    for one in parameters_of(RunWorkload):
        assert getattr(request(), one.field) == one.default
        assert one.value_of(False) == one.default or not one.is_switch
        assert one.default in one.offered
        assert not one.is_on(request())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget_s": 0.0}, "“0” is out of range. Choose more than 0 and at most 3600 s."),
        ({"budget_s": float("nan")}, "nan"),
        ({"budget_s": 3601.0}, "3600"),
        ({"cache": "warm"}, "Choose hot or cold."),
    ],
)
def test_a_refusal_names_the_choice_its_value_and_what_is_allowed(
    changes: dict[str, object], words: str
) -> None:
    sentence = refusal_of(request(**changes))
    assert words in sentence
    assert sentence.startswith(("Time per run: ", "Cold cache: "))


def test_an_expected_failure_is_its_sentence_and_no_trace():
    failure = failure_from(StudioError(FailureKind.TOO_LARGE, "Too large for this PC."))
    assert (failure.kind, failure.message) == (FailureKind.TOO_LARGE, "Too large for this PC.")
    assert failure.traceback_text == ""


def test_an_unexpected_failure_is_one_line_for_people_and_its_trace_for_the_log():
    try:
        raise ValueError("first line\nsecond line " + "x" * 1000)
    except ValueError as error:
        failure = failure_from(error)
    assert failure.kind is FailureKind.INTERNAL
    assert failure.message == "ValueError: first line"
    assert "Traceback" in failure.traceback_text


@pytest.mark.parametrize(
    ("exit_code", "sentence"),
    [
        (None, "stopped answering"),
        (-9, "ran out of memory (RAM)"),
        (137, "ran out of memory (RAM)"),
        (-6, "signal 6"),
        (3, "exit code 3"),
    ],
)
def test_an_engines_end_in_words(exit_code: int | None, sentence: str) -> None:
    assert sentence in describe_exit(exit_code)


def test_an_allocator_s_configuration_leaves_no_other_beside_it():
    chosen = EngineEnvironment(allocator_configuration="max_split_size_mb:64").variables()
    assert chosen["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64"
    # torch 2.9 and newer read this name as well: a user's own value must not be left in it.
    assert chosen["PYTORCH_ALLOC_CONF"] == "max_split_size_mb:64"


def test_programs_whose_messages_are_written_otherwise_differ(monkeypatch, tmp_path):
    here = protocol.protocol_version()
    other = tmp_path / "run_messages.py"
    other.write_text("class RunWorkload: ...", encoding="utf-8")
    monkeypatch.setattr(protocol.run_messages, "__file__", str(other))
    protocol.protocol_version.cache_clear()
    try:
        assert protocol.protocol_version() != here
    finally:
        protocol.protocol_version.cache_clear()
