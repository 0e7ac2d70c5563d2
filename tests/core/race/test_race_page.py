"""A race as a page, and the race in a page from a stranger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.race.race_page import has_race, race_page, read_race_page
from tests.core.check.test_record_page import parsed
from tests.ui.race.pictures import contestant, shared_race

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = '<img src=x onerror="x">'


def test_a_page_opens_again_as_its_race(tmp_path: Path) -> None:
    path = tmp_path / "race.html"
    path.write_bytes(race_page(shared_race()))

    assert has_race(path)
    assert read_race_page(path) == shared_race()


def test_a_page_says_who_won_and_how_far_the_others_came() -> None:
    page = parsed(race_page(shared_race()))

    for text in (
        "GT 1030 beat",
        "Reached the finish line",
        "33\u202f% of the way",
        "50.0",
        "2.13.0",
    ):
        assert text in page.shown
    assert page.tags.count("svg") == 2
    assert "script" not in page.tags


def test_the_curves_of_a_page_are_a_table_too() -> None:
    page = parsed(race_page(shared_race())).shown

    for text in ("After", "3.00\u202fs", "12.0\u202fs", "25\u202f%", "75\u202f%", "100\u202f%"):
        assert text in page


def test_power_has_a_column_where_a_device_reports_it() -> None:
    powered = msgspec.structs.replace(contestant("cuda:0"), power_w=21.4)
    race = msgspec.structs.replace(shared_race().race, contestants=(contestant(), powered))

    assert "Power" not in parsed(race_page(shared_race())).shown
    assert "21\u202fW" in parsed(race_page(shared_race(race=race))).shown


def test_names_are_no_markup_and_a_wrong_result_has_no_speed() -> None:
    wrong = msgspec.structs.replace(contestant("cuda:0", steps=450), verified=False)
    race = msgspec.structs.replace(
        shared_race().race, contestants=(contestant(), wrong), sentence=HOSTILE
    )
    page = parsed(race_page(shared_race(race=race, doubts=(HOSTILE,))))

    assert "img" not in page.tags
    assert HOSTILE in page.shown
    assert "Wrong result" in page.shown
    assert "37.5" not in page.shown


@pytest.mark.parametrize(
    "content", [b"<html></html>", b'<template id="gpu-studio-race">{}</template>', b"\xff" * 99]
)
def test_a_page_without_a_race_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "race.html"
    path.write_bytes(content)
    with pytest.raises(StudioError, match="cannot be opened: it"):
        read_race_page(path)
