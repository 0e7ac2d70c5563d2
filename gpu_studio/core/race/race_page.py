"""A race as a page (HTML) with the race itself inside, and the race in such a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.moments import written_moment
from gpu_studio.core.page import PageCell, page_of_template
from gpu_studio.core.page_json import json_in_page
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.core.race.shared_race import CHUNK, LARGEST_BYTES, decode_shared, encode_shared
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.svg_canvas import EM, SvgCanvas
from gpu_studio.core.units import format_duration, format_percent, format_size, three_digits
from gpu_studio.core.user_file import SilentDriveError, UnusableFileError, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpu_studio.core.messages.race_messages import ContestantResult
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.shared_race import SharedRace, SharedRun

PAGE_ENDINGS = (".html", ".htm")
_LARGEST_PAGE_BYTES = 4 << 20
_TITLE = "Race"
_PROMISE = (
    "Both sides ran the same code in short turns. Drop this page on GPU Studio to race against it: "
    "the race is inside."
)
_WIDE, _NARROW, _TALL = 900.0, 420.0, 200.0
_ROLES = ("cpu", "gpu0", "gpu1", "gpu2")
_NONE = "–"
_MOMENTS = 4


def race_page(shared: SharedRace) -> bytes:
    """Return a race as a page in UTF-8, without identifiers in its texts."""
    shared = without_identifiers(shared)
    picture = next((one for one in PICTURES if one.name == shared.race.picture), None)
    title = picture.title if picture is not None else shared.race.picture
    size = format_size(shared.race.size, picture.size_text) if picture is not None else ""
    values = {
        "title": _TITLE,
        "subject": " · ".join(filter(None, (title, size))),
        "program": "GPU Studio",
        "promise": _PROMISE,
        "when": written_moment(shared.made_at, with_zone=True),
        "sentence": shared.race.sentence,
        "tone": shared.tone,
        "doubts": shared.doubts,
        "chart": _chart(shared),
        **_progress(shared),
        "heads": ("Contestant", "Speed", "Time", "Result", "Precision")
        + ("Power",) * _has_power(shared),
        "rows": [*_rows(shared, picture)],
        "facts": [*_facts(shared)],
    }
    return page_of_template("race.html", values, CHUNK, encode_shared(shared).encode())


def has_race(path: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a page has a race inside.

    Raises:
        SilentDriveError: as `read_user_file`; any other file that cannot be read has none.
    """
    if path.suffix.lower() not in PAGE_ENDINGS:
        return False
    try:
        return json_in_page(read_user_file(path, _LARGEST_PAGE_BYTES, is_over), CHUNK) is not None
    except SilentDriveError:
        raise
    except UnusableFileError:
        return False


def read_race_page(path: Path, is_over: Callable[[], bool] = lambda: False) -> SharedRace:
    """Return the race in a page.

    Args:
        path: the file, which may be a stranger's.
        is_over: returns whether the race is no longer needed.

    Raises:
        StudioError: it has none, or it is damaged, too large, or from a newer version.
    """
    try:
        page = read_user_file(path, _LARGEST_PAGE_BYTES, is_over)
    except UnusableFileError as error:
        raise _refused(path, str(error)) from error
    inside = json_in_page(page, CHUNK)
    if inside is None:
        raise _refused(path, "it has no race inside")
    if len(inside) > LARGEST_BYTES:
        raise _refused(path, "its race is too large")
    return decode_shared(inside.decode("utf-8", "replace"))


