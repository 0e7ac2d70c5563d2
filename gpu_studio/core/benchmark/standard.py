"""The standard run: fixed work in a fixed order, so that any two PCs can be compared.

`STANDARD` is the version of everything here. A change of a workload, a size, a dtype, an option or
the order makes another standard, and runs of two standards are not compared. docs/measuring.md says
how the sizes were chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.run_messages import RunWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.run_messages import RunFinished

STANDARD = 1
"""The version of the standard run."""
DEVICE_S = 60.0
"""What a standard run takes for each device, in seconds."""
LOAD_S = 20.0
"""How much of that is the load at the end, in seconds."""
LONGEST_CALL_S = 1.5
"""A call that takes longer is not measured: the time has room for too few of them."""
# The setup, check and warm-ups of an item, until the run's own items have shown theirs.
_USUAL_BEYOND_S = 1.5
# An item keeps at least this share of its time on a PC that needs long for the rest of it.
_LEAST_SHARE = 0.2


class StandardItem(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of the standard run.

    ``options`` has all options of the workload. ``work`` is the work of one call in ``unit``
    without its ``/s``: what a throughput times its median must give. ``on_cpu`` is False for what
    needs a card. ``budget_s`` is the usual timed part; the time is no part of the standard.
    """

    key: str
    title: str
    workload: str
    size: int
    dtype: str = "float32"
    options: dict[str, str] = msgspec.field(default_factory=dict)
    cache: str = "hot"
    transfers: bool = False
    unit: str
    work: float
    budget_s: float
    on_cpu: bool = True

    def runs_on(self, device: str) -> bool:
        """Return whether a device has this item at all."""
        return self.on_cpu or not is_cpu(device)

    def is_of(self, result: RunFinished) -> bool:
        """Return whether a result is of this item's work."""
        return all(
            getattr(result, name) == getattr(self, name)
            for name in ("workload", "size", "dtype", "options", "cache", "transfers")
        )

    def request(
        self, run_id: str, device: str, budget_s: float, *, load: bool = False
    ) -> RunWorkload:
        """Return the run of this item on a device, or the load that repeats it."""
        return RunWorkload(
            run_id=run_id,
            workload=self.workload,
            device=device,
            size=self.size,
            dtype=self.dtype,
            options=self.options,
            cache=self.cache,
            transfers=self.transfers,
            budget_s=budget_s,
            longest_call_s=LONGEST_CALL_S,
            with_findings=False,
            load=load,
        )


_MIB = 1 << 20
# One multiplication and addition per term; a layer's gradients are two more products each, except
# that the first layer's images need none.
_PRODUCT = 2.0 * 2048**3
_CONVOLUTION = 3 * 2.0 * 16 * 64 * 56 * 56 * 64 * 3 * 3
_TRAINING_STEP = 2.0 * 2048 * (3 * (784 * 1024 + 1024 * 1024 + 1024 * 10) - 784 * 1024)

STANDARD_1 = (
    StandardItem(
        key="bandwidth", title="Memory bandwidth", workload="copy", size=256,
        options={"direction": "d2d", "memory": "pageable"}, unit="B/s", work=2.0 * 256 * _MIB,
        budget_s=2.0,
    ),
    StandardItem(
        key="product_float32", title="Product, float32", workload="matmul", size=2048,
        unit="FLOP/s", work=_PRODUCT, budget_s=5.0,
    ),
    StandardItem(
        key="product_float16", title="Product, float16", workload="matmul", size=2048,
        dtype="float16", unit="FLOP/s", work=_PRODUCT, budget_s=2.0,
    ),
    StandardItem(
        key="product_bfloat16", title="Product, bfloat16", workload="matmul", size=2048,
        dtype="bfloat16", unit="FLOP/s", work=_PRODUCT, budget_s=2.0,
    ),
    StandardItem(
        key="convolution", title="Convolution", workload="conv2d", size=16,
        options={"cudnn": "default"}, unit="FLOP/s", work=_CONVOLUTION, budget_s=3.0,
    ),
    StandardItem(
        key="training_step", title="Training step", workload="train_step", size=2048,
        options={"amp": "off", "amp_dtype": "default"}, unit="FLOP/s", work=_TRAINING_STEP,
        budget_s=6.0,
    ),
    StandardItem(
        key="launch", title="Launch overhead", workload="launch", size=1, unit="calls/s", work=1.0,
        budget_s=1.0,
    ),
    StandardItem(
        key="copy_in", title="Copy to the card", workload="copy", size=64,
        options={"direction": "h2d", "memory": "pinned"}, unit="B/s", work=64.0 * _MIB,
        budget_s=2.0, on_cpu=False,
    ),
    StandardItem(
        key="copy_out", title="Copy from the card", workload="copy", size=64,
        options={"direction": "d2h", "memory": "pinned"}, unit="B/s", work=64.0 * _MIB,
        budget_s=2.0, on_cpu=False,
    ),
)  # fmt: skip
"""The items of `STANDARD`, in their order."""
LOAD_ITEM = STANDARD_1[1]
"""The work of the load at the end: every device can do it."""
LOAD = "load"
"""The key of the load's runs, in place of an item's."""
_ITEMS = {item.key: item for item in STANDARD_1}


