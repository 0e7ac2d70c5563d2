from __future__ import annotations

from enum import Enum

import msgspec
import pytest

from gpu_studio.core.protocol_version import fingerprint, protocol_version


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
