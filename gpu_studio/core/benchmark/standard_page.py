"""A standard run as a page (HTML) with the run itself inside, see `core.page`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.benchmark.standard_record import CHUNK, encode_standard
from gpu_studio.core.benchmark.standard_words import (
    MISSING,
    NOT_REPORTED,
    OF_CEILING,
    ceiling_of,
    check_words,
    device_words,
    figure_words,
    headline_of,
    items_of,
    role_of,
    speed_of,
    stamp_words,
    subject_words,
)
from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.moments import written_moment
from gpu_studio.core.page import PageCell, page_of_template
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.svg_canvas import EM, SvgCanvas
from gpu_studio.core.units import format_bytes, format_duration, format_percent, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.benchmark.standard import StandardItem
    from gpu_studio.core.benchmark.standard_record import (
        StandardDevice,
        StandardLoad,
        StandardRun,
    )

_WIDE, _NARROW = 900.0, 420.0
_LINE, _BAR, _GAP = 1.6 * EM, 0.9 * EM, 0.5 * EM
_PROMISE = (
    "Every speed was measured on the day above, by the same work on every PC. Open this page in "
    "GPU Studio to compare it with your PC: the run is inside."
)


def standard_page(run: StandardRun) -> bytes:
    """Return a standard run as a page in UTF-8, without identifiers in its texts."""
    run = without_identifiers(run)
    headline, (stamp, tone) = headline_of(run), stamp_words(run)
    first = headline.device if headline is not None else run.devices[0]
    against = headline.reference if headline is not None else None
    values = {
        "title": f"Standard run {run.standard}" + (f", {run.pc_name}" if run.pc_name else ""),
        "subject": subject_words(first, run),
        "program": run.program or "GPU Studio",
        "promise": _PROMISE,
        "when": written_moment(run.made_at, with_zone=True),
        "headline": headline.text if headline is not None else "No results",
        "stamp": stamp,
        "tone": tone,
        "line": "" if headline is None else headline.item.title
        + (f", compared with {short_name(against.name)}" if against is not None else ""),
        "charts": [_chart(item, run) for item in items_of(run)],
        "doubts": [*_doubts(run)],
        "loads": [
            {"name": device_words(device), "facts": [*_load_facts(device.load)]}
            for device in run.devices
            if device.load is not None
        ],
        "devices": [
            {"name": device_words(device), "facts": [*_device_facts(device)]}
            for device in run.devices
        ],
        "facts": [("Started", written_moment(run.made_at, with_zone=True)),
                  ("System", run.system or NOT_REPORTED), ("Program", run.program)],
    }  # fmt: skip
    return page_of_template("standard.html", values, CHUNK, encode_standard(run))


def _chart(item: StandardItem, run: StandardRun) -> dict[str, Any]:
    devices = [one for one in run.devices if one.figure(item.key) is not None]
    has_doubts = any(figure_words(item, device, run).doubt for device in devices)
    rows = []
    for device in devices:
        words, result = figure_words(item, device, run), device.result(item.key)
        call = format_duration(result.median_s) if result is not None else MISSING
        if words.skipped:
            cells = [PageCell(words.skipped)]
        elif words.is_wrong:
            cells = [PageCell("Wrong results", "failure")]
        else:
            cells = [PageCell(words.rate, "number")]
        against = "reference" if device.is_cpu and len(run.devices) > 1 else words.against
        share = words.share.removesuffix(OF_CEILING)
        cells += [
            PageCell(call, "number"),
            PageCell(against or MISSING),
            PageCell(share or MISSING),
        ]
        cells += [PageCell(f"▲ {words.doubt}" if words.doubt else "", "amber")] * has_doubts
        rows.append((short_name(device.name), cells))
    pictures = {
        name: _bars(item, devices, run, width)
        for name, width in (("wide", _WIDE), ("narrow", _NARROW))
    }
    heads = ("Device", "Speed", "A call", "Against CPU", "Of ceiling")
    return {
        "title": item.title,
        "pictures": pictures,
        "heads": (*heads, "Doubt") if has_doubts else heads,
        "rows": rows,
    }


def _bars(item: StandardItem, devices: list[StandardDevice], run: StandardRun, width: float) -> str:
    """Return the bars of an item: a device's speed, with a line at its own ceiling."""
    canvas, top = SvgCanvas(), 0.0
    speeds = [speed_of(one.result(item.key)) for one in devices]
    ceilings = [ceiling_of(one.result(item.key)) or 0.0 for one in devices]
    scale = max(*speeds, *ceilings, 1e-300)
    for device, speed, ceiling in zip(devices, speeds, ceilings, strict=True):
        name, words = short_name(device.name), figure_words(item, device, run)
        room = width - canvas.text_width(words.rate) - EM
        canvas.text(0, top + _LINE / 2, _cut(name, canvas, room), "text")
        canvas.text(width, top + _LINE / 2, words.rate or MISSING, "text", anchor="right")
        top += _LINE
        canvas.box(0, top, width, _BAR, "track")
        if speed:
            canvas.box(0, top, max(width * speed / scale, 2.0), _BAR, role_of(device, run))
        if ceiling:
            x = min(width * ceiling / scale, width - 1.0)
            canvas.line(x, top - 2, x, top + _BAR + 2, "text")
        top += _BAR + _GAP
    sentence = ", ".join(
        f"{short_name(one.name)} {figure_words(item, one, run).rate or 'no result'}"
        for one in devices
    )
    return canvas.svg(width, top, f"{item.title}: {sentence}.")


