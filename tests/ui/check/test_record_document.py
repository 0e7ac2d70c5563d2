"""The document of a record: what a buyer reads in the picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import msgspec
import pytest
from PySide6.QtGui import QImage

from gpu_studio.core.check.check_file import CHUNK, decode_record
from gpu_studio.core.check.check_words import record_parts
from gpu_studio.core.check.stages import PLANTED_MARK
from gpu_studio.core.messages.check_messages import CheckFinding
from gpu_studio.core.png_chunks import png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.ui.check.record_document import RecordDocument, png_of_record
from tests.fakes.check_answers import wrong_bit
from tests.fakes.check_records import check_record

if TYPE_CHECKING:
    from gpu_studio.core.check.check_record import CheckRecord

pytestmark = pytest.mark.usefixtures("qapp")
HOSTILE = '</script><img src="http://example.org/x"> & "quoted"'


def words(record: CheckRecord) -> str:
    return RecordDocument(record).toPlainText()


def test_a_document_says_what_the_record_says() -> None:
    record = check_record({"memory": (wrong_bit(),) * 2})
    device = msgspec.structs.replace(record.device, uuid_tail="3f2a")
    record = msgspec.structs.replace(record, device=device)
    shown = words(record)
    for text in (
        "GeForce GT 1030, 1.95", "November 22, 2026, 14:40", "6:00", "2\u202ferrors: failed",
        "2 times", record.next_action, "slows down at 94", "at 512",
        "UUID ends in", "3f2a", "can be forged", "fresh one",
        *(words for part in record_parts(record) for row in part.rows for words in row[:2]),
        *(stage.tested for stage in record.stages),
    ):  # fmt: skip
        assert text in shown, text
    assert shown.count("\ufffc") == 3, "three curves"
    assert PLANTED_MARK not in shown
    assert PLANTED_MARK in words(check_record(plant="bit"))
    assert "From the file sold.json" in words(msgspec.structs.replace(record, origin="sold.json"))


def test_a_name_from_outside_is_never_markup() -> None:
    finding = CheckFinding(kind="wrong_bits", severity="error", stage="memory", sentence=HOSTILE)
    record = check_record({"memory": (finding,)})
    record = msgspec.structs.replace(
        record, device=msgspec.structs.replace(record.device, name=HOSTILE)
    )
    shown = words(record)
    assert shown.count(HOSTILE) >= 3
    assert shown.count("\ufffc") == 3


@pytest.mark.parametrize("number", [1e99, 0.0])
def test_a_picture_has_the_record_inside_whatever_numbers_it_has(number: float) -> None:
    readings = tuple(
        Telemetry(at_s=5e5 * one, temperature_c=number, power_w=number) for one in range(400)
    )
    absurd = msgspec.structs.replace(
        check_record(), readings=readings, seconds=1e6,
        highest_temperature_c=number, lowest_clock_mhz=number, highest_hotspot_c=number,
    )  # fmt: skip
    picture = png_of_record(absurd)
    text = png_text(io.BytesIO(picture), CHUNK.encode(), LARGEST_RECORD_BYTES)
    assert text is not None
    assert decode_record(text) == absurd


def test_a_picture_shows_all_of_it() -> None:
    record = check_record()
    image = QImage.fromData(png_of_record(record))
    assert {colors_of(image, image.height() - row) for row in range(1, 60)} == {1}, "a margin"
    assert max(colors_of(image, image.height() - row) for row in range(60, 140)) > 1, "the foot"
    more = check_record({"memory": (wrong_bit(),)}, plant="bit")
    assert QImage.fromData(png_of_record(more)).height() > image.height()


def colors_of(image: QImage, row: int) -> int:
    """Return the number of colors in a row of pixels."""
    return len({image.pixel(x, row) for x in range(image.width())})