def _refused(path: Path, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{file_name(path)} cannot be opened: {reason}.")


def _roles(shared: SharedRace) -> list[str]:
    """Return the color roles: the CPU's, then a card's in their order; more look alike."""
    roles, cards = [], 0
    for result in shared.race.contestants:
        if result.threads is not None:
            role = _ROLES[0]
        else:
            cards += 1
            role = _ROLES[min(cards, len(_ROLES) - 1)]
        roles.append("other" if role in roles else role)
    return roles


def _chart(shared: SharedRace) -> dict[str, Any] | None:
    """Return the way of each contestant to the finish line; None if no one kept its way."""
    if not any(len(run.points) > 1 for run in shared.runs):
        return None
    end_s = _end_s(shared)
    pictures = {}
    for name, width in (("wide", _WIDE), ("narrow", _NARROW)):
        canvas = SvgCanvas()
        top, bottom = EM * (1.5 * len(shared.runs) + 1.0), EM * 1.5 * len(shared.runs) + _TALL
        canvas.line(0, top, width, top, "grid")
        canvas.text(width, top - 0.6 * EM, "finish", "muted", anchor="right")
        canvas.line(0, bottom, width, bottom, "border")
        canvas.text(0, bottom + EM, "0 s", "muted")
        canvas.text(width, bottom + EM, format_duration(end_s), "muted", anchor="right")
        for row, (run, role) in enumerate(zip(shared.runs, _roles(shared), strict=True)):
            canvas.box(0, EM * (1.5 * row + 0.2), EM, EM, role)
            canvas.text(1.5 * EM, EM * (1.5 * row + 0.7), run.name, "text")
            points = [
                (width * point.elapsed_s / end_s, bottom - (bottom - top) * point.progress)
                for point in run.points
            ]
            if points:
                canvas.curve(points, role)
        names = ", ".join(run.name for run in shared.runs)
        pictures[name] = canvas.svg(width, bottom + 2 * EM, f"Progress over time: {names}.")
    return pictures


def _progress(shared: SharedRace) -> dict[str, Any]:
    """Return the table of the chart: the progress of each contestant at some moments."""
    end_s = _end_s(shared)
    moments = [end_s * part / _MOMENTS for part in range(1, _MOMENTS + 1)]
    return {
        "progress_heads": ("After", *map(format_duration, moments)),
        "progress_rows": [
            (run.name, [PageCell(_progress_at(run, moment), "number") for moment in moments])
            for run in shared.runs
        ],
    }


def _progress_at(run: SharedRun, moment_s: float) -> str:
    passed = [point.progress for point in run.points if point.elapsed_s <= moment_s * (1 + 1e-9)]
    return format_percent(min(passed[-1], 1.0)) if passed else _NONE


def _end_s(shared: SharedRace) -> float:
    return max((run.points[-1].elapsed_s for run in shared.runs if run.points), default=0) or 1.0


def _has_power(shared: SharedRace) -> bool:
    return any(result.power_w is not None for result in shared.race.contestants)


def _rows(
    shared: SharedRace, picture: WorkloadDescription | None
) -> Iterator[tuple[str, list[PageCell]]]:
    unit = picture.race.step_title if picture is not None and picture.race is not None else "steps"
    for run, result in zip(shared.runs, shared.race.contestants, strict=True):
        is_right = result.verified is not False and result.seconds > 0
        speed = f"{three_digits(result.steps / result.seconds)} {unit}/s" if is_right else _NONE
        power = f"{result.power_w:.0f}\u202fW" if result.power_w is not None else _NONE
        powers = [PageCell(power)] * _has_power(shared)
        yield (
            run.name,
            [
                PageCell(speed, "number"),
                PageCell(format_duration(result.seconds), "number"),
                _end(result),
                PageCell(result.dtype),
                *powers,
            ],
        )


def _end(result: ContestantResult) -> PageCell:
    if result.verified is False:
        return PageCell("Wrong result", "failure")
    if result.failure:
        return PageCell(result.failure, "failure")
    if result.reached:
        return PageCell("Reached the finish line")
    if result.finish_steps:
        return PageCell(
            f"{format_percent(min(result.steps / result.finish_steps, 1.0))} of the way"
        )
    return PageCell("Stopped early")


def _facts(shared: SharedRace) -> Iterator[tuple[str, str]]:
    yield "Raced", written_moment(shared.made_at, with_zone=True)
    if shared.cpu_name:
        yield "Processor", shared.cpu_name
    if shared.card_name:
        yield "Card", short_name(shared.card_name)
    if shared.torch_version:
        yield "PyTorch", shared.torch_version
