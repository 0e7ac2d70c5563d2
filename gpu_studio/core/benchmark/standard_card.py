"""A standard run on one picture, see `core.shared_card`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.standard import standard_item
from gpu_studio.core.benchmark.standard_record import CHUNK, encode_standard
from gpu_studio.core.benchmark.standard_words import (
    MISSING,
    cards_of,
    ceiling_of,
    check_words,
    cpu_of,
    day_words,
    figure_words,
    headline_of,
    load_words,
    role_of,
    speed_of,
    stamp_words,
    subject_words,
    version_words,
)
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.shared_card import (
    MOST_ROWS,
    CardBar,
    CardKey,
    CardRow,
    SharedCard,
    ascii_json,
)
from gpu_studio.core.shared_texts import without_identifiers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.standard import StandardItem
    from gpu_studio.core.benchmark.standard_record import StandardDevice, StandardRun
    from gpu_studio.core.benchmark.standard_words import RunHeadline

_ROWS = ("bandwidth", "product_float32", "product_float16", "convolution", "training_step")


def standard_card(run: StandardRun, *, is_dark: bool = True) -> SharedCard:
    """Return the picture of a standard run, without identifiers in its texts.

    One device has a row for each of five items. Of several cards, each has a row in the headline's
    item; of more than five, the fastest ones.

    Args:
        run: what it shows.
        is_dark: whether it has the dark colors.
    """
    run = without_identifiers(run)
    cards, headline = cards_of(run), headline_of(run)
    stamp, tone = stamp_words(run)
    device = headline.device if headline is not None else run.devices[0]
    more = len(cards) - 1
    rows = _rows_of_items(run, device)
    if more > 0 and headline is not None:
        rows = _rows_of_devices(run, headline.item)
    check = check_words(device.check) if device.check is not None else ""
    load = load_words(device.load) if device.load is not None else ""
    return SharedCard(
        title=f"Standard run {run.standard}" + (f" · {run.pc_name}" if run.pc_name else ""),
        stamp=stamp,
        tone=tone,
        name=subject_words(device, run),
        headline=headline.text if headline is not None else "No results",
        line=_line(headline),
        keys=_keys(run, device) if more <= 0 else (),
        rows=rows,
        note=" · ".join(filter(None, (check, load))),
        facts=version_words(run),
        day=day_words(run),
        keyword=CHUNK,
        content=ascii_json(encode_standard(run)),
        is_dark=is_dark,
    )


def _line(headline: RunHeadline | None) -> str:
    if headline is None:
        return ""
    if headline.reference is None:
        return headline.item.title
    return f"{headline.item.title}, compared with {short_name(headline.reference.name)}"


def _keys(run: StandardRun, device: StandardDevice) -> tuple[CardKey, ...]:
    cpu = cpu_of(run)
    shown = [device] if cpu is None or cpu is device else [device, cpu]
    return tuple(CardKey(role=role_of(one, run), name=short_name(one.name)) for one in shown)


def _rows_of_items(run: StandardRun, device: StandardDevice) -> tuple[CardRow, ...]:
    cpu = cpu_of(run)
    devices = [device] if cpu is None or cpu is device else [device, cpu]
    items = [standard_item(key) for key in _ROWS]
    return tuple(
        _row(item.title, item, devices, run, _scale(item, devices))
        for item in items
        if item is not None and device.figure(item.key) is not None
    )


def _rows_of_devices(run: StandardRun, item: StandardItem) -> tuple[CardRow, ...]:
    cpu = cpu_of(run)
    room = MOST_ROWS - (cpu is not None)
    fastest = sorted(cards_of(run), key=lambda one: speed_of(one.result(item.key)), reverse=True)
    shown = [one for one in cards_of(run) if one in fastest[:room]]
    devices = [*shown[:room], *([cpu] if cpu is not None else [])]
    scale = _scale(item, devices)
    return tuple(_row(short_name(one.name), item, [one], run, scale) for one in devices)


def _scale(item: StandardItem, devices: Sequence[StandardDevice]) -> float:
    """Return the speed of a full bar: the fastest device's, or the first one's ceiling."""
    results = [device.result(item.key) for device in devices]
    speeds = [one.throughput for one in results if one is not None and one.verified is not False]
    ceilings = [ceiling_of(result) or 0.0 for result in results]
    return max([*speeds, *ceilings], default=0.0)


def _row(
    title: str,
    item: StandardItem,
    devices: Sequence[StandardDevice],
    run: StandardRun,
    scale: float,
) -> CardRow:
    words = figure_words(item, devices[0], run)
    bars = []
    for device in devices:
        result = device.result(item.key)
        is_right = result is not None and result.verified is not False
        speed = result.throughput if result is not None and is_right else 0.0
        bars.append(
            CardBar(role=role_of(device, run), share=min(speed / scale, 1.0) if scale else 0.0)
        )
    ceiling = ceiling_of(devices[0].result(item.key))
    notes = ("not measured",) if words.skipped else (words.against, words.share)
    return CardRow(
        title=title,
        bars=tuple(bars),
        value=words.rate or MISSING,
        note=" · ".join(filter(None, notes)),
        ceiling=min(ceiling / scale, 1.0) if ceiling and scale else None,
    )
