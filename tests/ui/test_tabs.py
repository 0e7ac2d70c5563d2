from pathlib import Path

import pytest
from PySide6.QtGui import QKeySequence

from gpu_studio.core.check.check_file import RECORD_ENDINGS, has_record
from gpu_studio.core.png_chunks import PNG_HEAD
from gpu_studio.model import pages
from gpu_studio.model.pages import BENCHMARK, CHECK, DEVICES, HISTORY, RACE, PageId
from gpu_studio.ui.icons import icon
from gpu_studio.ui.scroll_page import imported
from gpu_studio.ui.tabs import TABS, Tab, TabContents, page_for_file, tab_of
from gpu_studio.ui.theme import Theme
from tests.fakes.check_records import check_record

_TITLE = pytest.mark.parametrize("tab", TABS, ids=lambda tab: tab.page.tab)


@_TITLE
def test_what_a_record_names_is_there(tab: Tab, theme: Theme) -> None:
    assert issubclass(imported(tab.contents), TabContents)
    assert not icon(tab.icon, theme).isNull()
    assert not QKeySequence(tab.keys).isEmpty()
    if tab.recognizes:
        assert callable(imported(tab.recognizes))


@pytest.mark.parametrize("of", [lambda tab: tab.page, lambda tab: tab.title, lambda tab: tab.keys])
def test_no_two_tabs_share_a_name_or_a_key(of) -> None:
    assert len({of(tab) for tab in TABS}) == len(TABS)


def test_a_file_has_one_tab() -> None:
    endings = [ending for tab in TABS for ending in tab.opens]
    assert len(endings) == len(set(endings))


def test_every_page_that_the_program_leads_to_is_in_a_record() -> None:
    for page in (one for one in vars(pages).values() if isinstance(one, PageId)):
        tab = tab_of(page)
        assert page in (tab.page, tab.recognized) or page in tab.parts


@pytest.mark.usefixtures("qapp")  # Qt paints the record
def test_a_record_of_a_check_is_distinguished_from_a_photo_by_its_contents(tmp_path: Path) -> None:
    from gpu_studio.ui.check.record_document import png_of_record

    photo, record = tmp_path / "photo.png", tmp_path / "record.png"
    photo.write_bytes(PNG_HEAD + b"a photo")
    record.write_bytes(png_of_record(check_record({})))
    assert has_record(record)
    assert page_for_file(photo, BENCHMARK) == RACE
    assert page_for_file(record, BENCHMARK) == CHECK
    others = set(RECORD_ENDINGS) - {".png"}
    assert {page_for_file(tmp_path / f"a{ending}", RACE) for ending in others} == {CHECK}


def test_a_recording_is_for_the_benchmark_if_that_is_in_front(tmp_path: Path) -> None:
    for front, opens in ((BENCHMARK, HISTORY), (DEVICES, RACE), (RACE, RACE)):
        assert page_for_file(tmp_path / "a.jsonl", front) == opens
    assert page_for_file(tmp_path / "results.json", BENCHMARK) == HISTORY
    assert page_for_file(tmp_path / "a.zip", BENCHMARK) is None
