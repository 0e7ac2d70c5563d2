"""A standard run in words: the same on its picture, in its text and on its page.

`claim.claim_of` decides who is faster, as everywhere. A share of a ceiling is only said where
`ceilings` believes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from gpu_studio.core.benchmark.ceilings import believed_share, share_text
from gpu_studio.core.benchmark.claim import claim_of
from gpu_studio.core.benchmark.standard import STANDARD_1, standard_item
from gpu_studio.core.benchmark.standing import Standing
from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.devices.card_colors import COLOR_COUNT
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.moments import written_moment
from gpu_studio.core.units import format_bytes, format_percent, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.benchmark.claim import Claim
    from gpu_studio.core.benchmark.standard import StandardItem
    from gpu_studio.core.benchmark.standard_record import (
        StandardCheck,
        StandardDevice,
        StandardLoad,
        StandardRun,
    )
    from gpu_studio.core.messages.run_messages import RunFinished

MISSING = "–"
NOT_REPORTED = "not reported"
OF_CEILING = " of ceiling"
# The first that was measured is the headline: people train more than they multiply.
_HEADLINES = ("training_step", "convolution", "product_float32", "bandwidth")
_CHECKS = {
    "passed": "passed", "failed": "failed", "inconclusive": "inconclusive", "partial": "partial",
    "skipped": "skipped",
}  # fmt: skip


class FigureWords(NamedTuple):
    """A figure of a device. Each text is empty where there is nothing to say.

    ``rate`` is the speed, ``share`` that of the device's ceiling, ``against`` the comparison with
    the CPU of the same run, ``doubt`` the first reason not to trust it, and ``skipped`` why there
    is no result. ``is_wrong``: the results were wrong.
    """

    rate: str = ""
    share: str = ""
    against: str = ""
    doubt: str = ""
    skipped: str = ""
    is_wrong: bool = False

    @property
    def cell(self) -> str:
        """All of it in a cell of a table: ``1.03 TFLOP/s · 74 % of ceiling · 7.5 ×``."""
        if self.skipped:
            return self.skipped
        doubt = f"▲ {self.doubt}" if self.doubt else ""
        return " · ".join(filter(None, (self.rate, self.share, self.against, doubt))) or MISSING


class RunHeadline(NamedTuple):
    """The first comparison of a card with the CPU, or the speed of a device that stands alone."""

    item: StandardItem
    device: StandardDevice
    reference: StandardDevice | None
    text: str


def with_pc_name(run: StandardRun, name: str) -> StandardRun:
    """Return a run with the name that the user gives to the PC; empty for none."""
    return msgspec.structs.replace(run, pc_name=name)


def cpu_of(run: StandardRun) -> StandardDevice | None:
    """Return the CPU of a run; None if it was not measured."""
    return next((device for device in run.devices if device.is_cpu), None)


def cards_of(run: StandardRun) -> tuple[StandardDevice, ...]:
    """Return the cards of a run."""
    return tuple(device for device in run.devices if not device.is_cpu)


def items_of(run: StandardRun) -> tuple[StandardItem, ...]:
    """Return the items that any device of a run has."""
    return tuple(
        item for item in STANDARD_1 if any(device.figure(item.key) for device in run.devices)
    )


def compared(item: StandardItem, card: StandardDevice, run: StandardRun) -> Claim | None:
    """Return the comparison of a card with the CPU of its run; None without both results."""
    cpu = cpu_of(run)
    ours, theirs = card.result(item.key), cpu.result(item.key) if cpu is not None else None
    return None if card.is_cpu or ours is None or theirs is None else claim_of(theirs, ours)


def figure_words(item: StandardItem, device: StandardDevice, run: StandardRun) -> FigureWords:
    """Return a figure of a device in words."""
    figure = device.figure(item.key)
    if figure is None:
        return FigureWords()
    result = figure.result
    if result is None:
        return FigureWords(skipped=figure.skipped)
    if result.verified is False:
        return FigureWords(rate="wrong results", is_wrong=True)
    comparison, share = compared(item, device, run), share_text(result)
    doubts = stamp_of(result).words
    return FigureWords(
        rate=format_rate(result.throughput, result.throughput_unit),
        share=f"{share}{OF_CEILING}" if believed_share(result) is not None else share,
        against=comparison.cell if comparison is not None else "",
        doubt=doubts[0] if doubts else "",
    )


def headline_of(run: StandardRun) -> RunHeadline | None:
    """Return what stands first; None if nothing was measured.

    Of several cards, it is about the fastest in the first item that a card has.
    """
    cpu, cards = cpu_of(run), cards_of(run)
    for key in _HEADLINES:
        item = standard_item(key)
        measured = [one for one in cards or run.devices if one.result(key) is not None]
        if item is None or not measured:
            continue
        device = max(measured, key=lambda one: speed_of(one.result(key)))
        result = device.result(key)
        assert result is not None
        comparison = compared(item, device, run)
        wrong = (result,) if result.verified is False else ()
        standing = Standing((result,), comparison, result, wrong)
        if comparison is None:
            rate = format_rate(result.throughput, result.throughput_unit)
            return RunHeadline(item, device, None, standing.ratio_text or rate)
        return RunHeadline(item, device, cpu, standing.ratio_text)
    return None


def speed_of(result: RunFinished | None) -> float:
    """Return the speed of a right result, else 0."""
    return 0.0 if result is None or result.verified is False else result.throughput


def stamp_words(run: StandardRun) -> tuple[str, Literal["good", "amber", "failure"]]:
    """Return the stamp of a whole run and its tone: ``good``, ``amber`` or ``failure``."""
    results = tuple(
        one.result for device in run.devices for one in device.figures if one.result is not None
    )
    if not results:
        return "Nothing measured", "amber"
    if any(result.verified is False for result in results):
        return "Wrong results", "failure"
    doubtful = sum(bool(stamp_of(result).words) for result in results)
    if doubtful:
        return f"▲ {doubtful} of {len(results)} results doubtful", "amber"
    return Standing(results).checked_text, "good"


def device_words(device: StandardDevice) -> str:
    """Return a device with its memory: ``GeForce GT 1030, 2 GiB``."""
    name = short_name(device.name) if device.is_cpu else device.name.removeprefix("NVIDIA ")
    if device.memory_total_bytes is None or device.is_cpu:
        return name
    return f"{name}, {format_bytes(device.memory_total_bytes)}"


def subject_words(device: StandardDevice, run: StandardRun) -> str:
    """Return the device that a run's headline is about, and of how many cards it is the fastest."""
    count = len(cards_of(run))
    return f"Fastest of {count}: " * (count > 1) + device_words(device)


