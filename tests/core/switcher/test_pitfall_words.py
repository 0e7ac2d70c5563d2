"""What a fix did to the numbers, whichever way they went."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.messages.pitfall_messages import Figure, PitfallOutcome
from gpu_studio.core.switcher.pitfall_words import (
    ChangedLine,
    changed_lines,
    compare_parts,
    is_even,
)

OTHERWISE = "Workers cost time."


def outcome(part: str, *figures: Figure) -> PitfallOutcome:
    return PitfallOutcome(part=part, sentence="It was measured.", figures=figures)


def compared(
    before: float, after: float, aim: str = "less", *, unit: str = "s", is_disturbed: bool = False
) -> str:
    broken, fixed = (
        outcome(part, Figure(name="wait_s", title="Waiting", value=value, unit=unit, aim=aim))
        for part, value in (("broken", before), ("fixed", after))
    )
    broken = msgspec.structs.replace(broken, is_disturbed=is_disturbed)
    return compare_parts(OTHERWISE, broken, fixed).replace("\u202f", " ")


@pytest.mark.parametrize(
    ("before", "after", "aim", "words"),
    [
        (2.0, 1.0, "less", "With the fix: waiting 1.00 s instead of 2.00 s."),
        (1.0, 2.0, "more", "With the fix: waiting 2.00 s instead of 1.00 s."),
        (1.0, 2.0, "less", "The fix did not help here: waiting 2.00 s instead of 1.00 s. Workers"),
        (2.0, 1.0, "more", "The fix did not help here: waiting 1.00 s instead of 2.00 s. Workers"),
        (1.0, 0.97, "less", "The fix did not help here: waiting 970 ms instead of 1.00 s. Workers"),
        (0.0, 0.0, "less", "The fix did not help here: waiting 0 s instead of 0 s. Workers"),
    ],
)
def test_the_sentence_follows_the_numbers(before: float, after: float, aim: str, words: str):
    assert compared(before, after, aim).startswith(words)


def test_beside_other_programs_a_fix_is_doubtful_and_none_is_said_not_to_help():
    good, bad = compared(2.0, 1.0, is_disturbed=True), compared(1.0, 2.0, is_disturbed=True)
    assert good.endswith("1.00 s instead of 2.00 s. Doubtful: other programs kept the CPU busy.")
    assert bad.startswith("Whether the fix helps here cannot be told: other programs")
    assert bad.endswith("With the fix: waiting 2.00 s instead of 1.00 s.")
    counted = compared(2, 1, unit="", is_disturbed=True)
    assert counted == "With the fix: waiting 1 instead of 2."


def test_a_figure_without_an_aim_or_without_a_twin_is_left_out():
    assert compared(2.0, 1.0, aim="") == ""
    broken = outcome("broken", Figure(name="a", title="A", value=1.0, aim="less"))
    fixed = outcome("fixed", Figure(name="b", title="B", value=1.0, aim="less"))
    assert compare_parts(OTHERWISE, broken, fixed) == ""
    assert compare_parts(OTHERWISE, broken, None) == compare_parts(OTHERWISE, None, fixed) == ""


def test_where_one_number_got_better_and_another_worse_both_are_reported():
    broken, fixed = (
        outcome(
            part,
            Figure(name="wait", title="Waiting", value=wait, aim="less"),
            Figure(name="whole", title="All", value=whole, aim="less"),
        )
        for part, wait, whole in (("broken", 4.0, 5.0), ("fixed", 1.0, 7.0))
    )
    assert compare_parts(OTHERWISE, broken, fixed) == (
        "The fix helped only partly here: waiting 1 instead of 4; all 7 instead of 5. "
        "Workers cost time."
    )


def test_what_is_too_close_is_not_called_different():
    assert is_even(1.0, 1.05)
    assert is_even(0.0, 0.0)
    assert not is_even(1.0, 1.06)
    assert not is_even(0.0, 1e-9)


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
