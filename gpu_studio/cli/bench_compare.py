"""``gpu-studio bench compare``: standard runs of other PCs beside this one's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, WrongUseError
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.screen import TerminalTable, note, print_json, print_line
from gpu_studio.core.benchmark.standard import STANDARD
from gpu_studio.core.benchmark.standard_comparison import (
    MOST_FILES,
    NOT_MEASURED,
    Side,
    compared_works,
    comparison_trust,
    headline,
    side_names,
    usual_device,
)
from gpu_studio.core.benchmark.standard_file import read_standard
from gpu_studio.core.benchmark.standard_folder import FOLDER_NAME, StandardFolder
from gpu_studio.core.program_form import typed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.standard_comparison import ComparedFigure, ComparedWork
    from gpu_studio.core.benchmark.standard_record import StandardRun

_CARD = "card"
_NO_RUN = "This PC has no standard run yet: “{command}” makes one."


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """A side in the JSON; ``is_here`` if it is this PC."""

    name: str
    device: str
    is_here: bool
    made_at: str
    torch_version: str


class ComparedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A figure in the JSON, per second with its 95 % interval; null if it was not measured.

    ``ratio`` is how many times faster it is than the first side, null if it cannot be told.
    """

    per_second: float | None = None
    ci95: tuple[float, float] | None = None
    verdict: str = ""
    ratio: float | None = None


class ComparedItem(msgspec.Struct, frozen=True, kw_only=True):
    """A work in the JSON, with a figure for each side."""

    key: str
    title: str
    unit: str
    figures: tuple[ComparedRate, ...]


class ComparedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The whole comparison as JSON."""

    standard: int
    sentence: str
    trust: str
    sides: tuple[ComparedSide, ...]
    items: tuple[ComparedItem, ...]


def _compare(options: argparse.Namespace, _log_path: Path) -> int:
    """Print the comparison; return the exit status."""
    if len(options.files) > MOST_FILES:
        raise WrongUseError(f"Up to {MOST_FILES} files can be compared, not {len(options.files)}.")
    own = StandardFolder(data_folder() / FOLDER_NAME).newest()
    if own is None:
        note(_NO_RUN.format(command=typed("gpu-studio standard")))
    sides = [] if own is None else [_side(own, options.device, is_here=True)]
    sides += [_side(read_standard(path), options.device) for path in options.files]
    works = compared_works(sides)
    heading, sentence = headline(sides, works)
    if options.json:
        print_json(_json_of(sides, works, f"{heading}. {sentence}"))
        return DONE
    print_line(f"{heading}. {sentence}")
    names = side_names(sides)
    table = TerminalTable(
        (("device", 34), ("per second", -12), ("95 % interval", -18), ("verdict", 0))
    )
    for work in works:
        print_line()
        print_line(f"{work.item.title}, {work.unit}")
        for name, figure in zip(names, work.figures, strict=True):
            print_line(table.row(_cells(name, work, figure)))
    print_line()
    print_line(f"{comparison_trust(sides).sentence}.")
    return DONE


def _side(run: StandardRun, kind: str, *, is_here: bool = False) -> Side:
    """Return the side of a run: its CPU if asked for, otherwise its usual device."""
    cpus = [number for number, device in enumerate(run.devices) if device.is_cpu]
    return Side(run, cpus[0] if kind != _CARD and cpus else usual_device(run), is_here=is_here)


def _cells(name: str, work: ComparedWork, figure: ComparedFigure) -> list[str]:
    if figure.rate is None:
        return [name[:34], "–", "", figure.skipped or NOT_MEASURED]
    interval = " to ".join(work.shown_rate(rate) for rate in (figure.low, figure.high))
    return [name[:34], work.shown(figure), interval, figure.words]


def _json_of(sides: Sequence[Side], works: Sequence[ComparedWork], sentence: str) -> ComparedRuns:
    return ComparedRuns(
        standard=STANDARD,
        sentence=sentence,
        trust=comparison_trust(sides).sentence,
        sides=tuple(
            ComparedSide(
                name=name, device=side.device.name, is_here=side.is_here,
                made_at=side.run.made_at, torch_version=side.device.build,
            )
            for side, name in zip(sides, side_names(sides), strict=True)
        ),
        items=tuple(
            ComparedItem(
                key=work.item.key, title=work.item.title, unit=work.item.unit,
                figures=tuple(_rate(figure) for figure in work.figures),
            )
            for work in works
        ),
    )  # fmt: skip


def _rate(figure: ComparedFigure) -> ComparedRate:
    if figure.rate is None:
        return ComparedRate()
    compared = figure.comparison
    return ComparedRate(
        per_second=figure.rate,
        ci95=(figure.low, figure.high),
        verdict=compared.label if compared is not None else "",
        ratio=compared.ratio if compared is not None and figure.sign else None,
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", type=Path, nargs="+",
        help=f"up to {MOST_FILES} pictures (PNG), reports (HTML), recordings or JSON",
    )  # fmt: skip
    parser.add_argument(
        "--device", choices=(_CARD, "cpu"), default=_CARD,
        help="of a run with several devices, compare its first card or its CPU "
        "(default: %(default)s)",
    )  # fmt: skip


PARTS = {
    "compare": Command(
        help="compare standard runs of other PCs with this one's",
        about="Compare the standard runs in files with the newest one of this PC. A file is what "
        "its contents are, whatever its name.",
        run=_compare,
        add_arguments=_add_arguments,
        json=JSON_OBJECT,
    )
}
