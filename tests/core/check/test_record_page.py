"""The record of a check as a page, and any record that comes back in a file."""

from __future__ import annotations

import contextlib
import struct
import zlib
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.check.check_record import encode_record
from gpu_studio.core.check.plants import PLANTED_MARK
from gpu_studio.core.check.readings import RecordedReading
from gpu_studio.core.check.record_page import (
    CHUNK,
    LARGEST_FILE_BYTES,
    has_record,
    page_of,
    read_record,
)
from gpu_studio.core.check.record_words import LIMITS_TITLE, record_facts, record_limits
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import CheckFinding
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from tests.fakes.check_answers import wrong_bit
from tests.fakes.check_records import check_record
from tests.fakes.hostile_files import hostile_records

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.check.check_record import CheckRecord

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HOSTILE = '</script><img src="http://example.org/x"> & "quoted"'


class Elements(HTMLParser):
    """Notes what a browser would load, and the text that it would show."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.shown = ""
        self._is_shown = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._is_shown = tag not in ("template", "style")

    def handle_endtag(self, tag: str) -> None:
        self._is_shown = True

    def handle_data(self, data: str) -> None:
        if self._is_shown:
            self.shown += f"{data} "


def parsed(page: bytes) -> Elements:
    elements = Elements()
    elements.feed(page.decode())
    return elements


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def test_a_page_opens_again_as_its_record(tmp_path: Path) -> None:
    record = check_record({"memory": (wrong_bit(),)})
    (tmp_path / "record.html").write_bytes(page_of(record))
    (tmp_path / "record.json").write_bytes(encode_record(record))

    assert read_record(tmp_path / "record.html") == record
    assert read_record(tmp_path / "record.json") == record


def test_a_page_says_what_the_record_says() -> None:
    record = check_record({"memory": (wrong_bit(),)})
    shown = parsed(page_of(record)).shown

    assert "Record of a check" in shown
    assert "Failed" in shown
    assert record.next_action in shown
    for part in (*record_facts(record), *((s.tested, "") for s in record.stages)):
        assert part[0] in shown
        assert part[1] in shown


def test_a_name_from_outside_is_never_markup(tmp_path: Path) -> None:
    record = check_record()
    finding = CheckFinding(kind="wrong_bits", severity="error", stage="memory", sentence=HOSTILE)
    hostile = msgspec.structs.replace(
        record, device=msgspec.structs.replace(record.device, name=HOSTILE), sentence=HOSTILE,
        findings=(finding,),
    )  # fmt: skip
    page = page_of(hostile)

    assert "img" not in parsed(page).tags
    assert "script" not in parsed(page).tags
    assert parsed(page).shown.count(HOSTILE) >= 3
    (tmp_path / "a.htm").write_bytes(page)
    assert read_record(tmp_path / "a.htm") == hostile


def test_a_page_answers_a_buyer() -> None:
    record = check_record({"memory": (wrong_bit(),) * 2})
    device = msgspec.structs.replace(record.device, uuid_tail="3f2a")
    page = page_of(msgspec.structs.replace(record, device=device))
    shown = parsed(page).shown

    for part in (
        "GeForce GT 1030, 1.95", "November 22, 2026, 14:40", "6:00", "2\u202ferrors", "2 times",
        "slows itself down at 94", "512\u202fMiB", "UUID ends in 3f2a", LIMITS_TITLE,
        "can be forged", "fresh one",
    ):  # fmt: skip
        assert part in shown, part
    assert parsed(page).tags.count("svg") == 4
    assert b"prefers-color-scheme: dark" in page
    assert b"@media print" in page
    assert b"http:" not in page
    assert b"https:" not in page


@pytest.mark.parametrize("number", [1e99, 0.0])
def test_a_record_with_absurd_numbers_is_a_page_and_opens_again(
    tmp_path: Path, number: float
) -> None:
    readings = tuple(
        RecordedReading(at_s=5e5 * (one % 3), temperature_c=number, power_w=number)
        for one in range(400)
    )
    absurd = msgspec.structs.replace(
        check_record(), readings=readings, seconds=1e6, started_at="x" * 99,
        highest_temperature_c=number, lowest_clock_mhz=number, largest_hotspot_gap_c=number,
    )  # fmt: skip
    page = page_of(absurd)
    assert len(page) < 1 << 20
    assert max(map(len, parsed(page).shown.split())) < 120
    (tmp_path / "a.html").write_bytes(page)
    assert read_record(tmp_path / "a.html") == absurd


def test_what_a_record_cannot_rule_out_is_written_for_its_device() -> None:
    of_cpu = record_limits(check_record(device="cpu"))
    assert any(one.startswith("RAM: RAM that other") for one in of_cpu)
    assert any("a quarter of what is free" in one for one in of_cpu)
    assert any("596" in one and "other programs" in one for one in record_limits(check_record()))
    stopped = record_limits(check_record(stop_in="memory"))
    assert "did not run: PCIe link." in stopped[0]


def test_untested_memory_is_a_limit_only_if_some_was_left_out() -> None:
    def left_out(record: CheckRecord) -> list[str]:
        return [one for one in record_limits(record) if one.startswith("Faults in ")]

    record = check_record()
    assert record.coverage is not None
    assert len(left_out(record)) == 1
    whole = msgspec.structs.replace(record.coverage, tested_bytes=record.coverage.total_bytes)
    assert not left_out(msgspec.structs.replace(record, coverage=whole))
    assert not left_out(msgspec.structs.replace(record, coverage=None))


def test_a_fault_made_on_purpose_is_marked() -> None:
    assert PLANTED_MARK in parsed(page_of(check_record(plant="bit"))).shown
    assert PLANTED_MARK not in parsed(page_of(check_record())).shown


def test_a_picture_has_the_record_in_a_plain_or_a_packed_text(tmp_path: Path) -> None:
    record, key = check_record(), CHUNK.encode()
    text = encode_record(record)
    path = tmp_path / "record.png"
    for kind, body in ((b"tEXt", text), (b"zTXt", b"\0" + zlib.compress(text))):
        path.write_bytes(png((b"IHDR", b""), (b"tEXt", b"a\0b"), (kind, key + b"\0" + body)))
        assert has_record(path)
        assert read_record(path) == record


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.png", png((b"IHDR", b"")), "no record"),
        ("a.png", SIGNATURE + b"\xff" * 9, "no record"),
        ("a.png", png((b"zTXt", CHUNK.encode() + b"\0\0no")), "not the record"),
        ("a.png", png((b"zTXt", CHUNK.encode() + b"\0\0" + zlib.compress(
            b" " * (LARGEST_RECORD_BYTES + 9)))), "too large"),
        ("a.html", b"<html></html>", "no record"),
        ("a.json", b"{}", "not the record"),
        ("a.html", b" " * (LARGEST_FILE_BYTES + 1), "larger than"),
    ],
)  # fmt: skip
def test_a_file_without_a_record_is_refused_in_words(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudioError, match=reason) as refused:
        read_record(tmp_path / name)
    assert refused.value.kind is FailureKind.FILE_REFUSED


def test_whatever_a_stranger_sends_is_read_once(tmp_path: Path) -> None:
    """A search for the end of an element that began anew at each beginning would take hours."""
    for name, content in hostile_records():
        (tmp_path / name).write_bytes(content)
        with contextlib.suppress(StudioError):
            read_record(tmp_path / name)


def test_a_missing_file_and_a_photo_have_no_record(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(png((b"IHDR", b"")))
    assert not has_record(tmp_path / "photo.png")
    assert not has_record(tmp_path / "missing.png")
    with pytest.raises(StudioError, match="does not exist"):
        read_record(tmp_path / "missing.png")


def test_the_facts_name_no_copy_of_a_card_unless_asked() -> None:
    record = check_record()
    assert not {"UUID", "Serial number"} & {fact.title for fact in record_facts(record)}
    asked = msgspec.structs.replace(record, uuid="GPU-1", serial="042")
    facts = {fact.title: fact.value for fact in record_facts(asked)}
    assert (facts["UUID"], facts["Serial number"]) == ("GPU-1", "042")


def test_the_facts_of_a_card_have_its_heat_and_clock_with_their_limits() -> None:
    facts = {fact.title: fact.value for fact in record_facts(check_record())}
    assert facts["Chip"] == "GP108 (1d01)"
    assert facts["Highest temperature"].startswith("63")
    assert "94" in facts["Highest temperature"]
    assert "1227" in facts["Lowest clock under load"]
    of_cpu = dict(record_facts(check_record(device="cpu")))
    assert not {"VBIOS", "Card"} & set(of_cpu)
    assert of_cpu["Highest temperature"] == of_cpu["Lowest clock under load"]
    assert of_cpu["Lowest clock under load"] == "not reported by this PC"
    assert of_cpu["Memory tested"].endswith("GiB free (74\u202f%), in this program's own RAM")
