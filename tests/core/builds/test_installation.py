import json

import pytest

from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.progress import (
    DownloadPace,
    format_left,
)
from gpu_studio.core.builds.record import BuildRecord, best_of, record_from
from gpu_studio.core.builds.trouble import TroubleKind, unfit_pc


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_time_left_is_that_of_the_last_seconds():
    clock = Clock()
    pace = DownloadPace(clock)
    pace.note(0)
    assert pace.left_s(1000) is None
    for second in range(1, 61):  # 10 bytes a second, and then 1
        clock.now_s += 1
        pace.note(10 * min(second, 30) + max(0, second - 30))
    assert pace.left_s(1330) == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3, "a few seconds left"),
        (34, "about 30 seconds left"),
        (58, "about 1 minute left"),
        (200, "about 3 minutes left"),
        (3590, "about 1 hour left"),
        (5400, "about 1.5 hours left"),
    ],
)
def test_a_time_is_rough(seconds, text):
    assert format_left(seconds) == text


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


KINDS = TroubleKind
REASONS = [one for one in vars(troubles).values() if isinstance(one, troubles._Reason)]
FACTS = {
    "status": 503, "requirement": "torch==2", "python": "3.11", "platform": "linux-x86_64",
    "why": "it lies", "room": "2 GB", "length": 201, "longest": 80, "process": "17",
    "missing": "sympy>=1",
}  # fmt: skip


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.sentence)
def test_a_reason_says_what_happened_and_what_to_do(reason):
    trouble = reason("/x/{c10}.dll", "said", **FACTS)
    assert trouble.kind is reason.kind
    assert trouble.sentence.endswith(".")
    assert len(trouble.next_step) > 20
    for fact, value in FACTS.items():
        if f"{{{fact}}}" in reason.sentence:
            assert str(value) in trouble.sentence
    assert ("{c10}.dll" in trouble.sentence) is ("{about}" in reason.sentence or "{name}" in
                                                 reason.sentence)  # fmt: skip
    assert "said" in trouble.detail


def test_a_full_disk_names_the_room_and_a_server_that_refuses_another_way():
    assert "2.7\u202fGB" in troubles.disk_full("D:", 2_700_000_000).next_step
    assert "some space" in troubles.disk_full("D:", None).next_step
    assert "newest GPU Studio" in troubles.server_refused("pypi.org", 404).next_step
    assert "minutes" in troubles.server_refused("pypi.org", 503).next_step


@pytest.mark.parametrize(
    ("system", "machine", "is_64_bit", "word"),
    [
        ("Windows", "ARM64", True, "ARM"),
        ("Windows", "x86", False, "32-bit"),
        ("Windows", "AMD64", False, "32-bit"),
        ("Linux", "i686", True, "32-bit"),
        ("Linux", "riscv64", True, "riscv64"),
    ],
)
def test_a_pc_without_any_pytorch_is_refused_in_a_sentence(system, machine, is_64_bit, word):
    trouble = unfit_pc(system, machine, is_64_bit=is_64_bit)
    assert trouble is not None
    assert trouble.kind is KINDS.OTHER_PC
    assert word in trouble.sentence
