"""What builds and starts the program is no package of it: its folders go on the path here."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "packaging"), str(ROOT / "packaging" / "linux")]


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT
