"""The adapters of this PC: Mesa's lavapipe by Vulkan, and llvmpipe by OpenGL."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunInTurns, RunWorkload
from gpu_studio.engine.benchmark import rounds, timing
from gpu_studio.engine.quick import adapters
from gpu_studio.engine.quick.dispatcher import QuickDispatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.messages.message import Event


@pytest.fixture(autouse=True, scope="package")
def short_warm_up() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "WARM_UP_S", 0.01)
        patch.setattr(timing, "_WARM_AGAIN_S", 0.0)
        patch.setattr(rounds, "_PACE_S", 0.01)
        yield


@pytest.fixture(scope="package")
def dispatcher() -> QuickDispatcher:
    try:
        found = {one.facts.address for one in adapters.find_adapters()}
    except StudioError:
        found = set()
    if not found >= {"vulkan:0", "opengl:0"}:
        pytest.skip("needs Mesa's two software adapters: mesa-vulkan-drivers and libgl1-mesa-dri")
    return QuickDispatcher("Test CPU")


@pytest.fixture
def made(dispatcher: QuickDispatcher) -> Callable[..., list[Event]]:
    """Return what makes runs in turns; it returns their events."""

    def made(workload: str, size: int, devices: str, dtype: str = "float32", **other: object):
        runs = tuple(
            RunWorkload(
                run_id=device, workload=workload, device=device, size=size, dtype=dtype,
                **{"budget_s": 0.05, **other},
            )
            for device in devices.split(",")
        )  # fmt: skip
        return list(dispatcher.run(RunInTurns(runs=runs), threading.Event()))

    return made


@pytest.fixture
def result(made: Callable[..., list[Event]]) -> Callable[..., RunFinished]:
    """Return what makes one run; it returns the result."""

    def result(*what: object, **other: object) -> RunFinished:
        events = made(*what, **other)
        failed = [one.failure.message for one in events if isinstance(one, RunFailed)]
        assert not failed
        return next(one for one in events if isinstance(one, RunFinished))

    return result
