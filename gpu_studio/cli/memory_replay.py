"""``gpu-studio memory replay``: a recorded history of memory, on this card and on others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.command import DONE, FAILED, JSON_OBJECT, WRONG_USE, Command
from gpu_studio.cli.screen import note, print_json, print_line
from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.allocator.options import checked_configuration
from gpu_studio.core.memory.replay.batch_line import (
    MOST_BATCH,
    BatchPeak,
    batch_line,
    batch_sentence,
)
from gpu_studio.core.memory.replay.replay import replay
from gpu_studio.core.memory.replay.what_if import WhatIf, smallest_card, what_if
from gpu_studio.core.memory.snapshot_file import open_snapshot
from gpu_studio.core.units import counted, format_bytes, format_count

if TYPE_CHECKING:
    import argparse

    from gpu_studio.core.memory.replay.replay import Replay
    from gpu_studio.core.memory.snapshot_file import Snapshot


class ReplayAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What ``memory replay --json`` prints; sizes in bytes.

    Attributes:
        allocations, addresses_met: of the history, and those that the model put at its address.
        segments_asked, segments_asked_met: memory that the driver gave, and the model asked for.
        segments_given_back, segments_given_back_met: the same for what went back.
        first_miss: the history's first entry, from 1 on, that the model did not meet.
        miss_reason: why, if it is known.
        what_if: on the card and with the options of the command; None if none were given.
        fits_from_bytes: with ``--smallest``; None if it fits on no card.
    """

    allocations: int
    addresses_met: int
    segments_asked: int
    segments_asked_met: int
    segments_given_back: int
    segments_given_back_met: int
    first_miss: int | None
    miss_reason: str
    recorded_conf: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    what_if: WhatIf | None
    fits_from_bytes: int | None


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What ``memory replay --batch … --to N --json`` prints; sizes in bytes.

    Attributes:
        batches, peaks_bytes: of the histories, the smallest batch first.
        needed_bytes: for the batch ``to``, without what others hold.
        residual_bytes: the largest distance of a peak from the line; None for two histories.
    """

    batches: tuple[int, ...]
    peaks_bytes: tuple[int, ...]
    to: int
    needed_bytes: int
    residual_bytes: int | None


def _replay(options: argparse.Namespace, _log_path: Path) -> int:
    """Replay a history, or several of one script; return the exit status."""
    if options.batch or options.to is not None:
        return _predict(options)
    if len(options.file) > 1:
        note("Several histories need their batch sizes, and the one to predict: --batch and --to.")
        return WRONG_USE
    try:
        snapshot = open_snapshot(options.file[0], options.index)
        replayed = replay(snapshot)
    except StudioError as error:
        note(str(error))
        return FAILED
    conf = replayed.conf if options.conf is None else options.conf
    other_bytes = options.other or 0
    found = fits_from_bytes = None
    if options.card is not None or options.conf is not None:
        found = what_if(replayed, card_bytes=options.card, other_bytes=other_bytes, conf=conf)
    if options.smallest:
        fits_from_bytes = smallest_card(replayed, other_bytes=other_bytes, conf=conf)
    if options.json:
        print_json(_answer(replayed, found, fits_from_bytes))
        return DONE
    _print_replay(replayed)
    if found is not None:
        print_line()
        _print_what_if(found, snapshot)
    if options.smallest and fits_from_bytes is None:
        print_line()
        print_line("It fits on no card with these options, according to the model.")
    if fits_from_bytes is not None:
        print_line()
        print_line(
            f"It fits from {format_bytes(fits_from_bytes)} on, according to the model: every "
            "larger card of a grid was tried, too."
        )
    return DONE


def _predict(options: argparse.Namespace) -> int:
    """Say what another batch size would need; return the exit status."""
    batches = options.batch or ()
    if len(batches) != len(options.file) or options.to is None:
        note("Give one batch size per history, and the one to predict: --batch 8,12,16 --to 24.")
        return WRONG_USE
    try:
        peaks = []
        for batch, path in zip(batches, options.file, strict=True):
            replayed = replay(open_snapshot(path, options.index))
            peaks.append(BatchPeak(batch, replayed.peak_reserved_bytes, replayed.ooms))
        line = batch_line(peaks)
        sentence = batch_sentence(line, options.to, options.other or 0)
    except StudioError as error:
        note(str(error))
        return FAILED
    if options.json:
        residual_bytes = line.residual_bytes
        print_json(
            BatchAnswer(
                batches=tuple(peak.batch for peak in line.peaks),
                peaks_bytes=tuple(peak.peak_bytes for peak in line.peaks),
                to=options.to,
                needed_bytes=round(line.needed_bytes(options.to)),
                residual_bytes=None if residual_bytes is None else round(residual_bytes),
            )
        )
    else:
        print_line(f"{sentence}, according to a line through the recorded peaks.")
    return DONE


def _answer(replayed: Replay, found: WhatIf | None, fits_from_bytes: int | None) -> ReplayAnswer:
    return ReplayAnswer(
        allocations=replayed.allocations,
        addresses_met=replayed.addresses_met,
        segments_asked=replayed.asked,
        segments_asked_met=replayed.asked_met,
        segments_given_back=replayed.given_back,
        segments_given_back_met=replayed.given_back_met,
        first_miss=None if replayed.first_miss is None else replayed.first_miss + 1,
        miss_reason=replayed.miss_reason,
        recorded_conf=replayed.conf,
        peak_allocated_bytes=replayed.peak_allocated_bytes,
        peak_reserved_bytes=replayed.peak_reserved_bytes,
        what_if=found,
        fits_from_bytes=fits_from_bytes,
    )


def _print_replay(replayed: Replay) -> None:
    met, all_of_them = map(format_count, (replayed.addresses_met, replayed.allocations))
    print_line(f"The model put {met} of {all_of_them} allocations at the recorded address.")
    for name, met_count, count in (
        ("asked the driver for memory", replayed.asked_met, replayed.asked),
        ("gave memory back", replayed.given_back_met, replayed.given_back),
    ):
        times = counted(met_count, "time")
        print_line(f"It {name} {times} as recorded, of {format_count(count)}.")
    if replayed.first_miss is not None:
        reason = f": {replayed.miss_reason}" if replayed.miss_reason else ""
        print_line(f"It differs from entry {format_count(replayed.first_miss + 1)} on{reason}.")
    print_line(
        f"At most {format_bytes(replayed.peak_allocated_bytes)} were allocated and "
        f"{format_bytes(replayed.peak_reserved_bytes)} reserved."
    )


def _print_what_if(found: WhatIf, snapshot: Snapshot) -> None:
    card = "On a card of any size"
    if found.card_bytes is not None:
        card = f"On a card of {format_bytes(found.card_bytes)}"
    if found.other_bytes:
        card += f", of which others hold {format_bytes(found.other_bytes)}"
    options = f" with {found.conf}" if found.conf else ""
    verdict = "everything fits" if found.fits else "it does not fit"
    print_line(f"{card}{options}, {verdict}, according to the model.")
    print_line(
        f"At most {format_bytes(found.peak_allocated_bytes)} are allocated and "
        f"{format_bytes(found.peak_reserved_bytes)} reserved, of which "
        f"{format_bytes(found.unused_at_peak_bytes)} hold no tensor."
    )
    if found.retries:
        print_line(f"The card is full {counted(found.retries, 'time')}, and cached memory helps.")
    if found.failed_at is not None:
        line = snapshot.history[found.failed_at].line
        where = f", at {line}" if line else ""
        print_line(f"Entry {format_count(found.failed_at + 1)} finds no room{where}:")
        print_line(found.failure)


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="+",
        help="a file of torch.cuda.memory._dump_snapshot; several with --batch",
    )  # fmt: skip
    parser.add_argument(
        "--card", metavar="SIZE", type=types.memory, help="a card's memory, such as 8GiB"
    )
    parser.add_argument(
        "--other", metavar="SIZE", type=types.memory,
        help="what other programs and CUDA's context hold of it, such as 500MiB",
    )  # fmt: skip
    parser.add_argument(
        "--conf", metavar="TEXT",
        type=types.checked(checked_configuration, "these allocator options cannot be used: "),
        help="other options, as in PYTORCH_CUDA_ALLOC_CONF (default: the recorded ones)",
    )  # fmt: skip
    parser.add_argument(
        "--smallest", action="store_true", help="find the smallest card on which it fits"
    )
    parser.add_argument(
        "--batch", metavar="N,N", type=types.positive_numbers(MOST_BATCH),
        help="the batch sizes of several histories of one script, such as 8,12,16",
    )  # fmt: skip
    parser.add_argument(
        "--to", metavar="N", type=types.whole_number(1, MOST_BATCH),
        help="the batch size to predict from them",
    )  # fmt: skip
    parser.add_argument(
        "--index", metavar="N", type=types.whole_number(0, 255),
        help="the card of the recorded program (default: the first one with memory)",
    )  # fmt: skip


COMMAND = Command(
    help="replay a recorded history of memory, and see whether it fits on another card",
    about="Replay the history in a memory snapshot with the model of PyTorch's allocator, compare "
    "every address, and see what it would take on another card or with other options. Record one "
    "with torch.cuda.memory._record_memory_history() and _dump_snapshot(FILE).",
    run=_replay,
    add_arguments=_add_replay,
    json=JSON_OBJECT,
)
