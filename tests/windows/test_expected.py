"""The list of what Wine makes fail names tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.windows.expected import EXPECTED

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("node", EXPECTED)
def test_a_listed_test_exists(node: str):
    file, _, name = node.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
