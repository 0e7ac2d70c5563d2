"""The record of a check as a picture with the record in a text chunk, and its way into files."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRectF, QStandardPaths, Qt, QUrl
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QImage,
    QPainter,
    QPen,
)
from PySide6.QtWidgets import QFileDialog

from gpu_studio.core.check.check_chart import record_chart
from gpu_studio.core.check.check_drawing import chart_height, draw_chart, draw_map, map_place
from gpu_studio.core.check.check_end import end_tone, end_words
from gpu_studio.core.check.check_record import encode_record
from gpu_studio.core.check.finding_lines import FINDING_TONES, finding_lines
from gpu_studio.core.check.memory_map import memory_map
from gpu_studio.core.check.record_page import CHUNK, page_of
from gpu_studio.core.check.record_words import (
    LIMITS_TITLE,
    PROMISE,
    TITLE,
    TRUST_TITLE,
    VERDICT_WORDS,
    breakable,
    device_line,
    errors_text,
    planted_text,
    record_facts,
    record_limits,
    record_trust,
    when_line,
)
from gpu_studio.core.check.stages import stage_title
from gpu_studio.core.check.steps_table import STEPS_NOTE, STEPS_TITLE, StepCell, steps_table
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.shared_texts import without_identifiers
from gpu_studio.core.units import clock_text
from gpu_studio.ui.check.painter_canvas import PainterCanvas
from gpu_studio.ui.png import png_bytes
from gpu_studio.ui.saving import usual_path, write_file
from gpu_studio.ui.theme import COLOURS, application_font

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.check.check_record import CheckRecord


WIDTH = 1200
_TALLEST = 8000
_MARGIN, _GAP, _ROW_GAP = 56.0, 28.0, 9.0
_COLUMN_GAP = 24.0
_SMALL, _BODY, _HEAD, _HERO = 19, 22, 30, 58
_TONES = {
    "passed": "good", "failed": "failure_ink", "inconclusive": "amber", "partial": "amber",
    "skipped": "muted",
}  # fmt: skip
_ROLES = {
    Tone.GOOD: "good", Tone.FAILURE: "failure_ink", Tone.AMBER: "amber", Tone.PLAIN: "text",
}  # fmt: skip
_WRAPPED = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
_PICTURE, _PAGE = "Picture (*.png)", "Web page (*.html)"
_PAGE_ENDINGS = (".html", ".htm")
_FOLDER = "GPU Studio"
_LONGEST_NAME = 60


class _Ink(NamedTuple):
    pixels: int
    role: str = "text"
    weight: QFont.Weight = QFont.Weight.Normal


def paint_record(record: CheckRecord) -> QImage:
    """Return the picture of a record, as high as its text needs, with its text chunk."""
    # Painted once to measure, because text decides the height.
    measured = _Sheet(QImage(WIDTH, 16, QImage.Format.Format_RGB32))
    measured.paint(record)
    image = QImage(WIDTH, min(round(measured.top + _MARGIN), _TALLEST), QImage.Format.Format_RGB32)
    _Sheet(image).paint(record)
    # In ASCII: Qt writes other texts in another kind of chunk.
    image.setText(CHUNK, json.dumps(json.loads(encode_record(record))))
    image.setText("Software", "GPU Studio")
    return image


def png_of_record(record: CheckRecord) -> bytes:
    """Return the PNG file of a record, without identifiers in its sentences."""
    return png_bytes(paint_record(without_identifiers(record)))


class _Sheet:
    """Paints from top to bottom; ``top`` is the place of the next line."""

    def __init__(self, image: QImage) -> None:
        self._image = image
        self._painter = QPainter()
        self._left = _MARGIN  # of the values, beside the titles
        self.top = _MARGIN

    def paint(self, record: CheckRecord) -> None:
        self._image.fill(_color("card"))
        self._painter.begin(self._image)
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        titles = [fact.title for fact in record_facts(record)]
        titles += [stage_title(one.name, record.device.address) for one in record.stages]
        metrics = QFontMetricsF(_font(_Ink(_BODY)))
        self._left += max(map(metrics.horizontalAdvance, titles)) + _COLUMN_GAP
        self._paint_head(record)
        self._paint_curves(record)
        self._paint_memory(record)
        self._paint_findings(record)
        self._paint_steps(record)
        self._rule()
        self._paint_stages(record)
        self._rule()
        for fact in record_facts(record):
            self._row(fact.title, fact.value)
        for title, sentences in (
            (LIMITS_TITLE, record_limits(record)),
            (TRUST_TITLE, record_trust(record)),
        ):
            self._rule()
            self._line(title, _Ink(_BODY, "text", QFont.Weight.DemiBold))
            for sentence in sentences:
                self._line(f"• {sentence}", _Ink(_SMALL, "muted"))
        self._rule()
        self._line(f"Made by {record.program or 'GPU Studio'}. {PROMISE}", _Ink(_SMALL, "muted"))
        self._painter.end()

    def _paint_curves(self, record: CheckRecord) -> None:
        chart = record_chart(record)
        if not chart.lanes:
            return
        self._rule()
        height = chart_height(chart, _SMALL)

        def draw(canvas: PainterCanvas) -> None:
            draw_chart(chart, canvas, WIDTH - 2 * _MARGIN, height, _SMALL)

        self._draw(draw, height)

    def _paint_memory(self, record: CheckRecord) -> None:
        memory = memory_map(record.coverage, record.findings)
        if memory is None:
            return
        self._rule()
        self._line("Memory", _Ink(_BODY, "text", QFont.Weight.DemiBold))
        width = WIDTH - 2 * _MARGIN
        height = map_place(len(memory.squares), width, _SMALL).height

        def draw(canvas: PainterCanvas) -> None:
            draw_map(memory, canvas, width, _SMALL)

        self._draw(draw, height)
        self._line(memory.caption, _Ink(_SMALL, "failure_ink" if memory.bad else "muted"))

    def _paint_findings(self, record: CheckRecord) -> None:
        lines = finding_lines(record.findings)
        if not lines:
            return
        self._rule()
        self._line("Findings", _Ink(_BODY, "text", QFont.Weight.DemiBold))
        for line in lines:
            self._line(f"• {line.sentence}", _Ink(_BODY, _ROLES[FINDING_TONES[line.severity]]))

    def _paint_steps(self, record: CheckRecord) -> None:
        table = steps_table(record.load_steps)
        if table is None:
            return
        self._rule()
        bold = QFont.Weight.DemiBold
        self._line(STEPS_TITLE, _Ink(_BODY, "text", bold))
        wide = (WIDTH - 2 * _MARGIN) / (len(table.heads) + 1)
        heads = tuple((head, "muted") for head in ("Period", *table.heads))
        rows = [((title, "muted"), *map(_step_ink, cells)) for title, cells in table.rows]
        for row in (heads, *rows):
            bottom = self.top
            for column, (text, role) in enumerate(row):
                ink = _Ink(_SMALL, role)
                place = self._place(text, ink, _MARGIN + column * wide, wide - _ROW_GAP)
                self._write(place, text, ink)
                bottom = max(bottom, place.bottom())
            self.top = bottom + _ROW_GAP
        self._line(STEPS_NOTE, _Ink(_SMALL, "muted"))

    def _draw(self, draw: Callable[[PainterCanvas], None], height: float) -> None:
        """Let something draw itself below what is painted so far."""
        self._painter.save()
        self._painter.translate(_MARGIN, self.top)
        draw(PainterCanvas(self._painter, _font(_Ink(_SMALL)), _color))
        self._painter.restore()
        self.top += height + _ROW_GAP

    def _paint_head(self, record: CheckRecord) -> None:
        bold = QFont.Weight.DemiBold
        self._line(f"GPU Studio · {TITLE}", _Ink(_BODY, "muted", bold))
        self._line(device_line(record.device), _Ink(_HEAD, "text", bold))
        self._line(when_line(record), _Ink(_BODY, "muted"))
        ink = _Ink(_HERO, _ROLES[end_tone(record)], QFont.Weight.Bold)
        self._line(f"{end_words(record)}: {VERDICT_WORDS[record.verdict].lower()}", ink)
        planted = planted_text(record)
        if planted:
            self._planted(planted)
        self._line(record.sentence, _Ink(_BODY))
        self._line(f"Next: {record.next_action}", _Ink(_BODY))

    def _planted(self, text: str) -> None:
        ink = _Ink(_BODY, "failure_ink", QFont.Weight.DemiBold)
        place = self._place(text, ink, _MARGIN + 16, WIDTH - 2 * _MARGIN - 32)
        frame = place.adjusted(-16, -10, 16, 10).translated(0, 10)
        frame.setRight(WIDTH - _MARGIN)
        self._painter.fillRect(frame, _color("failure_soft"))
        self._painter.setPen(QPen(_color("failure"), 2))
        self._painter.drawRect(frame)
        self._write(place.translated(0, 10), text, ink)
        self.top = frame.bottom() + _ROW_GAP

    def _paint_stages(self, record: CheckRecord) -> None:
        for stage in record.stages:
            verdict = VERDICT_WORDS[stage.verdict]
            line = breakable(", ".join(filter(None, (errors_text(stage.errors), stage.tested))))
            time = clock_text(stage.seconds) if stage.seconds else ""
            ink = _Ink(_BODY, _TONES[stage.verdict], QFont.Weight.DemiBold)
            top = self.top
            self._write(QRectF(_MARGIN, top, self._left - _MARGIN, 60),
                        stage_title(stage.name, record.device.address), _Ink(_BODY))  # fmt: skip
            self._write(QRectF(WIDTH - _MARGIN - 120, top, 120, 60), time, _Ink(_BODY), _RIGHT)
            left = (
                self._left
                + QFontMetricsF(_font(ink)).horizontalAdvance("Inconclusive")
                + _COLUMN_GAP
            )
            self._write(QRectF(self._left, top, left - self._left, 60), verdict, ink)
            place = self._place(line, _Ink(_BODY), left, WIDTH - _MARGIN - 140 - left)
            self._write(place, line, _Ink(_BODY))
            self.top = place.bottom() + _ROW_GAP

    def _row(self, title: str, value: str) -> None:
        value = breakable(value)
        self._write(
            QRectF(_MARGIN, self.top, self._left - _MARGIN, 60), title, _Ink(_BODY, "muted")
        )
        place = self._place(value, _Ink(_BODY), self._left, WIDTH - _MARGIN - self._left)
        self._write(place, value, _Ink(_BODY))
        self.top = place.bottom() + _ROW_GAP

    def _line(self, text: str, ink: _Ink) -> None:
        text = breakable(text)
        place = self._place(text, ink, _MARGIN, WIDTH - 2 * _MARGIN)
        self._write(place, text, ink)
        self.top = place.bottom() + _ROW_GAP

    def _rule(self) -> None:
        top = self.top + _GAP / 2
        self._painter.setPen(QPen(_color("border"), 1))
        self._painter.drawLine(round(_MARGIN), round(top), round(WIDTH - _MARGIN), round(top))
        self.top = top + _GAP / 2

    def _place(self, text: str, ink: _Ink, left: float, width: float) -> QRectF:
        room = QRectF(left, self.top, width, 1e5)
        needed = QFontMetricsF(_font(ink)).boundingRect(room, _WRAPPED, text or " ")
        return QRectF(left, self.top, width, needed.height())

    def _write(self, place: QRectF, text: str, ink: _Ink, flags: int = _WRAPPED) -> None:
        self._painter.setPen(_color(ink.role))
        self._painter.setFont(_font(ink))
        self._painter.drawText(place, flags, text)


def _step_ink(cell: StepCell) -> tuple[str, str]:
    return cell.text, "failure_ink" if cell.is_bad else "text"


def _font(ink: _Ink) -> QFont:
    font = application_font(QGuiApplication.font())
    font.setPixelSize(ink.pixels)
    font.setWeight(ink.weight)
    return font


def _color(role: str) -> QColor:
    return QColor(COLOURS[role][0])  # light, like paper


def save_record(window: QWidget, record: CheckRecord) -> Notice:
    """Ask for a file and write the record into it."""
    suggested = usual_path(f"{record_file_name(record)}.png")
    path, kind = QFileDialog.getSaveFileName(
        window, "Save record", suggested, f"{_PICTURE};;{_PAGE}"
    )
    if not path:
        return Notice()
    ending = PurePath(path).suffix.lower()
    if ending not in (".png", *_PAGE_ENDINGS):
        ending = ".html" if kind == _PAGE else ".png"
        path += ending
    if ending in _PAGE_ENDINGS:
        return write_file(path, page_of(record))
    return write_file(path, png_of_record(record))


def show_to_buyer(record: CheckRecord) -> Notice:
    """Write page and picture into your documents, and open the page in the browser."""
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    if not documents:
        return Notice("This PC has no folder for documents. Use “Save record…”.", Tone.FAILURE)
    folder = Path(documents) / _FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        return Notice(f"Could not make the folder {folder}: {reason}", Tone.FAILURE)
    name = record_file_name(record)
    page = folder / f"{name}.html"
    for path, contents in (
        (page, page_of(record)),
        (folder / f"{name}.png", png_of_record(record)),
    ):
        written = write_file(str(path), contents)
        if written.tone is Tone.FAILURE:
            return written
    saved = f"Saved as {name}.html and {name}.png in {folder}."
    if QDesktopServices.openUrl(QUrl.fromLocalFile(str(page))):
        return Notice(f"{saved} Send both: the page has everything, the picture is for a listing.")
    return Notice(f"{saved} No browser opened: open the page yourself.", Tone.AMBER)


def record_file_name(record: CheckRecord) -> str:
    """Return a file's name without ending: ``check-GT-1030-2026-11-22-1440``; safe on any PC."""
    day, _, time = record.started_at[:16].partition("T")
    parts = ("check", short_name(record.device.name)[:_LONGEST_NAME], day, time.replace(":", ""))
    return re.sub(r"[^0-9A-Za-z]+", "-", "-".join(parts)).strip("-") or "check"
