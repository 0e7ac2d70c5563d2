"""Where a race ends: the same number of steps for every contestant, chosen from their warm-ups.

The faster one is to take about the budget. When the first one has done all steps, the others stop
at that time of the race's clock, wherever they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunWorkload
    from gpu_studio.engine.sensor import Watch

# Other programs may slow down the race after its warm-up.
_LONGEST = 2.5
_DIGITS = 2


class FinishLine:
    """The finish line of the contestants that race together.

    Attributes:
        ends_s: the race's clock when the first one finished; infinity before.
    """

    def __init__(self) -> None:
        self.ends_s = math.inf
        self._step_s: list[float] = []
        self._steps: int | None = None
        self._watches: list[Watch] = []
        self._worked_s: list[float] = []
        self._on_their_way: set[int] = set()

    def join(self, step_s: float, watch: Watch) -> int:
        """Add a contestant that is warm; return its number.

        Args:
            step_s: the seconds of one of its steps.
            watch: observes its device.
        """
        self._step_s.append(step_s)
        self._watches.append(watch)
        self._worked_s.append(0.0)
        return len(self._watches) - 1

    def steps(self, request: RunWorkload) -> int:
        """Return the number of steps of a race; the first question decides it for all."""
        steps = self._steps
        if steps is None:
            steps = request.calls or fitting_steps(request.budget_s, min(self._step_s))
            self._steps = steps
        return steps

    def longest_s(self, request: RunWorkload) -> float:
        """Return the race's clock when a run ends even if nobody has finished."""
        if request.longest_s is not None:
            return request.longest_s
        return math.inf if request.calls is not None else _LONGEST * request.budget_s

    @property
    def longest_step_s(self) -> float:
        """The seconds of a step of the slowest contestant, as its warm-up had it."""
        return max(self._step_s)

    def begin(self, contestant: int) -> None:
        """Record that a contestant is on its way: the others wait for it, and it for them."""
        self._on_their_way.add(contestant)

    def leave(self, contestant: int) -> None:
        """Record that a contestant does no more steps, for whatever reason."""
        self._on_their_way.discard(contestant)

    def advance(self, contestant: int, worked_s: float) -> None:
        """Record how long a contestant has worked until now: its own race clock."""
        self._worked_s[contestant] = worked_s

    def front_s(self, contestant: int) -> float:
        """Return the furthest clock of the others on their way; 0 without others."""
        return max(self._clocks_of_others(contestant), default=0.0)

    def rear_s(self, contestant: int) -> float:
        """Return the clock of the last one of the others on their way; infinity without others."""
        return min(self._clocks_of_others(contestant), default=math.inf)

    def _clocks_of_others(self, contestant: int) -> list[float]:
        return [self._worked_s[one] for one in self._on_their_way if one != contestant]

    def reach(self, elapsed_s: float) -> None:
        """Record that a contestant has done all steps."""
        self.ends_s = min(self.ends_s, elapsed_s)

    def poll_power(self) -> None:
        """Read the power of every device: the mean is that of the whole race.

        Drivers report an average over up to a second, which is longer than a turn.
        """
        for watch in self._watches:
            watch.poll_power()

    def energy_j(self, contestant: int) -> float | None:
        """Return the energy of a contestant's device in all turns of the race; None if unknown.

        It idles while others have their turns, and its mean power counts that as well.
        """
        power_w = self._watches[contestant].power_w
        return None if power_w is None else power_w * math.fsum(self._worked_s)


def fitting_steps(budget_s: float, step_s: float) -> int:
    """Return the steps that take about so long: a number of two digits and zeros, at least 1."""
    steps = max(1, int(budget_s / step_s)) if step_s > 0 else 1
    unit = int(10 ** max(0, len(str(steps)) - _DIGITS))
    return steps // unit * unit
