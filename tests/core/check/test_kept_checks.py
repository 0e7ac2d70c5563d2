"""The results that stay on this PC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.check.kept_checks import KeptChecks
from gpu_studio.core.failure import StudioError
from tests.core.check.test_check_record import record

if TYPE_CHECKING:
    from pathlib import Path

PASSED = msgspec.structs.replace(record(), verdict="passed")


def test_both_results_are_kept_and_the_newest_comes_first(tmp_path: Path) -> None:
    kept = KeptChecks(tmp_path / "checks")
    kept.keep(record(), "card", "2026-11-22T10:00:00.000+01:00")
    kept.keep(PASSED, "card", "2026-11-22T11:00:00.000+01:00")
    assert [one.record for one in kept.newest_first()] == [PASSED, record()]
    assert kept.latest("card") == PASSED


def test_another_card_has_its_own_results(tmp_path: Path) -> None:
    kept = KeptChecks(tmp_path)
    assert kept.latest("card") is None
    kept.keep(record(), "other", "2026-11-22T10:00:00.000+01:00")
    assert kept.latest("card") is None
    assert kept.latest("other") == record()


def test_a_fault_made_on_purpose_is_not_kept_as_a_result(tmp_path: Path) -> None:
    planted = msgspec.structs.replace(record(), planted="bit")
    with pytest.raises(StudioError, match="on purpose"):
        KeptChecks(tmp_path).keep(planted, "card", "2026-11-22T10:00:00")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_results_are_left_out(tmp_path: Path) -> None:
    kept = KeptChecks(tmp_path)
    kept.keep(record(), "card", "2026-11-22T10:00:00.000+01:00")
    (tmp_path / "check-99999999999999-0.json").write_text("{")
    (tmp_path / "unfinished.json").write_text("{}")
    assert [one.fingerprint for one in kept.newest_first()] == ["card"]


def test_a_result_that_cannot_be_saved_is_said(tmp_path: Path) -> None:
    (tmp_path / "checks").write_text("a file where the folder should be")
    with pytest.raises(StudioError, match="cannot be saved"):
        KeptChecks(tmp_path / "checks").keep(record(), "card", "2026-11-22T10:00:00")
