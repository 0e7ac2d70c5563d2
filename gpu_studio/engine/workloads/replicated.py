"""The two methods of the workload `data_parallel`: one program, or a group of processes."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import torch
from torch import nn

from gpu_studio.core.device_name import CPU, DeviceName
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.statistics import quantile
from gpu_studio.core.units import format_duration, format_rate, format_ratio
from gpu_studio.engine.device import accelerator, time_once
from gpu_studio.engine.replica import CHECKED_STEPS, change_error, make_optimizer, weights_of
from gpu_studio.engine.replica_group import ReplicaGroup
from gpu_studio.engine.sensor import CpuWatch
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.train_network import build_network, make_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpu_studio.engine.workloads.case import Case


_LONGEST_KEPT_S = 30.0


class ModuleCall(Call):
    """DataParallel: one program copies the network to each card and splits every batch.

    On the CPU, there is nothing to split, so this is the plain network.

    Args:
        case: the first card, the batch, and the number of cards.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._devices = [torch.device(name) for name in devices_of(case)]
        self._network = build_network().to(case.device)
        self._model = self._shared(len(self._devices))
        self._optimizer = make_optimizer(self._model)
        self._batch = make_batch(case.size)
        self._on_device = tuple(part.to(case.device) for part in self._batch)
        self._scaling: Scaling | None = None

    def __call__(self) -> object:
        return self._step(self._model)

    def check(self) -> tuple[float | None, bool]:
        """Return the error of the first steps, and True, because there is only one network.

        Raises:
            StudioError: the cards cannot exchange the network.
        """
        try:
            for _ in range(CHECKED_STEPS):
                self._step(self._model)
        except RuntimeError as error:
            if "NCCL" not in str(error):
                raise
            first_line = str(error).splitlines()[0]
            raise StudioError(
                FailureKind.INTERNAL,
                f"DataParallel copies the network to the cards by NCCL, which does not work here "
                f"({first_line}). Choose DistributedDataParallel: it works without NCCL.",
            ) from error
        return change_error(weights_of(self._network), *self._batch), True

    def curves(self) -> dict[str, tuple[float, ...]]:
        if self._case.is_on_card:
            shared = {cards: self._shared(cards) for cards in _steps_to(len(self._devices))}
            steps_s = {cards: partial(self._step_s, model) for cards, model in shared.items()}
            self._scaling = Scaling(rounds_s=rounds_of(steps_s), size=self._case.size, word="card")
        return self._scaling.curves if self._scaling else {}

    def findings(self) -> tuple[str, ...]:
        if not self._case.is_on_card:
            return (
                "On the CPU, DataParallel has nothing to split, so it runs the plain network. "
                "DistributedDataParallel can share the batch there.",
            )
        seen: list[tuple[str, int]] = []

        def note(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            seen.append((str(inputs[0].device), len(inputs[0])))

        with self._network.register_forward_pre_hook(note):
            output = self._model(self._on_device[0])
        sentence = (
            f"{_shares_sentence(sorted(seen))} The outputs were collected on {output.device}."
        )
        return (sentence, *(self._scaling.sentences() if self._scaling else ()))

    def doubts(self) -> dict[str, str]:
        return self._scaling.doubts() if self._scaling else {}

    def _step_s(self, model: nn.Module) -> float:
        return time_once(partial(self._step, model), self._case.device)

    def _shared(self, cards: int) -> nn.Module:
        if not self._case.is_on_card:
            return nn.DataParallel(self._network)
        return nn.DataParallel(self._network, device_ids=self._devices[:cards])

    def _step(self, model: nn.Module) -> object:
        inputs, targets = self._on_device
        self._optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        self._optimizer.step()
        return loss


class GroupCall(Call):
    """DistributedDataParallel: a process for each device, started by torchrun.

    Args:
        case: the first card or the CPU, the batch, and the number of processes.
    """

    is_batched = False

    def __init__(self, case: Case) -> None:
        self._case = case
        self._devices = devices_of(case)
        self._key = (tuple(self._devices), case.size)
        self._group: ReplicaGroup | None = _waiting_group.claim(self._key) or ReplicaGroup(
            self._devices, case.size
        )
        self._elapsed_s: float | None = None
        self._scaling: Scaling | None = None

    @property
    def group(self) -> ReplicaGroup:
        assert self._group is not None
        return self._group

    def __call__(self) -> object:
        self._elapsed_s = self.group.step_s(len(self._devices))
        return self._elapsed_s

    def elapsed_s(self) -> float | None:
        """Return the last step's time by the group's own clock, without communication."""
        return self._elapsed_s

    def check(self) -> tuple[float | None, bool]:
        answer = self.group.check(len(self._devices))
        return answer.error, answer.are_same

    def curves(self) -> dict[str, tuple[float, ...]]:
        counts = _steps_to(len(self._devices))
        watch = CpuWatch()
        watch.begin()
        rounds_s = rounds_of({count: partial(self.group.step_s, count) for count in counts})
        watch.end()
        is_on_card = self._case.is_on_card
        self._scaling = Scaling(
            rounds_s=rounds_s,
            size=self._case.size,
            word="card" if is_on_card else "process",
            was_disturbed=None if is_on_card else watch.other_processes,
        )
        return self._scaling.curves

    def findings(self) -> tuple[str, ...]:
        group = self.group
        answer = group.check(len(self._devices))
        shares = [(share.device, share.rows) for share in answer.shares]
        fallen_back = ""
        if group.has_fallen_back:
            fallen_back = " NCCL does not work here; the reason is in the log."
        start = (
            f"torchrun took {format_duration(group.start_s)} to start the processes, before the "
            f"timing; they communicate by {group.backend}."
        )
        gained = self._scaling.sentences() if self._scaling else ()
        return (_shares_sentence(shares), start + fallen_back, *gained)

    def doubts(self) -> dict[str, str]:
        return self._scaling.doubts() if self._scaling else {}

    def keep(self) -> None:
        """Keep the processes for the next call of the same kind; `close` then does not end them."""
        assert self._group is not None
        _waiting_group.put(self._key, self._group)
        self._group = None

    def close(self) -> None:
        if self._group is not None:
            self._group.close()


class _WaitingGroup:
    """Holds at most one group for the next call; the group ends if no call comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: object = None
        self._group: ReplicaGroup | None = None
        self._timer: threading.Timer | None = None

    def put(self, key: object, group: ReplicaGroup) -> None:
        """Keep a group for a while, and end the previous one."""
        self.end()
        with self._lock:
            self._key, self._group = key, group
            self._timer = threading.Timer(_LONGEST_KEPT_S, self.end)
            self._timer.daemon = True
            self._timer.start()

    def claim(self, key: object) -> ReplicaGroup | None:
        """Return the group if it is of this kind and still runs; end any other group."""
        with self._lock:
            group, kept_key = self._group, self._key
            self._group = None
            if self._timer is not None:
                self._timer.cancel()
        if group is not None and kept_key == key and group.is_running:
            return group
        if group is not None:
            group.close()
        return None

    def end(self) -> None:
        group = self.claim(None)
        assert group is None


_waiting_group = _WaitingGroup()


def devices_of(case: Case) -> list[str]:
    """Return the device of each part of the batch: the chosen card first, then the others."""
    processes = int(case.options["processes"])
    if not case.is_on_card:
        return [CPU] * processes
    cards = accelerator()
    others = [index for index in range(cards.count()) if index != case.device.index]
    indices = [case.device.index, *others][:processes]
    return [str(DeviceName(cards.kind, index)) for index in indices]


def _steps_to(sharers: int) -> list[int]:
    return [count for count in (1, 2, 4) if count <= sharers]


def _shares_sentence(shares: Sequence[tuple[str, int]]) -> str:
    parts = ", ".join(f"{rows} on {device}" for device, rows in shares)
    return f"The batch was split: {parts}."


# ── is sharing faster? ───────────────────────────────────────────────────────────────────────────

# The rounds are compared one by one: drift (clocks, other programs) affects both steps of a round
# alike, so the ratio of a round is more precise than the ratio of two medians. Threads that wait
# for each other lose a whole time slice when another program takes a core from one of them.
# Processes with one thread lose almost nothing. So one process with all cores looks several times
# too slow on a busy PC, and the result says that the comparison is doubtful.

# The 95 % interval of a median of nine by order statistics leaves out the lowest and the highest.
ROUNDS = 9
_WIDEST_INTERVAL = 0.5  # of the gain
_LONG_STEP_S = 0.05


class Gain(msgspec.Struct, frozen=True):
    """The ratio of samples per second to one sharer: the rounds' median and 95 % interval."""

    median: float
    low: float
    high: float


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """The times of a step of the same batch, by number of sharers.

    ``rounds_s`` has the seconds of a step by the number of sharers, one per round, in order;
    ``size`` is the batch. ``word`` names a sharer: ``card`` or ``process``.
    ``was_disturbed`` is whether other programs kept the CPU busy; None if that was not observed.
    """

    rounds_s: dict[int, tuple[float, ...]]
    size: int
    word: str
    was_disturbed: bool | None = None

    @property
    def curves(self) -> dict[str, tuple[float, ...]]:
        """The samples per second over the number of sharers, from the median step."""
        return {
            "sharers": tuple(float(sharers) for sharers in self.rounds_s),
            "samples a second": tuple(self._rate(sharers) for sharers in self.rounds_s),
        }

    @property
    def sharers(self) -> int:
        return max(self.rounds_s)

    @property
    def gain(self) -> Gain | None:
        """The gain of the largest number of sharers over one; None for one sharer."""
        if self.sharers == 1:
            return None
        rounds = zip(self.rounds_s[1], self.rounds_s[self.sharers], strict=True)
        ratios = sorted(alone_s / shared_s for alone_s, shared_s in rounds)
        return Gain(quantile(ratios, 0.5), ratios[1], ratios[-2])

    def sentences(self) -> tuple[str, ...]:
        """Return the gain as sentences, and whether sharing is faster; empty for one sharer."""
        gain = self.gain
        if gain is None:
            return ()
        interval = f"{format_ratio(gain.low)} to {format_ratio(gain.high)}"
        gained = (
            f"{self.sharers} {self._plural} train on "
            f"{format_rate(self._rate(self.sharers), 'samples/s')}, one {self.word} "
            f"{format_rate(self._rate(1), 'samples/s')}: {format_ratio(gain.median)} as many "
            f"(95\u202f% interval {interval})."
        )
        if gain.low > 1.0:
            return (gained,)
        if gain.high < 1.0:
            return (
                gained,
                "Sharing is slower here: combining the results takes longer than sharing saves. A "
                f"batch larger than {self.size} gives each {self.word} more work per step.",
            )
        return (gained, "Too close to call: the times vary by more than that.")

    def doubts(self) -> dict[str, str]:
        gain = self.gain
        if gain is None:
            return {}
        found = []
        if self.was_disturbed:
            found.append("other programs kept the CPU busy while sharing was compared")
        if gain.low > self.sharers:
            found.append(
                f"{self.sharers} {self._plural} cannot be more than {self.sharers} times as fast, "
                f"so the run with one {self.word} was slowed down"
            )
        elif gain.high - gain.low > _WIDEST_INTERVAL * gain.median:
            found.append("the gain from sharing changed from round to round")
        return {"unsure gain": "; ".join(found)} if found else {}

    def _rate(self, sharers: int) -> float:
        return self.size / quantile(sorted(self.rounds_s[sharers]), 0.5)

    @property
    def _plural(self) -> str:
        return f"{self.word}es" if self.word.endswith("s") else f"{self.word}s"


def rounds_of(steps_s: Mapping[int, Callable[[], float]]) -> dict[int, tuple[float, ...]]:
    """Return the seconds of a step by the number of sharers, one per round.

    The order is reversed in every other round. A short step is taken twice, and the second one
    counts: the first one starts another number of threads.

    Args:
        steps_s: takes one step and returns its seconds, by the number of sharers.
    """
    rounds_s: dict[int, list[float]] = {sharers: [] for sharers in steps_s}
    for number in range(ROUNDS):
        for sharers in sorted(steps_s, reverse=number % 2 == 1):
            step_s = steps_s[sharers]()
            if step_s < _LONG_STEP_S:
                step_s = steps_s[sharers]()
            rounds_s[sharers].append(step_s)
    return {sharers: tuple(taken_s) for sharers, taken_s in rounds_s.items()}
