"""The list of what Wine makes fail names tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.windows.expected import EXPECTED, NOT_RUN

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("node", [*EXPECTED, *NOT_RUN])
def test_a_listed_test_exists(node: str):
    # A renamed one would run under Wine, and crash the process that runs the others.
    file, _, name = node.partition("[")[0].partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
