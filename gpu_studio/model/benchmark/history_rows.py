"""The rows of the history: one device's results each, whatever they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.benchmark.comparison import (
    compared_works,
    headline,
    table_rows,
    work_of,
    work_words,
)
from gpu_studio.core.benchmark.recording import Recording, recording_sentences
from gpu_studio.core.benchmark.run import interval_words
from gpu_studio.core.benchmark.side import MOST_SIDES, Side, facts_of, sides_of, trust_of_sides
from gpu_studio.core.benchmark.trust import trust_sign
from gpu_studio.core.device_name import is_cpu, name_at, pc_of
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import counted, format_duration, moment_order, shown_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.comparison import ComparedWork
    from gpu_studio.core.benchmark.history import HistoryEntry
    from gpu_studio.core.benchmark.kept_run import KeptHeader
    from gpu_studio.core.benchmark.standard_record import StandardRun
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.devices.device_board import DeviceBoard


_MEASURED = "Measure this PC"


class HistoryRow(NamedTuple):
    """A device with its results.

    Attributes:
        texts: when, what, device, result, trust.
        side: what is compared.
        entry: the kept run; None for others.
        opened: the recording, or the standard run of another PC, in a file; None for others.
    """

    texts: tuple[str, ...]
    side: Side
    entry: HistoryEntry | None = None
    opened: StandardRun | Recording | None = None


class Compared(NamedTuple):
    """Rows side by side.

    ``table`` is as `comparison.table_rows`; ``facts`` is what else there is to know, a line each.
    """

    sides: tuple[Side, ...] = ()
    works: tuple[ComparedWork, ...] = ()
    heading: str = ""
    sentence: str = ""
    trust: Notice = Notice()
    table: Sequence[Sequence[str]] = ()
    facts: str = ""


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


def kept_row(entry: HistoryEntry, board: DeviceBoard, titles: Mapping[str, str]) -> HistoryRow:
    """Return the row of a kept run."""
    header, result = entry.header, entry.header.result
    device = kept_name(header, board, without_maker(result.device_name))
    side = Side(
        name=result.device_name,
        results=(result,),
        place=header.name or result.recording or "",
        made_at=header.kept_at,
        is_here=not result.recording,
        # A file may claim the turns of a run that was made here.
        origin=hash(result.recording) if result.recording else 0,
        fact=result_fact(result),
    )
    work = work_words(result, titles)
    named = f"{header.name}: {work}" if header.name else work
    median, trust = format_duration(result.median_s), trust_sign(result)
    return HistoryRow((shown_moment(header.kept_at), named, device, median, trust), side, entry)


def run_rows(run: StandardRun, *, is_here: bool = False) -> dict[str, HistoryRow]:
    """Return a row for each device of a standard run."""
    where = "" if is_here else f", {run.pc_name or 'another PC'}"
    opened = None if is_here else run
    return {
        f"{id(run)}:{side.number}": HistoryRow(
            _texts(side, _MEASURED, f"{short_name(side.name)}{where}"), side, opened=opened
        )
        for side in sides_of(run, is_here=is_here)
    }


def recording_rows(recording: Recording) -> dict[str, HistoryRow]:
    """Return a row for each device of a recording, with its last result of each work."""
    by_device: dict[str, dict[object, RunFinished]] = {}
    for run in recording.runs:
        own = by_device.setdefault(run.device_name or run.request.device, {})
        if run.result is not None:
            labeled = msgspec.structs.replace(run.result, recording=recording.label)
            own[work_of(run.result)] = labeled
    rows = {}
    for number, (name, results) in enumerate(by_device.items()):
        side = Side(
            name=name,
            results=tuple(results.values()),
            place=recording.label,
            made_at=recording.header.recorded_at,
            origin=id(recording),
            fact=" ".join(recording_sentences(recording)),
        )
        texts = _texts(side, "Recording", f"{short_name(name)}, recorded")
        rows[f"{id(recording)}:{number}"] = HistoryRow(texts, side, opened=recording)
    return rows


def _texts(side: Side, what: str, device: str) -> tuple[str, ...]:
    notice = trust_of_sides([side])
    trust = f"▲ {notice.sentence[:1].lower()}{notice.sentence[1:]}"
    if notice.tone is Tone.GOOD:
        trust = "✔ checked"
    count = counted(len(side.results), "result")
    return shown_moment(side.made_at), what, device, count, trust


def result_fact(result: RunFinished) -> str:
    """Return what is to be known of a result: its time, how sure that is, and what made it."""
    interval = interval_words(result.ci95_s, result.samples, len(result.rounds_s))
    samples = f", {counted(result.samples, 'sample')}" if result.samples > 1 else ""
    torch = result.conditions.torch_version
    return (
        f"Median {format_duration(result.median_s)} per call{samples}, {interval}"
        f"{f', PyTorch {torch}' if torch else ''}."
        f"{f' Recorded: {result.recording}.' if result.recording else ''}"
    )


# ── side by side ─────────────────────────────────────────────────────────────────────────────────


def compare_rows(rows: Sequence[HistoryRow], titles: Mapping[str, str]) -> Compared:
    """Return rows side by side, this PC's first, its CPU before its cards, the oldest first."""
    if not rows:
        return Compared()
    ordered = sorted((row.side for row in rows), key=_order)
    sides = tuple(_merged(ordered))
    works = compared_works(sides[:MOST_SIDES], titles)
    heading, sentence = headline(sides[:MOST_SIDES], works)
    if len(sides) > MOST_SIDES:
        sentence = f"{sentence} Only the first {MOST_SIDES} of {len(sides)} are compared.".lstrip()
    shown = sides[:MOST_SIDES]
    table, facts = table_rows(shown, works), "\n".join(facts_of(shown))
    return Compared(shown, works, heading, sentence, trust_of_sides(shown), table, facts)


def _order(side: Side) -> tuple[bool, bool, tuple[float, str]]:
    on_cpu = bool(side.results) and is_cpu(side.results[0].device)
    return not side.is_here, not on_cpu, moment_order(side.made_at)


def _merged(sides: Sequence[Side]) -> list[Side]:
    """Return sides in which kept runs of one device are one, unless two are of the same work."""
    merged: list[Side] = []
    for side in sides:
        for number, one in enumerate(merged):
            is_alike = (one.name, one.origin, one.place) == (side.name, side.origin, side.place)
            if is_alike and not side.run and not _share_work(one, side):
                results = (*one.results, *side.results)
                merged[number] = msgspec.structs.replace(one, results=results, fact="")
                break
        else:
            merged.append(side)
    return merged


def _share_work(one: Side, other: Side) -> bool:
    return not {*map(work_of, one.results)}.isdisjoint(map(work_of, other.results))


def kept_name(header: KeptHeader, board: DeviceBoard, name: str) -> str:
    """Return the name of a kept run's device, with its number if another card is called so, too.

    Args:
        header: the kept run.
        board: the devices of this PC.
        name: the name in the usual case.
    """
    result = header.result
    name = name_at(pc_of(result.device), name)
    if result.recording:
        return f"{name}, recorded"
    row = board.row(header.card) if header.card else None
    if row is not None and board.card_named(row.name) != row.identity and not row.is_cpu:
        return row.label
    is_own_card = header.card and not is_cpu(result.device) and not pc_of(result.device)
    is_out = is_own_card and row is None and board.is_complete
    return f"{name}, not in this PC now" if is_out else name
