"""What training on several PCs gains and costs, round by round: the efficiency, and what limits it.

The rounds are compared one by one, as in `scaling`. Every round has a step together, a step of each
device alone with its part of the batch, and an exchange of as many numbers as all gradients are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.listing import listed
from gpu_studio.core.messages.together_messages import (
    ExchangeBackend,
    Limited,
    Measured,
    TogetherResult,
)
from gpu_studio.core.statistics import median_interval, quantile
from gpu_studio.core.units import format_duration, format_percent, format_rate
from gpu_studio.engine.workloads.scaling import rounds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpu_studio.engine.together_group import TogetherGroup

_STEP = 0
_LITTLE = 0.1  # of a step: not worth a reason
_MOST_OF_IT = 0.5
_MUCH_SLOWER = 1.5


class TogetherScaling:
    """The times of a group of several PCs.

    Args:
        devices: the devices, in the order of their ranks.
        size: samples in the whole batch.
        gradient_bytes: of a step.
        rounds_s: the seconds of each round, by what was timed: 0 is the step together, 1 and more
            are the devices alone, the last is the exchange.
        backend: what the processes exchange gradients with.
        is_tunneled: whether they meet through ssh.
    """

    def __init__(
        self,
        devices: Sequence[str],
        size: int,
        gradient_bytes: int,
        rounds_s: Mapping[int, Sequence[float]],
        backend: ExchangeBackend = ExchangeBackend.GLOO,
        *,
        is_tunneled: bool = True,
    ) -> None:
        self._backend, self._is_tunneled = backend, is_tunneled
        self._devices, self._size, self._bytes = tuple(devices), size, gradient_bytes
        self._step_s = rounds_s[_STEP]
        self._alone_s = [rounds_s[1 + rank] for rank in range(len(devices))]
        self._exchange_s = rounds_s[1 + len(devices)]
        self.result = self._result()

    @classmethod
    def measure(
        cls, group: TogetherGroup, devices: Sequence[str], size: int, gradient_bytes: int
    ) -> TogetherScaling:
        """Return what the rounds of a running group show."""
        count = len(devices)
        steps: dict[int, Callable[[], float]] = {_STEP: partial(group.step_s, count)}
        for rank in range(count):
            steps[1 + rank] = partial(group.alone_s, rank)
        steps[1 + count] = group.exchange_s
        return cls(
            devices, size, gradient_bytes, rounds_of(steps),
            ExchangeBackend(group.backend), is_tunneled=group.is_tunneled,
        )  # fmt: skip

    @property
    def parts_s(self) -> dict[str, float]:
        """The seconds of a step: computing on the slowest device, and the rest."""
        step_s, slowest_s = _middle(self._step_s), max(map(_middle, self._alone_s))
        return {"compute": min(slowest_s, step_s), "exchange": max(0.0, step_s - slowest_s)}

    def sentences(self) -> tuple[str, ...]:
        """Return the result in words."""
        result, rate = self.result, "samples/s"
        together = format_rate(self._size / _middle(self._step_s), rate)
        part = self._size / len(self._devices)
        alone = format_rate(sum(part / _middle(one) for one in self._alone_s), rate)
        waiting = ", ".join(f"{name} {format_percent(one)}" for name, one in result.waiting.items())
        return (
            f"{listed(self._devices)} train on {together} together. Alone, each with its "
            f"part of the batch, they come to {alone}: an efficiency of "
            f"{_interval(result.efficiency, format_percent)}.",
            f"Share of a step spent waiting: {waiting}.",
            "Network, measured with an exchange of all gradients: "
            f"{_interval(result.network_bytes_per_s, lambda one: format_rate(one, 'B/s'))}.",
            self._limit_sentence(),
        )

    def _limit_sentence(self) -> str:
        if self.result.limited is Limited.NETWORK:
            return (
                f"The network limits it: the {format_rate(self._bytes, 'B')} of gradients take "
                f"{format_duration(_middle(self._exchange_s))} at this speed, and a step waits "
                f"{format_duration(self.parts_s['exchange'])}. A larger batch computes longer "
                "between two exchanges."
            )
        if self.result.limited is Limited.SLOWEST_DEVICE:
            slowest = max(zip(self._alone_s, self._devices, strict=True), key=_of_median)[1]
            return f"{slowest} limits it: every device waits for the slowest one."
        if self.result.limited is Limited.OTHER:
            return "Neither the network nor one slow device explains most of the waiting."
        return "Little is lost: the devices compute most of the time."

    def _result(self) -> TogetherResult:
        count = len(self._devices)
        rounds = list(zip(self._step_s, zip(*self._alone_s, strict=True), strict=True))
        efficiency = _measured(
            count / step_s / sum(1.0 / one for one in alone_s) for step_s, alone_s in rounds
        )
        waiting = {
            name: _middle([max(0.0, 1.0 - alone_s[rank] / step_s) for step_s, alone_s in rounds])
            for rank, name in enumerate(self._devices)
        }
        # Of an exchange in a ring, each process sends this share of the bytes.
        sent = 2 * (count - 1) / count * self._bytes
        return TogetherResult(
            efficiency=efficiency,
            waiting=waiting,
            network_bytes_per_s=_measured(sent / one for one in self._exchange_s),
            gradient_bytes=self._bytes,
            limited=self._limited(waiting),
            backend=self._backend,
            is_tunneled=self._is_tunneled,
        )

    def _limited(self, waiting: Mapping[str, float]) -> Limited:
        step_s, alone_s = _middle(self._step_s), list(map(_middle, self._alone_s))
        lost_s = step_s - max(alone_s)
        if max(waiting.values()) < _LITTLE:
            return Limited.NOTHING
        if lost_s >= _LITTLE * step_s and _middle(self._exchange_s) >= _MOST_OF_IT * lost_s:
            return Limited.NETWORK
        if max(alone_s) > _MUCH_SLOWER * min(alone_s):
            return Limited.SLOWEST_DEVICE
        return Limited.OTHER


def _middle(values: Iterable[float]) -> float:
    return quantile(sorted(values), 0.5)


def _of_median(pair: tuple[Sequence[float], str]) -> float:
    return _middle(pair[0])


def _measured(values: Iterable[float]) -> Measured:
    ordered = sorted(values)
    return Measured(quantile(ordered, 0.5), *median_interval(ordered))


def _interval(measured: Measured, text: Callable[[float], str]) -> str:
    low, high = text(measured.low), text(measured.high)
    return f"{text(measured.median)} (95\u202f% interval {low} to {high})"
