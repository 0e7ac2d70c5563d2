"""Every reason for a failed installation says what happened and what to do."""

from __future__ import annotations

import pytest

from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.trouble import TroubleKind, format_size, unfit_pc

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
    assert len(trouble.action) > 20
    for fact, value in FACTS.items():
        if f"{{{fact}}}" in reason.sentence:
            assert str(value) in trouble.sentence
    assert ("{c10}.dll" in trouble.sentence) is ("{about}" in reason.sentence or "{name}" in
                                                 reason.sentence)  # fmt: skip
    assert "said" in trouble.detail


def test_a_full_disk_names_the_room_and_a_server_that_refuses_another_way():
    assert "2.7\u202fGB" in troubles.disk_full("D:", 2_700_000_000).action
    assert "some space" in troubles.disk_full("D:", None).action
    assert "newest GPU Studio" in troubles.server_refused("pypi.org", 404).action
    assert "minutes" in troubles.server_refused("pypi.org", 503).action


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


@pytest.mark.parametrize(
    ("system", "machine"),
    [("Windows", "AMD64"), ("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")],
)
def test_usual_pcs_are_not_refused(system, machine):
    assert unfit_pc(system, machine) is None


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(12, "12\u202fbytes"), (122_300_000, "122\u202fMB"), (999_600_000, "1.0\u202fGB"),
     (2_650_000_000, "2.6\u202fGB"), (9_940_000_000, "9.9\u202fGB"), (9_960_000_000, "10\u202fGB"),
     (12_000_000_000, "12\u202fGB")],
)  # fmt: skip
def test_sizes_are_those_of_a_browser(size_bytes, text):
    assert format_size(size_bytes) == text
