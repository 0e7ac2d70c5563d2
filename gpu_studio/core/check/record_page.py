"""The record of a check as a page (HTML) with the record itself inside, and any record in a file.

The page needs no network and runs no script. Like the picture, it comes back from strangers: only
the JSON inside is read.
"""

from __future__ import annotations

import html
import re
import zlib
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpu_studio.core.check.check_record import (
    LARGEST_RECORD_BYTES,
    decode_record,
    encode_record,
)
from gpu_studio.core.check.record_words import (
    TITLE,
    VERDICT_WORDS,
    clock_text,
    errors_text,
    planted_text,
    record_facts,
)
from gpu_studio.core.check.stages import stage_title
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.user_file import UnusableFileError, read_user_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gpu_studio.core.check.check_record import CheckRecord

CHUNK = "gpu-studio-check"
"""The keyword of the picture's text chunk, and the id of the element in the page."""
RECORD_ENDINGS = (".png", ".html", ".htm", ".json")
LARGEST_FILE_BYTES = 8 << 20
_HEAD_BYTES = 1 << 16
_PNG = b"\x89PNG\r\n\x1a\n"
_ELEMENT = re.compile(
    rb'<script type="application/json" id="%b">(.*?)</script>' % CHUNK.encode(), re.DOTALL
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1A2027; background: #F3F5F7; margin: 0; }
main { max-width: 46rem; margin: 2rem auto; padding: 2rem; background: #FFFFFF;
  border: 1px solid #D5DBE1; border-radius: 8px; }
h1 { font-size: 1.1rem; color: #56626F; margin: 0; }
.verdict { font-size: 2rem; font-weight: 700; margin: 0.5rem 0 0; }
.passed { color: #007A59; } .failed { color: #B64F00; }
.inconclusive, .partial { color: #9A6200; }
.planted { background: #FDEEE6; border: 2px solid #D55E00; padding: 0.75rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; margin-top: 1.5rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.75rem 0.35rem 0;
  border-bottom: 1px solid #E7EBEF; }
th { color: #56626F; font-weight: 500; } .number { text-align: right; white-space: nowrap; }
footer { color: #56626F; font-size: 0.85rem; margin-top: 1.5rem; }
@media print { body { background: #FFFFFF; } main { border: none; margin: 0; } }
"""


def page_of(record: CheckRecord) -> bytes:
    """Return a record as a page in UTF-8."""
    return "\n".join(_lines(record)).encode()


def read_record(path: Path) -> CheckRecord:
    """Return the record in a picture, a page or a JSON file.

    Raises:
        StudioError: the file has none, or it is damaged, too large, or from a newer version.
    """
    try:
        content = read_user_file(path, LARGEST_FILE_BYTES)
    except UnusableFileError as error:
        raise _refused(path.name, str(error)) from error
    return decode_record(_json_in(content, path.name))


def has_record(path: Path) -> bool:
    """Return whether a picture has the record of a check; reads only its beginning."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(_PNG) and CHUNK.encode() + b"\0" in head


def _json_in(content: bytes, name: str) -> bytes:
    if content.startswith(_PNG):
        text = next((text for key, text in _png_texts(content) if key == CHUNK.encode()), None)
    elif PurePath(name).suffix.lower() == ".json":
        text = content
    else:
        found = _ELEMENT.search(content)
        text = found[1] if found is not None else None
    if text is None:
        raise _refused(name, "it has no record of a check inside")
    return text


def _png_texts(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keyword and the text of each tEXt and zTXt chunk (W3C PNG, section 11.3.3)."""
    place = len(_PNG)
    while place + 8 <= len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        kind = content[place + 4 : place + 8]
        body = content[place + 8 : place + 8 + size]
        place += size + 12
        keyword, _, text = body.partition(b"\0")
        if kind == b"tEXt":
            yield keyword, text
        elif kind == b"zTXt":
            yield keyword, _inflated(text[1:])


def _inflated(packed: bytes) -> bytes:
    """Return at most one byte more than a record may have; a bomb is cut off and then refused."""
    try:
        return zlib.decompressobj().decompress(packed, LARGEST_RECORD_BYTES + 1)
    except zlib.error:
        return b""


def _lines(record: CheckRecord) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{TITLE}: {_text(record.device.name)}</title>\n<style>{_STYLE}</style>"
    yield f"</head>\n<body>\n<main>\n<h1>{TITLE} · {_text(record.device.name)}</h1>"
    yield f'<p class="verdict {record.verdict}">{VERDICT_WORDS[record.verdict]}</p>'
    planted = planted_text(record)
    if planted:
        yield f'<p class="planted">{_text(planted)}</p>'
    yield f"<p>{_text(record.sentence)}</p>\n<p><b>Next:</b> {_text(record.next_action)}</p>"
    yield from _table((fact.title, fact.value) for fact in record_facts(record))
    yield from _stage_table(record)
    if record.findings:
        yield "<h2>Findings</h2>\n<ul>"
        for finding in record.findings:
            title = stage_title(finding.stage, record.device.address)
            yield f"<li>{_text(title)}: {_text(finding.sentence)}</li>"
        yield "</ul>"
    yield f"<footer>Made by {_text(record.program or 'GPU Studio')}. {_PROMISE}</footer>"
    # In a script element, "<" could end the element.
    inside = encode_record(record).decode().replace("<", "\\u003c")
    yield f'<script type="application/json" id="{CHUNK}">{inside}</script>'
    yield "</main>\n</body>\n</html>\n"


_PROMISE = "It says what was tested on that day. It is no promise about the card."


def _stage_table(record: CheckRecord) -> Iterator[str]:
    heads = ("Stage", "Result", "Tested", "Errors", "Time")
    yield "<table>\n<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"
    for stage in record.stages:
        yield (
            f"<tr><td>{_text(stage_title(stage.name, record.device.address))}</td>"
            f"<td>{VERDICT_WORDS[stage.verdict]}</td><td>{_text(stage.tested)}</td>"
            f'<td class="number">{errors_text(stage.errors)}</td>'
            f'<td class="number">{clock_text(stage.seconds)}</td></tr>'
        )
    yield "</table>"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "<table>"
    for title, value in rows:
        yield f"<tr><th>{_text(title)}</th><td>{_text(value)}</td></tr>"
    yield "</table>"


def _text(value: str) -> str:
    return html.escape(value, quote=True)


def _refused(name: str, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{name} cannot be opened: {reason}.")
