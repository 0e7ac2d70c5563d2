"""The terminal's commands with cards: what PyTorch holds, a model there and back, the cache."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.softcards.catalogue import GT_1030, RTX_3060

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.soft.conftest import MakePc

    Typed = Callable[..., list[dict[str, Any]]]

ROOT = Path(__file__).resolve().parents[2]
MATRIX_BYTES = 4 * 1024**2


@pytest.fixture
def typed(soft_pc: MakePc, tmp_path: Path) -> Typed:
    """Return the objects that a command prints on a PC with two cards."""
    pc = soft_pc(GT_1030, RTX_3060)
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}

    def typed(*arguments: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", "gpu_studio", *arguments, "--json"],
            env=pc.env | home, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        return [json.loads(line) for line in done.stdout.splitlines()]

    return typed


def test_devices_report_what_pytorch_holds_of_each_card(typed: Typed) -> None:
    (found,) = typed("devices")
    listed = [
        (one["kind"], one["allocated_bytes"], one["reserved_bytes"]) for one in found["devices"]
    ]
    assert listed == [("cpu", None, None), ("cuda", 0, 0), ("cuda", 0, 0)]


def test_a_file_goes_to_a_card_and_back(typed: Typed, tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"weight": torch.ones(64, 64)}, path)
    events = typed("place", str(path), "--device", "cuda:1", "--then", "cpu")
    rows = [event for event in events if event["type"] == "place_row"]
    ways = {(row["device_before"], row["device_after"]) for row in rows}
    assert ways == {("cpu", "cuda:1"), ("cuda:1", "cpu")}
    there = next(event for event in events if event["type"] == "place_finished")
    assert there["allocated_delta_bytes"] > 0
