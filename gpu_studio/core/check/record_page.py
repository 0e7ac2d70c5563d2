"""The record of a check as a page (HTML) with the record itself inside, and any record in a file.

Like the picture, a page comes back from strangers: only the JSON inside is read.
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gpu_studio.core.check.check_chart import chart_sentence, record_chart
from gpu_studio.core.check.check_drawing import chart_height, draw_chart, draw_map
from gpu_studio.core.check.check_end import end_tone, end_words
from gpu_studio.core.check.check_record import decode_record, encode_record
from gpu_studio.core.check.finding_lines import FINDING_TONES, finding_lines
from gpu_studio.core.check.memory_map import memory_map
from gpu_studio.core.check.record_words import (
    LIMITS_TITLE,
    PROMISE,
    TITLE,
    TRUST_TITLE,
    VERDICT_WORDS,
    device_line,
    errors_text,
    planted_text,
    record_facts,
    record_limits,
    record_trust,
    when_line,
)
from gpu_studio.core.check.stages import stage_title
from gpu_studio.core.check.steps_table import STEPS_NOTE, STEPS_TITLE, steps_table
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.page import PageCell, page_of_template
from gpu_studio.core.page_json import json_in_page
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.svg_canvas import EM, SvgCanvas
from gpu_studio.core.units import clock_text, format_count
from gpu_studio.core.user_file import SilentDriveError, UnusableFileError, read_part, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.memory_map import SquareState

CHUNK = "gpu-studio-check"
"""The keyword of the picture's text chunk, and the id of the element in the page."""
RECORD_ENDINGS = (".png", ".html", ".htm", ".json")
LARGEST_FILE_BYTES = 8 << 20
_HEAD_BYTES = 1 << 16
_WIDE, _NARROW = 900.0, 420.0
_SQUARES: dict[SquareState, str] = {
    "good": "Parts without an error",
    "bad": "Parts with errors",
    "waiting": "Parts in the test",
    "untested": "Parts not tested",
}


def read_record(path: Path, is_over: Callable[[], bool] = lambda: False) -> CheckRecord:
    """Return the record in a picture, a page or a JSON file.

    Args:
        path: the file.
        is_over: returns whether the record is no longer needed.

    Raises:
        StudioError: the file has none, or it is damaged, too large, or from a newer version.
    """
    try:
        content = read_user_file(path, LARGEST_FILE_BYTES, is_over)
    except UnusableFileError as error:
        raise _refused(file_name(path), str(error)) from error
    name = file_name(path)
    return decode_record(_json_in(content, name), name)


def has_record(path: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a picture has the record of a check; reads only its beginning.

    Raises:
        SilentDriveError: as `read_part`; any other file that cannot be read has none.
    """
    try:
        head = read_part(path, lambda file: file.read(_HEAD_BYTES), is_over)
    except SilentDriveError:
        raise
    except UnusableFileError:
        return False
    return head.startswith(PNG_HEAD) and CHUNK.encode() + b"\0" in head


def _json_in(content: bytes, name: str) -> bytes:
    if content.startswith(PNG_HEAD):
        text = png_text(io.BytesIO(content), CHUNK.encode(), LARGEST_RECORD_BYTES)
    elif PurePath(name).suffix.lower() == ".json":
        text = content
    else:
        text = json_in_page(content, CHUNK)
    if text is None:
        raise _refused(name, "it has no record of a check inside")
    return text


def page_of(record: CheckRecord) -> bytes:
    """Return a record as a page in UTF-8, without identifiers in its sentences."""
    record = without_identifiers(record)
    subject = "PC" if is_cpu(record.device.address) else "Card"
    values = {
        "title": TITLE,
        "subject": device_line(record.device),
        "program": record.program or "GPU Studio",
        "promise": PROMISE,
        "when": when_line(record),
        "end": end_words(record),
        "tone": end_tone(record).value,
        "verdict": VERDICT_WORDS[record.verdict],
        "planted": planted_text(record),
        "sentence": record.sentence,
        "next_action": record.next_action,
        "findings": [
            {
                "tone": FINDING_TONES[line.severity].value,
                "sentence": line.sentence,
                "details": line.details[1:],
            }
            for line in finding_lines(record.findings)
        ],
        "stages": [
            {
                "title": stage_title(stage.name, record.device.address),
                "verdict": VERDICT_WORDS[stage.verdict],
                "tested": stage.tested,
                "errors": errors_text(stage.errors),
                "time": clock_text(stage.seconds),
            }
            for stage in record.stages
        ],
        "kind": subject,
        "facts": record_facts(record),
        "limits_title": LIMITS_TITLE,
        "limits": record_limits(record),
        "trust_title": TRUST_TITLE,
        "trust": record_trust(record),
        **_curves(record),
        **_memory(record),
        **_steps(record),
    }
    return page_of_template("check.html", values, CHUNK, encode_record(record))


def _curves(record: CheckRecord) -> dict[str, Any]:
    chart = record_chart(record)
    if not chart.lanes:
        return {"curves": None}
    pictures = {}
    for name, width in (("wide", _WIDE), ("narrow", _NARROW)):
        canvas, tall = SvgCanvas(), chart_height(chart, EM, width)
        draw_chart(chart, canvas, width, tall, EM)
        pictures[name] = canvas.svg(width, tall, chart_sentence(chart))
    rows = [
        (lane.title, [PageCell(", ".join(f"{title} {value}" for title, value in lane.values))])
        for lane in chart.lanes
    ]
    return {"curves": pictures, "curve_rows": rows}


def _memory(record: CheckRecord) -> dict[str, Any]:
    memory = memory_map(record.coverage, record.findings)
    if memory is None:
        return {"memory": None}
    pictures = {}
    for name, width in (("wide", _WIDE / 2), ("narrow", _NARROW)):
        canvas = SvgCanvas()
        place = draw_map(memory, canvas, width, EM)
        pictures[name] = canvas.svg(width, place.height, memory.caption)
    counts = Counter(square.state for square in memory.squares)
    rows = [
        (words, [PageCell(format_count(counts[state]))])
        for state, words in _SQUARES.items()
        if counts[state]
    ]
    return {"memory": pictures, "memory_caption": memory.caption, "memory_rows": rows}


def _steps(record: CheckRecord) -> dict[str, Any]:
    table = steps_table(record.load_steps)
    if table is None:
        return {"steps": None}
    rows = [
        (title, [PageCell(cell.text, "failure" if cell.is_bad else "") for cell in cells])
        for title, cells in table.rows
    ]
    return {
        "steps": rows,
        "steps_title": STEPS_TITLE,
        "steps_heads": ("Period", *table.heads),
        "steps_note": STEPS_NOTE,
    }


def _refused(name: str, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{name} cannot be opened: {reason}.")
