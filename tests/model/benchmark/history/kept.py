"""Runs that are made and kept, and what of them is in the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.history import FOLDER_NAME
from gpu_studio.core.benchmark.plan import Plan

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.history_model import HistoryModel
    from gpu_studio.model.studio import Studio


def folder_of(studio: Studio) -> Path:
    assert studio.data_folder is not None
    return studio.data_folder / FOLDER_NAME


def run(qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, *sizes: int) -> None:
    plan = Plan(
        workload="elementwise",
        sizes=sizes,
        dtypes=("float32",),
        devices=("cpu",),
        settings={"budget_s": 1.0},
    )
    benchmark.start(plan)
    qtbot.waitUntil(lambda: not benchmark.state.is_busy and not history.is_busy)


def choose(history: HistoryModel, *sizes: int) -> None:
    """Select the kept runs of some sizes."""
    entries = (one for one in history.entries if one.header.result.size in sizes)
    history.choose(selected=tuple(one.key for one in entries))