def standard_item(key: str) -> StandardItem | None:
    """Return the item of a key; None if there is none."""
    return _ITEMS.get(key)


def devices_in_order(devices: Sequence[str]) -> tuple[str, ...]:
    """Return devices as the standard run takes them: the CPU first.

    While the CPU has its load, a card rests, so that its own first seconds are those of a card
    that was not hot.
    """
    return tuple(sorted(dict.fromkeys(devices), key=lambda device: not is_cpu(device)))


def standard_s(devices: Sequence[str], share: float = 1.0) -> float:
    """Return about how many seconds a standard run of devices takes."""
    return DEVICE_S * share * len(devices)


class StandardPlan:
    """Implements `plan.RunPlan`: an item on all devices, the next one, …, then each device's load.

    The runs of an item take turns. What an item takes beyond its timed part differs from PC to PC;
    where it is long, the items that follow get less time, so that the whole keeps its length.

    Args:
        devices: addresses, in any order.
        share: the share of the usual time to take, for tests of the method.
    """

    def __init__(self, devices: Sequence[str], share: float = 1.0) -> None:
        self.devices = devices_in_order(devices)
        self.share = share
        self.keys: dict[str, str] = {}
        """The item of each run so far, by the run's id; `LOAD` for a load."""
        self._items = [
            item for item in STANDARD_1 if any(item.runs_on(device) for device in self.devices)
        ]
        self._loads = list(self.devices)
        self._groups: list[list[RunWorkload]] = []

    @property
    def planned_s(self) -> float:
        """About how long the whole takes, in seconds."""
        return standard_s(self.devices, self.share)

    def left_s(self, results: Sequence[RunFinished]) -> float:
        """Return about how many seconds the runs take that have not been asked for yet."""
        spent_s = sum(self._spent_s(group, results) for group in self._groups)
        return max(self.planned_s - spent_s, self._loads_s)

    def requests(self, first_number: int = 1) -> list[RunWorkload]:
        """Return the runs of the first item; see `plan.RunPlan.requests`."""
        return self.next_requests((), first_number)

    def next_requests(
        self, results: Sequence[RunFinished], first_number: int = 1
    ) -> list[RunWorkload]:
        """Return the runs of the next item; see `plan.RunPlan.next_requests`."""
        if self._items:
            share = self._share_left(results)
            item = self._items.pop(0)
            devices = [device for device in self.devices if item.runs_on(device)]
            runs = [
                item.request(f"run-{number}", device, share * item.budget_s)
                for number, device in enumerate(devices, first_number)
            ]
            return self._remembered(item.key, runs)
        if self._loads:
            device = self._loads.pop(0)
            load_s = self.share * LOAD_S
            run = LOAD_ITEM.request(f"run-{first_number}", device, load_s, load=True)
            return self._remembered(LOAD, [run])
        return []

    @property
    def _loads_s(self) -> float:
        return self.share * LOAD_S * len(self._loads)

    def _share_left(self, results: Sequence[RunFinished]) -> float:
        """Return which share of its usual time each item still gets."""
        budgets_s = beyond_s = 0.0
        for item in self._items:
            runs = sum(item.runs_on(device) for device in self.devices)
            budgets_s += runs * item.budget_s
            beyond_s += runs * self._beyond_s(results)
        beyond_s += len(self._loads) * self._beyond_s(results)
        timed_s = self.left_s(results) - self._loads_s - beyond_s
        return min(max(timed_s / budgets_s, _LEAST_SHARE * self.share), self.share)

    def _beyond_s(self, results: Sequence[RunFinished]) -> float:
        """Return what a run takes beyond its timed part: by the runs so far, the mean."""
        known = [
            self._spent_s(group, results) - sum(run.budget_s for run in group)
            for group in self._groups
            if self._spent_s(group, results)
        ]
        runs = sum(len(group) for group in self._groups if self._spent_s(group, results))
        return max(sum(known), 0.0) / runs if runs else self.share * _USUAL_BEYOND_S

    def _spent_s(self, group: Sequence[RunWorkload], results: Sequence[RunFinished]) -> float:
        """Return how long the runs of a group took together; each waits while others are timed."""
        ids = {run.run_id for run in group}
        return max((one.elapsed_s for one in results if one.run_id in ids), default=0.0)

    def _remembered(self, key: str, runs: list[RunWorkload]) -> list[RunWorkload]:
        self.keys |= dict.fromkeys((run.run_id for run in runs), key)
        self._groups.append(runs)
        return runs