def _cut(text: str, canvas: SvgCanvas, width: float) -> str:
    while len(text) > 1 and canvas.text_width(text) > width:
        text = f"{text[:-2]}…"
    return text


def _doubts(run: StandardRun) -> Iterator[str]:
    for device in run.devices:
        for item in items_of(run):
            result = device.result(item.key)
            if result is not None:
                for doubt in stamp_of(result).doubts:
                    yield f"{short_name(device.name)}, {item.title}: {doubt}"


def _load_facts(load: StandardLoad) -> Iterator[tuple[str, str]]:
    low, high = (format_percent(one) for one in load.ci95)
    first, steady = (_amount(one, "MHz") for one in (load.first_clock_mhz, load.steady_clock_mhz))
    yield "First speed", format_rate(load.first_rate, "FLOP/s")
    yield "Steady speed", f"{format_rate(load.steady_rate, 'FLOP/s')} ({low} to {high})"
    yield "Clock", steady if first == steady else f"{first}, then {steady}"
    yield "Highest temperature", _amount(load.highest_temperature_c, "°C")
    yield "Highest hot spot", _amount(load.highest_hotspot_c, "°C")
    yield "Highest power", _amount(load.highest_power_w, "W")
    yield "Slowed down", {True: "yes", False: "no", None: NOT_REPORTED}[load.was_throttled]


def _amount(value: float | None, unit: str) -> str:
    return NOT_REPORTED if value is None else f"{value:.4g}\u202f{unit}"


def _device_facts(device: StandardDevice) -> Iterator[tuple[str, str]]:
    yield "Processor" if device.is_cpu else "Card", device.name
    if not device.is_cpu:
        yield "Chip", device.silicon or NOT_REPORTED
        yield "Driver", device.driver or NOT_REPORTED
    if device.compute_capability:
        yield "Compute capability", device.compute_capability
    if device.architecture:
        yield "Architecture", device.architecture
    if device.memory_total_bytes is not None:
        yield "RAM" if device.is_cpu else "Video memory", format_bytes(device.memory_total_bytes)
    yield "PyTorch", device.build or NOT_REPORTED
    if not device.is_cpu:
        check = check_words(device.check) if device.check is not None else "Check: none yet"
        yield "Check", check.removeprefix("Check: ")
