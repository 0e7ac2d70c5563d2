"""empty_cache: what it says before, and after."""

from __future__ import annotations

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import EmptyCache, ReadMemory
from tests.fakes.memory_answers import (
    cache_emptied,
    memory_read,
)
from tests.model.memory.looks import (
    MIB,
    idle,
    now,
    plain,
)


def test_empty_cache_admits_that_it_freed_something_else(model, scripts, qtbot):
    before = memory_read(allocated=0, reserved=20)
    scripts[EmptyCache] = [cache_emptied(before, 18, predicted_bytes=20 * MIB)]
    model.poll()
    idle(qtbot, model.parent())
    model.empty_cache()
    idle(qtbot, model.parent())
    assert "freed 18 MiB, predicted 20 MiB" in plain(now(model).cache_trouble)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "The card is lost.")), "is lost"),
        (EngineEnded(exit_code=-11), "did not answer"),
    ],
)
def test_empty_cache_that_fails_says_so(model, scripts, qtbot, answer, sentence):
    scripts[EmptyCache] = [answer]
    model.poll()
    idle(qtbot, model.parent())
    emitted = []
    model.emptying.changed.connect(lambda: emitted.append(model.emptying.result))
    model.empty_cache()
    qtbot.waitUntil(lambda: any(sentence in text for text in emitted))
    assert not model.emptying.is_going_on
    idle(qtbot, model.parent())


@pytest.mark.parametrize(
    ("allocated", "reserved", "releasable", "short", "sentence"),
    [
        (100, 100, 0, "", "nothing to free"),
        (100, 120, 20, "frees 20 MiB", "can free all 20 MiB"),
        (100, 120, 0, "", "can free 0 bytes of 20 MiB"),
    ],
)
def test_the_prediction(model, scripts, qtbot, allocated, reserved, releasable, short, sentence):
    scripts[ReadMemory] = [
        memory_read(allocated=allocated, reserved=reserved, releasable_bytes=releasable * MIB)
    ]
    model.poll()
    idle(qtbot, model.parent())
    page = now(model)
    assert sentence in plain(page.cache_words)
    assert plain(page.cache) == short
    assert model.can_empty_cache is (reserved > allocated)
