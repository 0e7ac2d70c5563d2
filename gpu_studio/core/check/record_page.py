"""The record of a check as a page (HTML) with the record itself inside, and any record in a file.

The page needs no network and runs no script. Like the picture, it comes back from strangers: only
the JSON inside is read.
"""

from __future__ import annotations

import html
import io
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpu_studio.core.check.check_chart import chart_sentence, record_chart
from gpu_studio.core.check.check_drawing import chart_height, draw_chart, draw_map
from gpu_studio.core.check.check_end import end_tone, end_words
from gpu_studio.core.check.check_record import (
    LARGEST_RECORD_BYTES,
    decode_record,
    encode_record,
)
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
from gpu_studio.core.page_json import json_element, json_in_page
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.units import clock_text
from gpu_studio.core.user_file import SilentDriveError, UnusableFileError, read_part, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from gpu_studio.core.check.check_drawing import Anchor, Dash
    from gpu_studio.core.check.check_record import CheckRecord

CHUNK = "gpu-studio-check"
"""The keyword of the picture's text chunk, and the id of the element in the page."""
RECORD_ENDINGS = (".png", ".html", ".htm", ".json")
LARGEST_FILE_BYTES = 8 << 20
_HEAD_BYTES = 1 << 16
_WIDE, _NARROW = 900.0, 420.0
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page_of(record: CheckRecord) -> bytes:
    """Return a record as a page in UTF-8."""
    return "\n".join(_lines(record)).encode()


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


def _lines(record: CheckRecord) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{TITLE}: {_text(record.device.name)}</title>\n<style>{RECORD_STYLE}</style>"
    yield "</head>\n<body>\n<main>"
    yield from _hero(record)
    yield from _curves(record)
    yield from _memory(record)
    yield from _findings(record)
    yield from _steps(record)
    yield "<h2>Stages</h2>"
    yield from _stage_table(record)
    subject = "PC" if is_cpu(record.device.address) else "Card"
    yield f"<h2>{subject} and check</h2>"
    yield from _table((fact.title, fact.value) for fact in record_facts(record))
    yield f"<h2>{LIMITS_TITLE}</h2>"
    yield from _list(record_limits(record))
    yield f"<h2>{TRUST_TITLE}</h2>"
    yield from _list(record_trust(record))
    yield f"<footer>Made by {_text(record.program or 'GPU Studio')}. {PROMISE}</footer>"
    yield json_element(CHUNK, encode_record(record))
    yield "</main>\n</body>\n</html>\n"


def _hero(record: CheckRecord) -> Iterator[str]:
    tone = end_tone(record).value
    yield f'<p class="over">GPU Studio · {TITLE}</p>'
    yield f"<h1>{_text(device_line(record.device))}</h1>"
    yield f'<p class="over">{_text(when_line(record))}</p>'
    chip = f'<span class="chip {tone}">{VERDICT_WORDS[record.verdict]}</span>'
    yield f'<p class="verdict {tone}">{_text(end_words(record))} {chip}</p>'
    planted = planted_text(record)
    if planted:
        yield f'<p class="planted">{_text(planted)}</p>'
    yield f"<p>{_text(record.sentence)}</p>\n<p><b>Next:</b> {_text(record.next_action)}</p>"


def _curves(record: CheckRecord) -> Iterator[str]:
    chart = record_chart(record)
    if not chart.lanes:
        return
    yield "<h2>Temperature, clock and power</h2>"
    for name, width in (("wide", _WIDE), ("narrow", _NARROW)):
        canvas, tall = SvgCanvas(), chart_height(chart, EM, width)
        draw_chart(chart, canvas, width, tall, EM)
        yield f'<div class="{name}">{canvas.svg(width, tall, chart_sentence(chart))}</div>'


def _memory(record: CheckRecord) -> Iterator[str]:
    memory = memory_map(record.coverage, record.findings)
    if memory is None:
        return
    yield "<h2>Memory</h2>"
    for name, width in (("wide", _WIDE / 2), ("narrow", _NARROW)):
        canvas = SvgCanvas()
        place = draw_map(memory, canvas, width, EM)
        yield f'<div class="{name}">{canvas.svg(width, place.height, memory.caption)}</div>'
    yield f'<p class="note">{_text(memory.caption)}</p>'


