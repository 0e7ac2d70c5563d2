"""The window survives its resizes, and leaves no wrapper at the address of another object."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.ui import resize_walk

_ROOT = Path(__file__).resolve().parents[2]
_WIDTHS = 150


def test_hundreds_of_widths_crash_nothing_and_leave_no_stale_wrapper():
    walk = [sys.executable, "-m", resize_walk.__name__, "--widths", str(_WIDTHS)]
    ended = subprocess.run(
        walk, cwd=_ROOT, capture_output=True, text=True, encoding="utf-8",
        timeout=8 * PATIENCE_S, check=False,
    )  # fmt: skip
    sentence = f"exit status {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    assert ended.stdout.splitlines() == [
        "shared addresses: []",
        f"survived {_WIDTHS} widths",
    ], sentence
    assert ended.returncode == 0, sentence
