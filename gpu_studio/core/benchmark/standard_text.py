"""A standard run as text for a forum: a table in Markdown, as Reddit and GitHub show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.standard_words import (
    MISSING,
    check_words,
    day_words,
    device_words,
    figure_words,
    headline_of,
    items_of,
    load_words,
    stamp_words,
    version_words,
)
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.markdown import markdown_table, markdown_text
from gpu_studio.core.shared_texts import without_identifiers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.benchmark.standard_record import StandardRun


def standard_markdown(run: StandardRun) -> str:
    """Return a standard run as Markdown, without identifiers in its texts."""
    return "\n".join(_lines(without_identifiers(run))) + "\n"


def _lines(run: StandardRun) -> Iterator[str]:
    headline = headline_of(run)
    of_pc = f": {run.pc_name}" if run.pc_name else ""
    yield f"**{markdown_text(f'GPU Studio, standard run {run.standard}{of_pc}')}**"
    yield ""
    if headline is not None:
        against = (
            f", compared with {short_name(headline.reference.name)}" if headline.reference else ""
        )
        words = f"{device_words(headline.device)}: {headline.text} ({headline.item.title}{against})"
        yield markdown_text(words)
        yield ""
    head = ("Work", *map(device_words, run.devices))
    rows = [
        (item.title, *(figure_words(item, device, run).cell for device in run.devices))
        for item in items_of(run)
    ]
    yield markdown_table([head, *rows])
    for device in run.devices:
        facts = [load_words(device.load)] if device.load is not None else []
        facts += [check_words(device.check)] if device.check is not None else []
        yield markdown_text(f"{device_words(device)}: {'. '.join(facts) or MISSING}")
        yield ""
    facts = [stamp_words(run)[0], version_words(run), day_words(run)]
    yield markdown_text(" · ".join(filter(None, facts)))
