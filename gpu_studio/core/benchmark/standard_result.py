"""Make the record of a standard run from its runs, and say in words what it found.

Results are put in without what identifies the user or the PC: names of other programs, of PCs and
of files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.claim import claim_of
from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.benchmark.standard import LOAD, LOAD_ITEM, STANDARD_1
from gpu_studio.core.benchmark.standard_record import (
    StandardCheck,
    StandardDevice,
    StandardFigure,
    StandardLoad,
    StandardRun,
)
from gpu_studio.core.benchmark.sustained import held_speed
from gpu_studio.core.device_name import address_there, is_cpu
from gpu_studio.core.devices.cards import silicon_text
from gpu_studio.core.devices.facts import driver_text
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.listing import listed
from gpu_studio.core.messages.run_messages import OtherLoad
from gpu_studio.core.plain_text import plain_text
from gpu_studio.core.units import counted, format_percent, format_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.benchmark.standard import StandardItem, StandardPlan
    from gpu_studio.core.devices.devices import Device, Inventory
    from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard
    from gpu_studio.core.messages.run_messages import RunFinished

_STOPPED = "The run was stopped before this was measured."
_ENGINE_ENDED = "The engine ended before this was measured."
# A path may have the user's name in it.
_PATH = re.compile(r"(?<![\w/\\])(?:[A-Za-z]:[\\/]|~?[\\/])[^\s,;“”\"']+")
_LONGEST_SENTENCE = 300


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a device beside its results; None is unknown.

    ``device`` is what the PC says of it, ``torch_card`` what PyTorch does, ``driver`` the version
    of the driver that its maker has for all cards, ``check`` its newest check.
    """

    device: Device | None = None
    torch_card: TorchCard | None = None
    driver: str | None = None
    check: StandardCheck | None = None


def facts_of(
    address: str,
    inventory: Inventory | None,
    described: EngineDescribed | None,
    check: StandardCheck | None = None,
) -> DeviceFacts:
    """Return what is known of the device that an engine calls so.

    Args:
        address: the device's, as its own PC has it.
        inventory: the devices of that PC; None if it was not looked at.
        described: the engine; None if unknown.
        check: the newest check of the device.
    """
    cards = described.cards if described else ()
    torch_card = next((card for card in cards if card.address == address), None)
    device = inventory.find(address) if inventory else None
    if inventory and device is None and torch_card is not None and torch_card.uuid:
        device = inventory.device_with(torch_card.uuid)
    driver = driver_text(device) if device is not None and not device.is_cpu else None
    if driver is None and inventory and device is not None and device.is_cudas:
        driver = inventory.driver.version
    return DeviceFacts(device=device, torch_card=torch_card, driver=driver, check=check)


def standard_run_of(
    plan: StandardPlan,
    runs: Sequence[Run],
    facts: Mapping[str, DeviceFacts],
    described: EngineDescribed | None,
    *,
    made_at: str,
    program: str,
    system: str,
) -> StandardRun | None:
    """Return the record of a plan that is over; None if it measured nothing.

    Args:
        plan: the plan; it may have been stopped.
        runs: its runs that have begun.
        facts: what is known of each device, by address.
        described: the engine that made the runs; None if unknown.
        made_at: the present time in ISO 8601.
        program: this program's name and version.
        system: the operating system's name and version.
    """
    build = described.torch_version if described else ""
    devices = [
        _device(address, plan, runs, facts.get(address, DeviceFacts()), build, made_at)
        for address in plan.devices
    ]
    measured = tuple(device for device in devices if any(one.result for one in device.figures))
    if not measured:
        return None
    return StandardRun(made_at=made_at, program=program, system=system, devices=measured)


def _device(
    address: str,
    plan: StandardPlan,
    runs: Sequence[Run],
    facts: DeviceFacts,
    build: str,
    made_at: str,
) -> StandardDevice:
    own = {
        plan.keys[run.request.run_id]: run
        for run in runs
        if run.request.device == address and run.request.run_id in plan.keys
    }
    device, torch_card = facts.device, facts.torch_card
    results = [run.result for run in own.values() if run.result is not None]
    named = [device.name if device else "", *(one.device_name for one in results), address]
    known = device or torch_card
    return StandardDevice(
        name=plain_text(next(filter(None, named)))[:100],
        is_cpu=is_cpu(address),
        silicon="" if device is None or device.is_cpu else silicon_text(device),
        memory_total_bytes=known.memory_total_bytes if known else None,
        compute_capability=known.compute_capability if known else None,
        architecture=known.architecture if known else None,
        driver=facts.driver,
        build=next((one.torch_version for one in results), build),
        figures=tuple(
            _figure(item, own.get(item.key), made_at)
            for item in STANDARD_1
            if item.runs_on(address)
        ),
        load=_load(own.get(LOAD)),
        check=facts.check,
    )


def _figure(item: StandardItem, run: Run | None, made_at: str) -> StandardFigure:
    if run is not None and run.result is not None:
        turns = f"standard {made_at}" if run.result.turns else ""
        return StandardFigure(key=item.key, result=cleaned(run.result, item.key, turns))
    return StandardFigure(key=item.key, skipped=_why_none(run))


