"""The records of installed builds, and which one the engine uses."""

from __future__ import annotations

import json

import pytest

from gpu_studio.core.builds.record import BuildRecord, best_of, record_from

CPU = BuildRecord("cpu", "2.13.0+cpu", "3.11")
CU126 = BuildRecord("cu126", "2.13.0+cu126", "3.11", runs_on_card=True)
CU130 = BuildRecord("cu130", "2.13.0+cu130", "3.11", note="no card answered")


def test_a_record_survives_its_file():
    record = BuildRecord("cu126", "2.13.0+cu126", "3.11", "ready", 5, True, "ran on 1 card")
    assert record_from(record.text()) == record


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"family": "rocm"}, {"size_bytes": "much"}, {"python": ...}],
    ids=["newer", "family", "size", "lacks"],
)
def test_what_is_no_record_is_none(change):
    content = json.loads(CPU.text()) | change
    content = {name: value for name, value in content.items() if value is not ...}
    assert record_from(json.dumps(content)) is None


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_broken_file_is_none(text):
    assert record_from(text) is None


def test_an_older_build_says_why_it_is_outdated():
    assert CPU.outdated("2.13.0", "3.11") == ""
    assert "2.13.0" in CPU.outdated("2.14.1", "3.11")
    assert "3.12" in CPU.outdated("2.13.0", "3.12")


@pytest.mark.parametrize(
    ("records", "wanted", "best"),
    [
        ((), "", ""),
        ((CPU,), "", "cpu"),
        ((CPU, CU126), "", "cu126"),
        ((CPU, CU130), "", "cpu"),  # it runs on no card: it takes over only if wanted
        ((CPU, CU130), "cu130", "cu130"),
        ((CU130,), "", "cu130"),
        ((CPU, CU126), "cpu", "cpu"),
        ((CPU, CU126.broken("x", 1)), "cu126", "cpu"),
        ((CPU, CU126), "cu130", "cu126"),
    ],
)
def test_the_best_build_is_used(records, wanted, best):
    assert best_of(records, wanted, "2.13.0", "3.11") == best


def test_an_older_pytorch_works_until_the_new_one_is_there():
    assert best_of((CU126,), "", "2.14.1", "3.11") == "cu126"
    new_cpu = BuildRecord("cpu", "2.14.1+cpu", "3.11")
    assert best_of((CU126, new_cpu), "", "2.14.1", "3.11") == "cpu"


def test_a_build_for_another_python_cannot_be_loaded():
    assert best_of((CPU,), "", "2.13.0", "3.12") == ""
