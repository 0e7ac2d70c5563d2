"""Errors as people report them, each with what is right to say of it.

`reports.json` quotes the lines that matter, with the report that has them; those of the source
“invented” are of the same kinds: the programs' own words, with other cards, numbers, surroundings.
"""

import json
from pathlib import Path

import pytest

from gpu_studio.core.error_table import BY_NUMBERS, error_table
from gpu_studio.core.errors.reader import UNKNOWN, read_error

REPORTS = json.loads(Path(__file__).with_name("reports.json").read_text(encoding="utf-8"))
reports = pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["name"])


def words_of(reading) -> str:
    """Return all that is said, as a reader sees it."""
    answer = reading.answer
    steps = " ".join(f"{step.what}: {step.how}." for step in answer.steps)
    return f"{answer.verdicts[0].notice.sentence} {answer.sentence} {steps}".replace("\u202f", " ")


@reports
def test_each_report_is_read_right(report):
    reading = read_error(report["text"])
    assert (reading.kind, reading.program) == (report["kind"], report["program"])
    words = words_of(reading)
    assert [one for one in report["said"] if one not in words] == []
    assert [one for one in report["unsaid"] if one in words] == []
    assert "{" not in words


def test_every_kind_has_a_text_and_words_of_its_own():
    kinds = error_table().kinds
    assert {report["kind"] for report in REPORTS} == {*kinds, UNKNOWN}
    assert len({kind.headline for kind in kinds.values()}) == len(kinds) - 1  # “Out of memory.”


def test_each_row_of_the_table_can_be_found_and_has_its_source():
    for form in error_table().forms:
        assert min(map(len, form.anchors)) >= 4, form.shape
        assert form.source, form.shape
        assert form.kind in (BY_NUMBERS, *error_table().kinds)
    for program in error_table().programs:
        assert program.source or not program.steps, program.name


_CODES = {code for form in error_table().forms for code in form.codes}
START_CODES = sorted(code for code in _CODES if error_table().start_kind(code) is not None)


def test_an_error_code_of_cuda_has_its_own_meaning():
    table = error_table()
    codes = (2, 3, 34, 35, 46, 100, 101, 304, 500, 802, 803, 804, 999)
    headlines = {table.start_kind(code).headline for code in codes}
    assert len(headlines) == len(codes)
    assert table.start_kind(12345) is None


AROUND = {
    "a narrow terminal": lambda text: "\n".join(
        line[at : at + 37] for line in text.splitlines() for at in range(0, len(line), 37)
    ),
    "colors": lambda text: f"\x1b[31m{text}\x1b[0m\n",
    "Windows' line ends": lambda text: text.replace("\n", "\r\n"),
    "the log of a container": lambda text: "".join(
        f"trainer-1  | {line}\n" for line in text.splitlines()
    ),
    "times": lambda text: "".join(
        f"2026-03-04 10:11:12,345 - root - ERROR - {line}\n" for line in text.splitlines()
    ),
    "binary rubbish": lambda text: f"\x00\x01\ufffd\x7f\n{text}\n\x00\ufffd\ufffd" * 2,
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
def test_what_surrounds_a_report_makes_no_difference(around):
    different = []
    for report in REPORTS:
        reading = read_error(around(report["text"]))
        if (reading.kind, reading.program) != (report["kind"], report["program"]):
            different.append((report["name"], reading.kind, reading.program))
    assert different == []


@pytest.mark.parametrize("report", REPORTS[::15], ids=lambda report: report["name"])
def test_megabytes_of_progress_before_and_after_make_no_difference(report):
    progress = "".join(f"step {n} loss 0.{n} 3.1 it/s\n" for n in range(50_000))
    reading = read_error(f"{progress}{report['text']}\n{progress}")
    assert (reading.kind, reading.program) == (report["kind"], report["program"])