def _why_none(run: Run | None) -> str:
    """Return why a run has no result, in a sentence without paths."""
    if run is None or run.state is RunState.STOPPED:
        return _STOPPED
    if run.failure is None or run.failure.kind is FailureKind.ENGINE_ENDED:
        return _ENGINE_ENDED
    return _PATH.sub("…", plain_text(run.failure.message))[:_LONGEST_SENTENCE] or _ENGINE_ENDED


def cleaned(result: RunFinished, key: str, turns: str = "") -> RunFinished:
    """Return a result as it leaves this PC: what others did here is a load without a name.

    Args:
        result: from an engine.
        key: the item's, in place of the run's own id.
        turns: a name for its turns that no other PC has; empty if it was alone.
    """
    other_load = result.other_load
    return msgspec.structs.replace(
        result,
        run_id=key,
        device=address_there(result.device),
        other_load=OtherLoad(percent=other_load.percent) if other_load is not None else None,
        verification=_PATH.sub("…", result.verification),
        findings=(),
        curves={},
        turns=turns,
    )


def _load(run: Run | None) -> StandardLoad | None:
    """Return what a load showed; None if it was not made, or too short."""
    if run is None or run.result is None:
        return None
    held = held_speed(run.series.values, run.result.calls_per_sample)
    heat = run.result.heat
    if held is None or not held.first_s or not held.steady_s or not held.ratio_ci95[0]:
        return None
    return StandardLoad(
        seconds=held.seconds,
        first_rate=LOAD_ITEM.work / held.first_s,
        steady_rate=LOAD_ITEM.work / held.steady_s,
        ci95=_around(held.ratio_ci95, held.first_s / held.steady_s),
        **(msgspec.structs.asdict(heat) if heat is not None else {}),
    )


def _around(interval: tuple[float, float], ratio: float) -> tuple[float, float]:
    """Return an interval that has its ratio in it, also after the rounding of two divisions."""
    return min(interval[0], ratio * (1 - 1e-12)), max(interval[1], ratio * (1 + 1e-12))


# ── in words ─────────────────────────────────────────────────────────────────────────────────────


def rate_text(device: StandardDevice, key: str) -> str:
    """Return the speed of an item on a device: ``1.02 TFLOP/s``; "–" if it has none."""
    result = device.result(key)
    return "–" if result is None else format_rate(result.throughput, result.throughput_unit)


def held_words(device: StandardDevice) -> str:
    """Return how a device held its speed in the load, as a sentence; empty if unknown."""
    load = device.load
    if load is None:
        return ""
    ratio = load.steady_rate / load.first_rate
    low, high = load.ci95
    if low <= 1 <= high:
        return f"{device.name} held its speed for {load.seconds:.0f}\u202fs of full load."
    change = "slower" if ratio < 1 else "faster"
    share = format_percent(abs(1 - ratio))
    return (
        f"After {load.seconds:.0f}\u202fs of full load, {device.name} was {share} {change} than in "
        "the first seconds."
    )


def sentence_of(run: StandardRun) -> str:
    """Return what a standard run found, in one sentence: the cards beside the CPU."""
    cpu = next((device for device in run.devices if device.is_cpu), None)
    cards = [device for device in run.devices if not device.is_cpu]
    if cpu is None or not cards:
        names = " and ".join(device.name for device in run.devices)
        count = sum(one.result is not None for device in run.devices for one in device.figures)
        return f"{names}: {counted(count, 'figure')} of standard {run.standard} measured."
    return " ".join(_beside_cpu(card, cpu) for card in cards)


def _beside_cpu(card: StandardDevice, cpu: StandardDevice) -> str:
    signs = [
        claim.sign
        for item in STANDARD_1
        if (ours := card.result(item.key)) is not None
        and (theirs := cpu.result(item.key)) is not None
        and (claim := claim_of(theirs, ours)) is not None
    ]
    won, lost = signs.count(1), signs.count(-1)
    rest = len(signs) - won - lost
    words = [f"faster than the CPU in {won}"] if won else []
    words += [f"slower in {lost}" if won else f"slower than the CPU in {lost}"] if lost else []
    words += [f"without a verdict in {rest}"] if rest else []
    return f"{card.name} is {', '.join(words) or 'measured'} of {len(signs)} kinds of work."


def shown_figures(device: StandardDevice) -> list[tuple[str, str]]:
    """Return the title and the speed of each item that a device has a result of."""
    shown = [
        (item.title, rate_text(device, item.key))
        for item in STANDARD_1
        if device.result(item.key) is not None
    ]
    load = device.load
    if load is not None:
        share = format_percent(load.steady_rate / load.first_rate)
        shown.append(("Speed held", share))
    return shown


def missing_words(device: StandardDevice) -> str:
    """Return which items a device has no result of, each with the reason; empty for none."""
    reasons: dict[str, list[str]] = {}
    for item in STANDARD_1:
        figure = device.figure(item.key)
        if figure is not None and figure.result is None:
            reasons.setdefault(figure.skipped, []).append(item.title)
    return " ".join(f"{listed(titles)}: {reason}" for reason, titles in reasons.items())
