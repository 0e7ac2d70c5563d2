"""Whether sharing pays."""

from __future__ import annotations

from typing import Any

from gpu_studio.engine.workloads.replicated import does_it_pay, scaling_of


def test_it_is_told_whether_sharing_pays():
    scaling = {"sharers": (1.0, 2.0), "samples a second": (1000.0, 1800.0)}
    (gained,) = does_it_pay(scaling, 64, "card")
    assert gained == (
        "2 cards learn from 1.80\u202fksamples/s, one from 1.00\u202fksamples/s: "
        "1.8\u202f× as many."
    )
    scaling["samples a second"] = (1000.0, 900.0)
    gained, hint = does_it_pay(scaling, 64, "process")
    assert gained.startswith("2 processes learn from")
    assert "does not pay here" in hint
    assert "batch than 64" in hint
    assert does_it_pay({"sharers": (1.0,), "samples a second": (9.0,)}, 64, "card") == ()
    assert does_it_pay({}, 64, "card") == ()


def test_scaling_takes_the_best_of_a_few_steps_in_turns():
    steps: list[int] = []

    def step_of(sharers: int, best_s: float) -> Any:
        def step_s() -> float:
            steps.append(sharers)
            return best_s if len(steps) == 5 + sharers else 9.0

        return step_s

    scaling = scaling_of({1: step_of(1, 0.5), 2: step_of(2, 0.25)}, 100)
    assert steps == [1, 2] * 6
    assert scaling == {"sharers": (1.0, 2.0), "samples a second": (100 / 9.0, 100 / 9.0)}