def load_words(load: StandardLoad) -> str:
    """Return the load at the end in a line: ``After 20 s of full load: 91 % of its first speed``.

    What the sensors did not report is left out.
    """
    parts = [f"{format_percent(load.steady_rate / load.first_rate)} of its first speed"]
    if load.steady_clock_mhz is not None:
        parts.append(f"{load.steady_clock_mhz:.0f}\u202fMHz")
    if load.highest_temperature_c is not None:
        parts.append(f"{load.highest_temperature_c:.0f}\u202f°C")
    if load.was_throttled:
        parts.append("slowed down by heat or power")
    return f"After {load.seconds:.0f}\u202fs of full load: {', '.join(parts)}"


def check_words(check: StandardCheck) -> str:
    """Return the newest check of a card: ``Check: passed (6 min, November 22, 2026)``."""
    return f"Check: {_CHECKS[check.verdict]} ({check.minutes}\u202fmin, {_day(check.made_at)})"


def _day(moment: str) -> str:
    return written_moment(moment).rpartition(", ")[0] or moment[:10]


def role_of(device: StandardDevice, run: StandardRun) -> str:
    """Return the color role of a device: the cards in their order."""
    if device.is_cpu:
        return "cpu"
    return f"gpu{min(cards_of(run).index(device), COLOR_COUNT - 1)}"


def ceiling_of(result: RunFinished | None) -> float | None:
    """Return the device's own ceiling in the unit of a result; None if it is not believed."""
    share = believed_share(result) if result is not None else None
    return result.throughput / share if result is not None and share else None


def day_words(run: StandardRun) -> str:
    """Return the day of a run: ``November 22, 2026``."""
    return written_moment(run.made_at).rpartition(", ")[0]


def version_words(run: StandardRun) -> str:
    """Return what the run depends on: PyTorch, drivers, system and program, each once."""
    return " · ".join(dict.fromkeys(_versions(run)))


def _versions(run: StandardRun) -> Iterator[str]:
    for device in run.devices:
        if device.build:
            yield f"PyTorch {device.build}"
    for device in run.devices:
        if device.driver:
            yield f"driver {device.driver}"
    if run.system:
        yield run.system
    if run.program:
        yield run.program