def _findings(record: CheckRecord) -> Iterator[str]:
    lines = finding_lines(record.findings)
    if not lines:
        return
    yield "<h2>Findings</h2>\n<ul>"
    for line in lines:
        tone = FINDING_TONES[line.severity].value
        yield f'<li class="{tone}">{_text(line.sentence)}'
        if len(line.details) > 1:
            yield from _list(line.details[1:])
        yield "</li>"
    yield "</ul>"


def _steps(record: CheckRecord) -> Iterator[str]:
    table = steps_table(record.load_steps)
    if table is None:
        return
    yield f'<h2>{STEPS_TITLE}</h2>\n<div class="across"><table>'
    yield "<tr><th>Period</th>" + "".join(f"<th>{_text(head)}</th>" for head in table.heads)
    for title, cells in table.rows:
        yield f"</tr>\n<tr><th>{_text(title)}</th>"
        for cell in cells:
            tone = ' class="failure"' if cell.is_bad else ""
            yield f"<td{tone}>{_text(cell.text)}</td>"
    yield f'</tr>\n</table></div>\n<p class="note">{STEPS_NOTE}</p>'


def _stage_table(record: CheckRecord) -> Iterator[str]:
    heads = ("Stage", "Result", "Tested", "Errors", "Time")
    yield '<table class="stages">\n<tr>' + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"
    for stage in record.stages:
        yield (
            f"<tr><td>{_text(stage_title(stage.name, record.device.address))}</td>"
            f"<td>{VERDICT_WORDS[stage.verdict]}</td><td>{_text(stage.tested)}</td>"
            f'<td class="number">{errors_text(stage.errors)}</td>'
            f'<td class="number">{clock_text(stage.seconds)}</td></tr>'
        )
    yield "</table>"


def _list(sentences: Iterable[str]) -> Iterator[str]:
    yield "<ul>"
    for sentence in sentences:
        yield f"<li>{_text(sentence)}</li>"
    yield "</ul>"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield '<table class="facts">'
    for title, value in rows:
        yield f"<tr><th>{_text(title)}</th><td>{_text(value)}</td></tr>"
    yield "</table>"


def _text(value: str) -> str:
    return html.escape(value, quote=True)


