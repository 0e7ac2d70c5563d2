"""A standard run on its way to strangers: picture, text and page."""

from __future__ import annotations

import getpass
import html
import socket
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.standard import STANDARD_1
from gpu_studio.core.benchmark.standard_card import standard_card
from gpu_studio.core.benchmark.standard_page import standard_page
from gpu_studio.core.benchmark.standard_record import (
    CHUNK,
    StandardCheck,
    StandardDevice,
    StandardFigure,
    StandardRun,
    decode_standard,
)
from gpu_studio.core.benchmark.standard_text import standard_markdown
from gpu_studio.core.page_json import json_in_page
from gpu_studio.core.shared_card import MOST_ROWS
from tests.core.benchmark.standard_runs import item_result, standard_device, standard_run
from tests.core.check.test_record_page import parsed

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished

HOSTILE = 'GT <img src=x> | `x` "1030"'
CHECK = StandardCheck(verdict="passed", minutes=6, made_at="2026-11-22T14:40:00+01:00")


def without_results(device: StandardDevice, why: str) -> StandardDevice:
    figures = tuple(
        msgspec.structs.replace(one, result=None, skipped=why) for one in device.figures
    )
    return msgspec.structs.replace(device, figures=figures, load=None)


def with_wrong(device: StandardDevice, key: str) -> StandardDevice:
    figures = tuple(
        msgspec.structs.replace(
            one, result=msgspec.structs.replace(one.result, verified=False)
        )
        if one.key == key and one.result is not None
        else one
        for one in device.figures
    )  # fmt: skip
    return msgspec.structs.replace(device, figures=figures)


@pytest.fixture
def run() -> StandardRun:
    return standard_run(standard_device(), standard_device("cuda:0", check=CHECK))


def test_a_page_and_a_picture_open_again_as_the_run(run: StandardRun) -> None:
    inside = json_in_page(standard_page(run), CHUNK)
    card = standard_card(run)

    assert inside is not None
    assert decode_standard(inside) == run
    assert card.keyword == CHUNK
    assert card.content.isascii()
    assert decode_standard(card.content.encode()) == run


def test_a_page_says_what_was_measured_and_what_was_not(run: StandardRun) -> None:
    page = parsed(standard_page(run))

    for text in ("This device has no bfloat16.", "passed (6", "580.95.05", "2.13.0+cu126",
                 "1550", "not reported", "Debian GNU/Linux 12"):  # fmt: skip
        assert text in page.shown
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert page.tags.count("svg") == 2 * 9
    assert "default-src 'none'" in html.unescape(standard_page(run).decode())


def test_a_name_is_never_markup() -> None:
    run = standard_run(standard_device("cuda:0", name=HOSTILE), pc_name=HOSTILE)
    page, text = standard_page(run), standard_markdown(run)

    assert "img" not in parsed(page).tags
    assert HOSTILE in parsed(page).shown
    assert "<" not in text
    assert "\\| \\`x\\`" in text
    assert len({line.count(" | ") for line in text.splitlines() if line.startswith("| ")}) == 1


def test_a_page_of_several_cards_says_that_it_begins_with_the_fastest() -> None:
    cards = (standard_device("cuda:0"), standard_device("cuda:1"))
    assert "Fastest of 2: " in parsed(standard_page(standard_run(standard_device(), *cards))).shown


def test_the_picture_of_several_cards_has_the_fastest_ones() -> None:
    cards = [standard_device(f"cuda:{number}", name=f"Card {number}") for number in range(9)]
    many = standard_card(standard_run(standard_device(), *cards))

    assert len(many.rows) == MOST_ROWS
    assert many.rows[-1].bars[0].role == "cpu"
    assert many.name.startswith("Fastest of 9: ")


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_device_alone_is_compared_with_nothing(device: str) -> None:
    card = standard_card(standard_run(standard_device(device)))

    assert "faster" not in card.headline
    assert "compared" not in card.line
    assert all(len(row.bars) == 1 for row in card.rows)


def test_what_was_not_measured_has_no_number() -> None:
    run = standard_run(without_results(standard_device("cuda:0"), "No memory is left."))
    card = standard_card(run)

    assert (card.headline, card.tone) == ("No results", "amber")
    assert {(row.value, row.note) for row in card.rows} == {("–", "not measured")}
    assert "No memory is left." in standard_markdown(run)
    assert "No memory is left." in parsed(standard_page(run)).shown


def test_an_empty_operation_has_no_ceiling() -> None:
    launch = STANDARD_1[6]
    result = item_result(launch, share_of_ceiling=0.001, ceiling="peak arithmetic, 1 TFLOP/s")
    figures = (StandardFigure(key=launch.key, result=result),)
    page = parsed(standard_page(standard_run(standard_device(figures=figures))))

    assert "0.1" not in page.shown


def test_a_wrong_result_has_no_bar_and_no_speed() -> None:
    run = standard_run(standard_device(), with_wrong(standard_device("cuda:0"), "convolution"))
    card = standard_card(run)
    row = next(row for row in card.rows if row.title == "Convolution")

    assert (card.stamp, card.tone) == ("Wrong results", "failure")
    assert row.value == "wrong results"
    assert row.bars[0].share == 0
    assert row.note == ""
    assert "Wrong results" in parsed(standard_page(run)).shown
    # Neither the wrong result nor the missing bfloat16 has one, in the wide or the narrow chart.
    assert standard_page(run).decode().count('class="f-gpu0"') == 2 * (len(STANDARD_1) - 2)


def test_no_identifier_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "erika.m")
    monkeypatch.setattr(socket, "gethostname", lambda: "heimrechner.lan")
    uuid = "4fe0d7a1-3c5b-4d52-9c2e-0123456789ab"
    planted = f"erika.m on heimrechner: /home/erika.m/x/torch.so, GPU-{uuid}"
    device = without_results(standard_device("cuda:0"), planted)
    result = item_result_with(planted)
    figures = (*device.figures[:1], msgspec.structs.replace(device.figures[1], result=result,
                                                            skipped=""))  # fmt: skip
    run = standard_run(msgspec.structs.replace(device, figures=figures))
    card = standard_card(run)

    for shared in (standard_page(run).decode(), standard_markdown(run), str(card)):
        for secret in ("erika", "heimrechner", uuid, "/home"):
            assert secret not in shared.lower()


def item_result_with(text: str) -> RunFinished:
    return item_result(
        STANDARD_1[1], "cuda:0", verification=text, findings=(text,), doubts={"odd": text}
    )
