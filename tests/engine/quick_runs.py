"""Runs that are not long in warming up, in pacing a race, and in timing their parts."""

from collections.abc import Callable

from gpu_studio.engine.benchmark import rounds, timing
from gpu_studio.engine.workloads import parts

_SHORT_S = {
    (timing, "WARM_UP_S"): 0.02,
    (timing, "_WARM_AGAIN_S"): 0.002,
    (rounds, "_PACE_S"): 0.05,
    (parts, "_BUDGET_S"): 0.02,
}


def make_quick(replace: Callable[[object, str, float], object] = setattr) -> None:
    """Let the runs of this process be short.

    Args:
        replace: sets an attribute of a module; that of a monkeypatch sets it back.
    """
    for (module, name), short_s in _SHORT_S.items():
        assert hasattr(module, name), (module, name)
        replace(module, name, short_s)