def _refused(name: str, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{name} cannot be opened: {reason}.")


# role: (light, dark), the roles of the window's theme that the page and its drawings use.
_COLOURS = {
    "window": ("#F3F5F7", "#13171C"),
    "card": ("#FFFFFF", "#1D2229"),
    "border": ("#D5DBE1", "#313943"),
    "grid": ("#E7EBEF", "#2A313A"),
    "text": ("#1A2027", "#E9EDF1"),
    "muted": ("#56626F", "#9DA9B5"),
    "disabled": ("#9AA4AE", "#5F6A75"),
    "track": ("#EDF0F3", "#2A313A"),
    "amber": ("#9A6200", "#E69F00"),
    "good": ("#007A59", "#19B98C"),
    "allocated": ("#009E73", "#009E73"),
    "failure": ("#D55E00", "#D55E00"),
    "failure_ink": ("#B64F00", "#F0812F"),
    "gpu0_ink": ("#0072B2", "#56B4E9"),
    "good_soft": ("#E2F3EC", "#16352D"),
    "amber_soft": ("#FCF1DC", "#3A2E14"),
    "failure_soft": ("#FDEEE6", "#43251A"),
}


def _variables(which: int) -> str:
    return " ".join(f"--{role}: {colours[which]};" for role, colours in _COLOURS.items())


_CLASSES = "\n".join(
    f".f-{role} {{ fill: var(--{role}); }} .s-{role} {{ stroke: var(--{role}); fill: none; }}"
    for role in _COLOURS
)
RECORD_STYLE = f"""
:root {{ color-scheme: light dark; {_variables(0)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(1)} }} }}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--window);
  margin: 0; overflow-wrap: anywhere; }}
main {{ max-width: 60rem; margin: 1.5rem auto; padding: 1.5rem; background: var(--card);
  border: 1px solid var(--border); border-radius: 8px; }}
.over {{ color: var(--muted); margin: 0; }}
h1 {{ font-size: 1.5rem; margin: 0.25rem 0 0; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 0.5rem; }}
.verdict {{ font-size: 2.6rem; line-height: 1.15; font-weight: 700; margin: 0.5rem 0; }}
.chip {{ display: inline-block; font-size: 1rem; font-weight: 600; padding: 0.2rem 0.8rem;
  border-radius: 2rem; vertical-align: middle; margin-left: 0.5rem; }}
.good {{ color: var(--good); }} .failure {{ color: var(--failure_ink); }}
.amber {{ color: var(--amber); }}
.chip.good {{ background: var(--good_soft); }} .chip.failure {{ background: var(--failure_soft); }}
.chip.amber {{ background: var(--amber_soft); }}
.planted {{ background: var(--failure_soft); border: 2px solid var(--failure); padding: 0.75rem;
  font-weight: 600; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: 0.35rem 0.75rem 0.35rem 0;
  border-bottom: 1px solid var(--grid); }}
th {{ color: var(--muted); font-weight: 500; }}
.facts th {{ width: 30%; }} .across {{ overflow-x: auto; overflow-wrap: normal; }}
.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
ul {{ padding-left: 1.25rem; margin: 0.5rem 0; }} li {{ margin: 0.25rem 0; }}
.note, footer {{ color: var(--muted); font-size: 0.9rem; }} footer {{ margin-top: 2rem; }}
svg {{ display: block; width: 100%; height: auto; font-family: system-ui, sans-serif; }}
svg .thick {{ stroke-width: 2; stroke-linejoin: round; }}
.narrow {{ display: none; }}
{_CLASSES}
@media (max-width: 40rem) {{
  main {{ margin: 0; padding: 1rem; border: none; border-radius: 0; }}
  .verdict {{ font-size: 2rem; }}
  .wide {{ display: none; }} .narrow {{ display: block; }}
  .stages tr:first-child {{ display: none; }}
  .stages tr {{ display: block; padding: 0.5rem 0; border-bottom: 1px solid var(--grid); }}
  .stages td {{ display: block; border: none; padding: 0; }}
  .stages .number {{ display: inline-block; margin-right: 1rem; }}
}}
@media print {{
  :root {{ color-scheme: light; {_variables(0)} }}
  body {{ background: #FFFFFF; font-size: 12px; }}
  main {{ border: none; margin: 0; padding: 0; max-width: none; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  h2, svg, tr {{ break-inside: avoid; }} h2 {{ break-after: avoid; }}
}}
"""


EM = 13.0
_ANCHORS = {"left": "start", "middle": "middle", "right": "end"}
_DASHES = {"solid": "", "dashed": ' stroke-dasharray="6 4"', "dotted": ' stroke-dasharray="2 3"'}
# A little more than the mean width of a letter in the widest of the usual fonts.
_LETTER, _BOLD_LETTER = 0.6, 0.66


class SvgCanvas:
    """Collects elements; `svg` returns them as one picture."""

    def __init__(self) -> None:
        self._elements: list[str] = []

    def line(
        self, x1: float, y1: float, x2: float, y2: float, role: str, *, dash: Dash = "solid"
    ) -> None:
        self._elements.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'class="s-{role}"{_DASHES[dash]}/>'
        )

    def curve(
        self, points: Sequence[tuple[float, float]], role: str, *, dash: Dash = "solid"
    ) -> None:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._elements.append(
            f'<polyline points="{places}" class="s-{role} thick"{_DASHES[dash]}/>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, role: str, *, tip: str = ""
    ) -> None:
        title = f"<title>{html.escape(tip)}</title>" if tip else ""
        self._elements.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" '
            f'class="f-{role}">{title}</rect>'
        )

    def text(
        self, x: float, y: float, text: str, role: str, *, anchor: Anchor = "left",
        bold: bool = False,
    ) -> None:  # fmt: skip
        weight = ' font-weight="600"' if bold else ""
        self._elements.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{_ANCHORS[anchor]}" '
            f'dominant-baseline="central" class="f-{role}"{weight}>{html.escape(text)}</text>'
        )

    def text_width(self, text: str, *, bold: bool = False) -> float:
        return len(text) * EM * (_BOLD_LETTER if bold else _LETTER)

    def svg(self, width: float, height: float, description: str) -> str:
        """Return the picture; the description is for people who do not see it."""
        return (
            f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="{EM:.0f}" '
            f'aria-label="{html.escape(description, quote=True)}">{"".join(self._elements)}</svg>'
        )
