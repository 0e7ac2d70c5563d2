"""From which size on a card beats its CPU, as the history has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpu_studio.core.benchmark.history import FOLDER_NAME, History
from gpu_studio.core.benchmark.newest_crossover import newest_crossover
from gpu_studio.core.benchmark.standard_record import StandardCrossover
from tests.core.benchmark.kept_runs import finished_run, kept_run

if TYPE_CHECKING:
    from pathlib import Path

CARD = "GPU-1"
DAY = "2026-11-20T10:00:00.000+00:00"


def keep(folder: Path, size: int, device: str, median_s: float, **changes: Any) -> None:
    """Keep a run of a size; ``changes`` are fields of its result, or its ``kept_at``."""
    kept_at = changes.pop("kept_at", DAY)
    result = finished_run(size, device).result
    assert result is not None
    times = {"median_s": median_s, "ci95_s": (0.99 * median_s, 1.01 * median_s)}
    times["rounds_s"] = (median_s,) * 12
    result = msgspec.structs.replace(result, **{**times, "turns": f"turns-{size}", **changes})
    whole = msgspec.structs.replace(kept_run(kept_at), result=result)
    card = CARD if device != "cpu" else "cpu"
    History(folder / FOLDER_NAME).add(msgspec.structs.replace(whole, card=card))


def sweep(folder: Path, card_s: dict[int, float], **changes: Any) -> None:
    for size, median_s in card_s.items():
        keep(folder, size, "cuda:0", median_s, **changes)
        keep(folder, size, "cpu", 1e-3, **changes)


def test_a_sweep_tells_from_which_size_on_the_card_wins(tmp_path: Path) -> None:
    sweep(tmp_path, {256: 3e-3, 512: 2e-3, 1024: 5e-4, 2048: 2e-4})

    assert newest_crossover(tmp_path, CARD) == StandardCrossover(
        kind="crosses", low=512, high=1024, made_at=DAY
    )


@pytest.mark.parametrize(("median_s", "kind"), [(1e-4, "always"), (1e-2, "never")])
def test_curves_that_do_not_cross_say_so(tmp_path: Path, median_s: float, kind: str) -> None:
    sweep(tmp_path, {256: median_s, 2048: median_s})

    assert newest_crossover(tmp_path, CARD) == StandardCrossover(
        kind=kind, low=256, high=2048, made_at=DAY
    )


def test_one_size_and_another_card_say_nothing(tmp_path: Path) -> None:
    sweep(tmp_path, {256: 1e-4})

    assert newest_crossover(tmp_path, CARD) is None
    sweep(tmp_path, {512: 1e-4})
    assert newest_crossover(tmp_path, "GPU-2") is None
    assert newest_crossover(tmp_path, "cpu") is None
    assert newest_crossover(tmp_path, "") is None
    assert newest_crossover(None, CARD) is None
    assert newest_crossover(tmp_path, CARD) is not None


@pytest.mark.parametrize(
    "other",
    [
        {"torch_version": "2.7.1+cu126"},
        {"options": {"tf32": True}},
        {"dtype": "float16"},
        {"workload": "elementwise"},
        {"transfers": True},
        {"recording": "a recording"},
    ],
)
def test_work_of_another_kind_does_not_count(tmp_path: Path, other: dict[str, Any]) -> None:
    sweep(tmp_path, {256: 1e-2}, kept_at="2026-11-19T10:00:00.000+00:00", **other)
    sweep(tmp_path, {1024: 5e-4, 2048: 2e-4})

    found = newest_crossover(tmp_path, CARD)
    assert found is not None
    assert (found.kind, found.low, found.high) == ("always", 1024, 2048)


def test_a_cpu_that_was_in_this_pc_before_does_not_count(tmp_path: Path) -> None:
    sweep(tmp_path, {256: 3e-3, 1024: 5e-4}, kept_at="2026-11-19T10:00:00.000+00:00")
    keep(tmp_path, 1024, "cpu", 1e-5, device_name="Ryzen 9 9950X")

    # Only 1024 is left, so no two sizes have a winner.
    assert newest_crossover(tmp_path, CARD) is None


def test_a_folder_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / FOLDER_NAME).mkdir()
    (tmp_path / FOLDER_NAME / "20261120T100000-00000000.json").write_text("{")

    assert newest_crossover(tmp_path, CARD) is None
