"""The standard run: fixed work in a fixed order, so that any two PCs can be compared.

`STANDARD` is the version of everything here. A change of a workload, a size, a dtype, an option or
the order makes another standard, and runs of two standards are not compared. How the sizes were
chosen is in docs/development/measurements.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.run_messages import MOST_IN_TURNS, RunWorkload
from gpu_studio.core.units import about_time

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


class StandardItem(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of the standard run.

    ``options`` has all options of the workload. ``work`` is the work of one call in ``unit``
    without its ``/s``: what a throughput times its median must give. ``on_cpu`` is False for what
    needs a card. ``timed_s`` is no part of the standard.
    """

    key: str
    title: str
    workload: str
    size: int
    dtype: str = "float32"
    options: dict[str, str] = msgspec.field(default_factory=dict)
    unit: str
    work: float
    timed_s: float
    on_cpu: bool = True

    def runs_on(self, device: str) -> bool:
        """Return whether a device has this item at all."""
        return self.on_cpu or not is_cpu(device)

    def is_of(self, result: RunFinished) -> bool:
        """Return whether a result is of this item's work."""
        is_plain = result.cache == "hot" and not result.transfers
        names = ("workload", "size", "dtype", "options")
        return is_plain and all(getattr(result, name) == getattr(self, name) for name in names)

    def request(self, device: str, longest_s: float | None = None) -> RunWorkload:
        """Return the run of this item on a device; `key_of` tells it from the run's id."""
        return RunWorkload(
            run_id=f"{self.key} {device}",
            workload=self.workload,
            device=device,
            size=self.size,
            dtype=self.dtype,
            options=self.options,
            budget_s=self.timed_s,
            longest_s=longest_s,
            longest_call_s=LONGEST_CALL_S,
            with_findings=False,
        )


def key_of(run_id: str) -> str:
    """Return the key of the item that a run is of; `LOAD` for a load."""
    return run_id.partition(" ")[0]


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
        timed_s=2.0,
    ),
    StandardItem(
        key="product_float32", title="Product, float32", workload="matmul", size=2048,
        unit="FLOP/s", work=_PRODUCT, timed_s=5.0,
    ),
    StandardItem(
        key="product_float16", title="Product, float16", workload="matmul", size=2048,
        dtype="float16", unit="FLOP/s", work=_PRODUCT, timed_s=2.0,
    ),
    StandardItem(
        key="product_bfloat16", title="Product, bfloat16", workload="matmul", size=2048,
        dtype="bfloat16", unit="FLOP/s", work=_PRODUCT, timed_s=2.0,
    ),
    StandardItem(
        key="convolution", title="Convolution", workload="conv2d", size=16,
        options={"cudnn": "default"}, unit="FLOP/s", work=_CONVOLUTION, timed_s=3.0,
    ),
    StandardItem(
        key="training_step", title="Training step", workload="train_step", size=2048,
        options={"amp": "off", "amp_dtype": "default"}, unit="FLOP/s", work=_TRAINING_STEP,
        timed_s=6.0,
    ),
    StandardItem(
        key="launch", title="Launch overhead", workload="launch", size=1, unit="calls/s", work=1.0,
        timed_s=1.0,
    ),
    StandardItem(
        key="copy_in", title="Copy to the card", workload="copy", size=64,
        options={"direction": "h2d", "memory": "pinned"}, unit="B/s", work=64.0 * _MIB,
        timed_s=2.0, on_cpu=False,
    ),
    StandardItem(
        key="copy_out", title="Copy from the card", workload="copy", size=64,
        options={"direction": "d2h", "memory": "pinned"}, unit="B/s", work=64.0 * _MIB,
        timed_s=2.0, on_cpu=False,
    ),
)  # fmt: skip
"""The items of `STANDARD`, in their order."""
LOAD_ITEM = STANDARD_1[1]
"""The work of the load at the end: every device can do it."""
LOAD = "load"
"""The key of the load's runs, in place of an item's."""
ITEMS = {item.key: item for item in STANDARD_1}
"""The items by their keys."""


def standard_s(devices: Sequence[str]) -> float:
    """Return about how many seconds a standard run of devices takes."""
    return DEVICE_S * len(devices)


class StandardPlan:
    """All items on all devices in turns, then each device's load.

    In turns, the rounds of an item are spread over the whole time. So its interval has the drift
    of a minute in it, by which two runs of one PC differ.

    Args:
        devices: addresses, in any order.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        # The CPU first: a card rests meanwhile, so its first seconds are not those of a hot one.
        self.devices = sorted(dict.fromkeys(devices), key=lambda device: not is_cpu(device))
        at_once = MOST_IN_TURNS // len(STANDARD_1)
        firsts = range(0, len(self.devices), at_once)
        self._groups = [_in_turns(self.devices[first : first + at_once]) for first in firsts]
        self._groups += [[_load_of(device)] for device in self.devices]

    def work_words(self, run_id: str) -> str:
        """Return what a run does: ``In turns: Convolution``, ``Full load``."""
        item = ITEMS.get(key_of(run_id))
        return f"In turns: {item.title}" if item is not None else "Full load"

    def left_s(self, elapsed_s: float) -> float:
        """Return about how many seconds are left, of how long the whole has taken until now."""
        return max(standard_s(self.devices) - elapsed_s, 1.0)

    def left_words(self, elapsed_s: float) -> str:
        """Return the time that is left in words; no time once the planned one has passed."""
        if elapsed_s > standard_s(self.devices):
            return "longer than planned"
        return f"{about_time(self.left_s(elapsed_s))} left"

    def next_requests(self) -> list[RunWorkload]:
        """Return the next runs in turns, or the next load; empty if there are no more."""
        return self._groups.pop(0) if self._groups else []


def _in_turns(devices: Sequence[str]) -> list[RunWorkload]:
    """Return the runs of all items, in each the devices; these are compared with each other."""
    return [
        item.request(device, item.timed_s + _beyond_s(device))
        for item in STANDARD_1
        for device in filter(item.runs_on, devices)
    ]


def _load_of(device: str) -> RunWorkload:
    plain = LOAD_ITEM.request(device)
    return msgspec.structs.replace(plain, run_id=f"{LOAD} {device}", budget_s=LOAD_S, load=True)


def _beyond_s(device: str) -> float:
    """Return what an item on a device may take beyond its timed part: setup, check, warm-ups."""
    items = [item for item in STANDARD_1 if item.runs_on(device)]
    return (DEVICE_S - LOAD_S - sum(item.timed_s for item in items)) / len(items)
