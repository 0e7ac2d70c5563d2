"""The two methods of the workload `data_parallel`: one program, or a group of processes."""

from __future__ import annotations

import time
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
from gpu_studio.engine.replica_group import ReplicaGroup
from gpu_studio.engine.sensor import CpuWatch
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.train_network import (
    CHECKED_STEPS,
    Training,
    change_error,
    make_batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.case import Case


class ModuleCall(Call):
    """DataParallel: one program copies the network to each card and splits every batch.

    On the CPU, there is nothing to split, so this is the plain network.

    Args:
        case: the first card, the batch, and the number of cards.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._cards = [torch.device(name) for name in devices_of(case)] if case.is_on_card else []
        self._training = Training(case.device, torch.float32, None)
        self._batch = make_batch(case.size)
        inputs, targets = (part.to(case.device) for part in self._batch)
        self._step = partial(self._training.step, inputs, targets)
        self._scaling: Scaling | None = None
        self._share(len(self._cards))

    def __call__(self) -> object:
        return self._step()

    def check(self) -> tuple[float | None, bool]:
        """Return the error of the first steps, and True, because there is only one network.

        Raises:
            StudioError: the cards cannot exchange the network.
        """
        try:
            for _ in range(CHECKED_STEPS):
                self._step()
        except RuntimeError as error:
            if "NCCL" not in str(error):
                raise
            first_line = str(error).splitlines()[0]
            raise StudioError(
                FailureKind.INTERNAL,
                f"DataParallel copies the network to the cards by NCCL, which does not work here "
                f"({first_line}). Choose DistributedDataParallel: it works without NCCL.",
            ) from error
        return change_error(self._training.weights(), *self._batch), True

    def curves(self) -> dict[str, tuple[float, ...]]:
        if not self._cards:
            return {}
        counts = _steps_to(len(self._cards))
        rounds_s = rounds_of({cards: partial(self._step_s, cards) for cards in counts})
        self._scaling = Scaling(rounds_s=rounds_s, size=self._case.size, word="card")
        return self._scaling.curves

    def findings(self) -> tuple[str, ...]:
        if not self._cards:
            return (
                "On the CPU, DataParallel has nothing to split, so it runs the plain network. "
                "DistributedDataParallel can share the batch there.",
            )
        seen: list[tuple[str, int]] = []

        def note(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            seen.append((str(inputs[0].device), len(inputs[0])))

        self._share(len(self._cards))
        with self._training.network.register_forward_pre_hook(note):
            loss = self._training.step(*(part.to(self._case.device) for part in self._batch))
        sentence = f"{_shares_sentence(sorted(seen))} The outputs were collected on {loss.device}."
        return (sentence, *(self._scaling.sentences() if self._scaling else ()))

    def doubts(self) -> dict[str, str]:
        return self._scaling.doubts() if self._scaling else {}

    def _share(self, cards: int) -> None:
        if self._cards:
            self._training.share(partial(nn.DataParallel, device_ids=self._cards[:cards]))

    def _step_s(self, cards: int) -> float:
        self._share(cards)
        return time_once(self._step, self._case.device)


class GroupCall(Call):
    """DistributedDataParallel: a process for each device, started by torchrun.

    Args:
        case: the first card or the CPU, the batch, and the number of processes.
    """

    is_batched = False
    is_elsewhere = True

    def __init__(self, case: Case) -> None:
        self._case, self._devices = case, devices_of(case)
        self._group = ReplicaGroup(self._devices, case.size)
        self._scaling: Scaling | None = None

    def __call__(self) -> float:
        return self._group.step_s(len(self._devices))

    def timed_by(self, stopwatch: Stopwatch) -> Stopwatch:
        """Return itself: the group's own clock sees no communication with the engine."""
        return self

    def time(self, call: object, calls: int) -> tuple[float, float]:
        start_s = time.perf_counter()
        elapsed_s = self()
        return elapsed_s, time.perf_counter() - start_s

    def check(self) -> tuple[float | None, bool]:
        answer = self._group.check(len(self._devices))
        return answer.error, answer.are_same

    def curves(self) -> dict[str, tuple[float, ...]]:
        counts = _steps_to(len(self._devices))
        watch = CpuWatch()
        watch.begin()
        rounds_s = rounds_of({count: partial(self._group.step_s, count) for count in counts})
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
        group, rows = self._group, self._case.size // len(self._devices)
        fallen_back = ""
        if group.has_fallen_back:
            fallen_back = " NCCL does not work here; the reason is in the log."
        start = (
            f"torchrun took {format_duration(group.start_s)} to start the processes, before the "
            f"timing; they communicate by {group.backend}."
        )
        gained = self._scaling.sentences() if self._scaling else ()
        shares = _shares_sentence([(device, rows) for device in self._devices])
        return (shares, start + fallen_back, *gained)

    def doubts(self) -> dict[str, str]:
        return self._scaling.doubts() if self._scaling else {}

    def close(self) -> None:
        self._group.close()


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
_PLURALS = {"card": "cards", "process": "processes"}


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
    def gain(self) -> tuple[float, float, float] | None:
        """The samples per second of all sharers over those of one; None for one sharer.

        They are the rounds' median ratio, and its 95 % interval.
        """
        sharers = max(self.rounds_s)
        if sharers == 1:
            return None
        rounds = zip(self.rounds_s[1], self.rounds_s[sharers], strict=True)
        ratios = sorted(alone_s / shared_s for alone_s, shared_s in rounds)
        return quantile(ratios, 0.5), ratios[1], ratios[-2]

    def sentences(self) -> tuple[str, ...]:
        """Return the gain as sentences, and whether sharing is faster; empty for one sharer."""
        if self.gain is None:
            return ()
        (gain, low, high), sharers = self.gain, max(self.rounds_s)
        gained = (
            f"{sharers} {_PLURALS[self.word]} train on "
            f"{format_rate(self._rate(sharers), 'samples/s')}, one {self.word} "
            f"{format_rate(self._rate(1), 'samples/s')}: {format_ratio(gain)} as many "
            f"(95\u202f% interval {format_ratio(low)} to {format_ratio(high)})."
        )
        if low > 1.0:
            return (gained,)
        if high < 1.0:
            return (
                gained,
                "Sharing is slower here: combining the results takes longer than sharing saves. A "
                f"batch larger than {self.size} gives each {self.word} more work per step.",
            )
        return (gained, "Too close to call: the times vary by more than that.")

    def doubts(self) -> dict[str, str]:
        if self.gain is None:
            return {}
        (gain, low, high), sharers, found = self.gain, max(self.rounds_s), []
        if self.was_disturbed:
            found.append("other programs kept the CPU busy while sharing was compared")
        if low > sharers:
            found.append(
                f"{sharers} {_PLURALS[self.word]} cannot be more than {sharers} times as fast, "
                f"so the run with one {self.word} was slowed down"
            )
        elif high - low > _WIDEST_INTERVAL * gain:
            found.append("the gain from sharing changed from round to round")
        return {"unsure gain": "; ".join(found)} if found else {}

    def _rate(self, sharers: int) -> float:
        return self.size / quantile(sorted(self.rounds_s[sharers]), 0.5)


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
