"""The lines in which two scripts differ."""

from __future__ import annotations

import pytest

from gpu_studio.core.switcher.changed_lines import ChangedLine, changed_lines


def test_each_place_has_its_removed_and_its_added_lines():
    before = "import torch\n\nmodel(x)\nkeep = 1\n    a = 1\n"
    after = "import torch\n\nwith torch.no_grad():\n    model(x)\nkeep = 1\n    a = 2\n    b = 3\n"
    assert changed_lines(before, after) == (
        (
            ChangedLine(False, "model(x)"),
            ChangedLine(True, "with torch.no_grad():"),
            ChangedLine(True, "    model(x)"),
        ),
        (ChangedLine(False, "a = 1"), ChangedLine(True, "a = 2"), ChangedLine(True, "b = 3")),
    )


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("a\n", "a\n"), ("a\nb\n", "a\n\n   \nb"), ("a", "a\n")]
)
def test_blank_lines_are_no_change(before, after):
    assert changed_lines(before, after) == ()
