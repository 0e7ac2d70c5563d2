import pkgutil
from enum import Enum

import msgspec
import pytest

from gpu_studio.core import messages, protocol
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory, RunMemoryExperiment
from gpu_studio.core.messages.message import Event, LastEvent, Request
from gpu_studio.core.messages.run_messages import RunFailed, RunInTurns, RunStopped, RunWorkload
from gpu_studio.core.protocol import fingerprint, protocol_version

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


def test_a_reading_ends_its_own_request_alone():
    reading = MemoryRead(device="cpu", taken_at_s=0.0)
    assert reading.ends(ReadMemory(device="cpu"))
    assert not reading.ends(RunMemoryExperiment(preset="fill", device="cpu"))


def test_runs_in_turns_go_on_after_the_end_of_one_unless_the_engine_is_lost():
    together = RunInTurns(runs=(_RUN,))
    assert RunStopped(run_id="1").ends(_RUN)
    assert not RunStopped(run_id="1").ends(together)
    failed = RunFailed(run_id="1", failure=_FATAL)
    assert failed.ends(together)
    assert failed.ends_engine
    assert RequestFailed(failure=_FATAL).ends_engine


class Word(str, Enum):
    A = "a"


class MoreWords(str, Enum):
    A = "a"
    B = "b"


def message(**fields):
    inner = msgspec.defstruct("Inner", [("x", fields.pop("inner", int))], kw_only=True)
    return msgspec.defstruct("One", [*fields.items(), ("inner", inner)], tag="one", kw_only=True)


@pytest.mark.parametrize(
    "other",
    [{"a": float}, {"b": int}, {"a": int, "b": int}, {"a": int, "inner": str}],
    ids=["a type", "a name", "a field", "a field within"],
)
def test_messages_that_differ_have_another_fingerprint(other):
    assert fingerprint([message(a=int)]) == fingerprint([message(a=int)])
    assert fingerprint([message(a=int)]) != fingerprint([message(**other)])


def test_words_that_differ_have_another_fingerprint():
    MoreWords.__name__ = Word.__name__
    assert fingerprint([Word]) != fingerprint([MoreWords])


def test_the_version_is_of_the_messages_and_short():
    assert len(protocol_version()) < 30
    assert "-" in protocol_version()
