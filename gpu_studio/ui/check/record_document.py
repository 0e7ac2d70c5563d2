"""The record of a check as a document for a buyer: a picture with the record inside."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSizeF, QUrl
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QGuiApplication,
    QImage,
    QPainter,
    QPalette,
    QTextDocument,
)
from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.check.check_file import CHUNK, RECORD_ENDINGS, decode_record, encode_record
from gpu_studio.core.check.check_record import end_of, errors_text
from gpu_studio.core.check.check_words import (
    PROMISE,
    TITLE,
    RecordPart,
    RecordRow,
    breakable,
    device_line,
    origin_text,
    planted_text,
    record_parts,
    when_line,
)
from gpu_studio.core.check.stages import stage_title
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.units import clock_text
from gpu_studio.model.settings import Settings
from gpu_studio.ui.check.check_curves import lane_picture, lanes_of
from gpu_studio.ui.saving import painting_theme, png_bytes, usual_path, write_file
from gpu_studio.ui.theme import COLOURS, Theme, application_font

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.check.check_record import CheckRecord

_KINDS = {"Picture (*.png)": ".png", "JSON (*.json)": ".json"}
_WIDTH, _POINTS = 640, 9.0  # of the document, in pixels of 1/96 inch
_SCALE, _MARGIN, _TALLEST = 2, 36, 8000  # of the picture
_LONGEST_NAME = 60
_ROLES = {
    Tone.GOOD: "good", Tone.FAILURE: "failure_ink", Tone.AMBER: "amber", Tone.PLAIN: "text",
}  # fmt: skip
# Elsewhere, Qt takes the narrow space of a number, which breaks no line, for any other one.
_STYLE = """
h1, h2, p, td {{ white-space: pre-wrap; }}
.muted {{ color: {muted}; }} .failure {{ color: {failure_ink}; }}
h1 {{ margin: 8px 0; }} h3 {{ margin: 16px 0 4px 0; }} p {{ margin: 3px 0; }}
td {{ padding: 1px 12px 1px 0; }}
"""


class RecordDocument(QTextDocument):
    """The whole record, laid out in one column; its colors are those on paper."""

    def __init__(self, record: CheckRecord) -> None:
        super().__init__()
        self._theme = Theme(Settings(None))  # light, and for nothing else
        font = application_font(QGuiApplication.font())
        font.setPointSizeF(_POINTS)
        self.setDefaultFont(font)
        self.setDocumentMargin(0)
        self.setDefaultStyleSheet(_STYLE.format_map({r: c[0] for r, c in COLOURS.items()}))
        self.setHtml("".join(self._parts(record)))
        self.setTextWidth(_WIDTH)

    def _parts(self, record: CheckRecord) -> Iterator[str]:
        yield _line(origin_text(record), "failure")
        yield _line(f"GPU Studio · {TITLE}", "muted")
        yield f"<h2>{_text(device_line(record.device))}</h2>"
        yield _line(when_line(record), "muted")
        end = end_of(record)
        yield f"<h1 {_colored(end.tone)}>{_text(end.sentence)}: {record.verdict}</h1>"
        yield _line(planted_text(record.planted), "failure")
        yield f"{_line(record.sentence)}<p><b>Next:</b> {_text(record.next_action)}</p>"
        yield from self._curves(record)
        address = record.device.address
        stages = tuple(
            RecordRow(
                stage_title(one.name, address),
                f"{one.verdict.capitalize()}, {errors_text(one.errors)}, "
                f"{clock_text(one.seconds)}. {one.tested}",
            )
            for one in record.stages
        )
        for part in (RecordPart("stages", "Stages", stages), *record_parts(record)):
            if part.rows:
                rows = "".join(_row(row) for row in part.rows)
                yield f"<h3>{part.title}</h3><table>{rows}</table>"
        yield _line(f"Made by {record.program or 'GPU Studio'}. {PROMISE}", "muted")

    def _curves(self, record: CheckRecord) -> Iterator[str]:
        lanes = lanes_of(record)
        if lanes:
            yield "<h3>Temperature, clock and power</h3>"
        for number, lane in enumerate(lanes):
            picture = lane_picture(lane, self._theme, _WIDTH, _SCALE)
            yield f"{_line(lane.words, 'muted')}{self._image(f'lane{number}', picture)}"

    def _image(self, name: str, image: QImage) -> str:
        self.addResource(QTextDocument.ResourceType.ImageResource.value, QUrl(name), image)
        return f'<p><img src="{name}" width="{_WIDTH}"></p>'


def _text(text: str) -> str:
    return escape(breakable(text))


def _line(text: str, role: str = "") -> str:
    """Return a paragraph; none without a text."""
    return f'<p class="{role}">{_text(text)}</p>' if text else ""


def _colored(tone: Tone) -> str:
    return f'style="color: {COLOURS[_ROLES[tone]][0]}"'


def _row(row: RecordRow) -> str:
    words = "<br>".join(map(_text, (row.words, *row.details)))
    return (
        f"<tr><td class=muted>{_text(row.title or '•')}</td>"
        f"<td {_colored(row.tone)}>{words}</td></tr>"
    )


def png_of_record(record: CheckRecord) -> bytes:
    """Return a record as a PNG file with the record inside, without identifiers in its words."""
    record = without_identifiers(record)
    document = RecordDocument(record)
    size = document.size() + QSizeF(2 * _MARGIN, 2 * _MARGIN)
    height = min(round(size.height()), _TALLEST)
    image = QImage(_SCALE * round(size.width()), _SCALE * height, QImage.Format.Format_RGB32)
    image.fill(COLOURS["card"][0])
    painter = QPainter(image)
    painter.scale(_SCALE, _SCALE)
    painter.translate(_MARGIN, _MARGIN)
    context = QAbstractTextDocumentLayout.PaintContext()
    palette = QPalette()
    palette.setColor(QPalette.ColorRole.Text, COLOURS["text"][0])  # the window may be dark
    context.palette = palette
    document.documentLayout().draw(painter, context)
    painter.end()
    # In ASCII: Qt writes other texts in another kind of chunk.
    image.setText(CHUNK, json.dumps(json.loads(encode_record(record))))
    image.setText("Software", "GPU Studio")
    return png_bytes(image)


def answer(content: bytes) -> bytes:
    """Return the picture of a record in JSON: the whole work of a child."""
    with painting_theme():
        return png_of_record(decode_record(content))


def save_record(window: QWidget, record: CheckRecord) -> Notice:
    """Ask for a file and write the record into it, as a picture or as JSON."""
    suggested = usual_path(f"{record_file_name(record)}.png")
    chosen, kind = QFileDialog.getSaveFileName(window, "Save record", suggested, ";;".join(_KINDS))
    if not chosen:
        return Notice()
    path = Path(chosen)
    if path.suffix.lower() not in RECORD_ENDINGS:
        path = path.with_name(f"{path.name}{_KINDS.get(kind, '.png')}")
    is_picture = path.suffix.lower() == ".png"
    content = png_of_record(record) if is_picture else encode_record(without_identifiers(record))
    return write_file(str(path), content)


def record_file_name(record: CheckRecord) -> str:
    """Return a file's name without ending: ``check-GT-1030-2026-11-22-1440``; safe on any PC."""
    day, _, time = record.started_at[:16].partition("T")
    parts = ("check", short_name(record.device.name)[:_LONGEST_NAME], day, time.replace(":", ""))
    return re.sub(r"[^0-9A-Za-z]+", "-", "-".join(parts)).strip("-") or "check"
