"""Standard runs, made for the tests of what reads, shows and compares them."""

from typing import Any

import msgspec

from gpu_studio.core.benchmark.standard import STANDARD_1, StandardItem
from gpu_studio.core.benchmark.standard_record import (
    StandardDevice,
    StandardFigure,
    StandardLoad,
    StandardRun,
)
from gpu_studio.core.messages.run_messages import RunFinished
from tests.fakes.run_answers import changed, finished, samples_of

CPU_NAME, CARD_NAME = "Ryzen 7 5700G", "NVIDIA GeForce GT 1030"


def item_result(item: StandardItem, device: str = "cpu", **changes: Any) -> RunFinished:
    """Return an invented result of an item, with a throughput that is that of its median."""
    request = item.request(device)
    plain = finished(request, samples_of(request), run_id=item.key, throughput_unit=item.unit)
    result = changed(plain, **changes)
    return msgspec.structs.replace(result, throughput=item.work / result.median_s)


def figures(device: str = "cpu", skipped: str = "") -> tuple[StandardFigure, ...]:
    """Return a figure for every item of a device; that of the key ``skipped`` has no result."""
    return tuple(
        StandardFigure(key=item.key, skipped="This device has no bfloat16.")
        if item.key == skipped
        else StandardFigure(key=item.key, result=item_result(item, device))
        for item in STANDARD_1
        if item.runs_on(device)
    )


def standard_device(device: str = "cpu", **changes: Any) -> StandardDevice:
    is_cpu = device == "cpu"
    plain = StandardDevice(
        name=CPU_NAME if is_cpu else CARD_NAME,
        is_cpu=is_cpu,
        driver=None if is_cpu else "580.95.05",
        build="2.13.0+cu126",
        figures=figures(device, "" if is_cpu else "product_bfloat16"),
        load=StandardLoad(
            seconds=20.0, first_rate=1.1e12, steady_rate=1.0e12, ci95=(0.90, 0.92),
            first_clock_mhz=None if is_cpu else 1700.0,
            steady_clock_mhz=None if is_cpu else 1550.0,
            highest_temperature_c=71.0, was_throttled=None if is_cpu else False,
        ),
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def standard_run(*devices: StandardDevice, **changes: Any) -> StandardRun:
    """Return a standard run of these devices; without any, of a CPU and a card."""
    plain = StandardRun(
        made_at="2026-11-22T14:40:00.000+01:00",
        program="GPU Studio 1.0",
        system="Debian GNU/Linux 12",
        devices=devices or (standard_device(), standard_device("cuda:0")),
    )
    return msgspec.structs.replace(plain, **changes)


# Per second, of a card that does not exist.
_RATES = {
    "bandwidth": 298e9, "product_float32": 4.6e12, "product_float16": 0.61e12,
    "product_bfloat16": 0.58e12, "convolution": 2.1e12, "training_step": 3.2e12, "launch": 164e3,
    "copy_in": 12.1e9, "copy_out": 12.8e9,
}  # fmt: skip


def paced_device(
    name: str = "NVIDIA GeForce GTX 1660 SUPER",
    pace: float = 1.0,
    *,
    device: str = "cuda:0",
    only: tuple[str, ...] = (),
    **changes: Any,
) -> StandardDevice:
    """Return a device that is so many times as fast as an invented card.

    Args:
        name: its name.
        pace: how many times as fast.
        device: its address.
        only: the keys of the items with a result; empty for all.
        changes: other fields of each result.
    """
    found = []
    for item in STANDARD_1:
        if not item.runs_on(device):
            continue
        if only and item.key not in only:
            found.append(StandardFigure(key=item.key, skipped="It was stopped before."))
            continue
        median_s = item.work / (pace * _RATES[item.key])
        ci95_s = (0.99 * median_s, 1.01 * median_s)
        times = {"median_s": median_s, "iqr_s": 0.02 * median_s, "ci95_s": ci95_s}
        result = item_result(item, device, **{**times, "rounds_s": (median_s,) * 12, **changes})
        found.append(StandardFigure(key=item.key, result=result))
    return standard_device(device, name=name, figures=tuple(found))
