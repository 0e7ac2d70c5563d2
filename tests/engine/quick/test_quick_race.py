"""The race of an adapter against NumPy."""

import threading

import numpy as np
import pytest

from gpu_studio.core.messages.race_messages import FrameReady, RaceParameters, Showing
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunInTurns, RunWorkload
from gpu_studio.core.race import gray_scott
from gpu_studio.engine.quick import race, shaders


@pytest.fixture
def raced(dispatcher):
    """Return what lets devices race; it returns the events."""

    def raced(*devices, size=64, workload="grow", dtype="float32"):
        runs = tuple(
            RunWorkload(
                run_id=device, workload=workload, device=device, size=size, dtype=dtype,
                budget_s=0.1, race=RaceParameters(), showing=Showing(),
            )
            for device in devices
        )  # fmt: skip
        return list(dispatcher.run(RunInTurns(runs=runs), threading.Event()))

    return raced


def results(events):
    return {one.run_id: one for one in events if isinstance(one, RunFinished)}


def test_all_race_to_one_line_and_show_the_same_picture(raced):
    events = raced("cpu", "vulkan:0", "opengl:0")
    found = results(events)
    assert set(found) == {"cpu", "vulkan:0", "opengl:0"}
    assert all(one.verified for one in found.values())
    assert len({one.outcome.finish_steps for one in found.values()}) == 1
    assert any(one.outcome.reached for one in found.values())
    first = {}
    for event in events:
        if isinstance(event, FrameReady):
            first.setdefault(event.run_id, event.picture)
    assert len(first) == 3
    assert len(set(first.values())) == 1


def test_a_wrong_step_is_found(raced, monkeypatch):
    fault = ("- 4.0 * cell", "- 4.0001 * cell")
    assert fault[0] in shaders._GROW
    monkeypatch.setattr(shaders, "_GROW", shaders._GROW.replace(*fault))
    found = results(raced("vulkan:0"))["vulkan:0"]
    assert (found.verified, found.outcome.reached) == (False, False)


@pytest.mark.parametrize("what", [{"workload": "paint"}, {"dtype": "float64"}, {"size": 5000}])
def test_other_races_need_pytorch(raced, what):
    (failed,) = [one for one in raced("cpu", **what) if isinstance(one, RunFailed)]
    assert "grow" in failed.failure.message


def test_the_bands_of_threads_make_one_picture():
    one, many = (race.NumpyGrow(gray_scott.planted(64), threads) for threads in (1, 5))
    for drawing in (one, many):
        drawing.time(None, 20)
    assert np.array_equal(one.state(), many.state())
    assert gray_scott.colors(one.state()[..., 1]).shape == (36, 64, 3)
    for drawing in (one, many):
        drawing.close()
